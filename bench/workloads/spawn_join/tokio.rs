//! spawn_join: main starts a million empty tasks, then waits for all of them.
use peer::{number, report, time_ns};

async fn spawn_and_join(tasks: usize) {
    let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(async {})).collect();
    for handle in handles {
        handle.await.unwrap();
    }
}

fn main() {
    let tasks = number("goroutines", 1_000_000);
    peer::run(async move {
        let first = time_ns(spawn_and_join(tasks)).await;
        let warm = time_ns(spawn_and_join(tasks)).await;
        report("first_ns_per_op", first / tasks as f64);
        report("ns_per_op", warm / tasks as f64);
    });
}
