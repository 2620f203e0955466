//! yield: a hundred tasks that do nothing but yield. The result is wall time over all yields.
use peer::{number, report, time_ns};

async fn yield_all(tasks: usize, yields: usize) {
    let handles: Vec<_> = (0..tasks)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for handle in handles {
        handle.await.unwrap();
    }
}

fn main() {
    let tasks = number("goroutines", 100);
    let yields = number("yields", 100_000);
    peer::run(async move {
        let total = (tasks * yields) as f64;
        let first = time_ns(yield_all(tasks, yields)).await;
        let warm = time_ns(yield_all(tasks, yields)).await;
        report("first_ns_per_op", first / total);
        report("ns_per_op", warm / total);
    });
}
