//! mutex: tasks that lock, count and unlock, all the same mutex. The result is wall time over all
//! of these. Tokio's own lock: a task that waits for it does not hold its thread.
use peer::{number, report, time_ns};
use std::sync::Arc;
use tokio::sync::Mutex;

async fn lock_all(tasks: usize, rounds: usize) {
    let count = Arc::new(Mutex::new(0usize));
    let handles: Vec<_> = (0..tasks)
        .map(|_| {
            let count = count.clone();
            tokio::spawn(async move {
                for _ in 0..rounds {
                    *count.lock().await += 1;
                }
            })
        })
        .collect();
    for handle in handles {
        handle.await.unwrap();
    }
    assert_eq!(*count.lock().await, tasks * rounds);
}

fn main() {
    let tasks = number("goroutines", 8);
    let rounds = number("rounds", 1_000_000);
    peer::run(async move {
        let total = (tasks * rounds) as f64;
        let first = time_ns(lock_all(tasks, rounds)).await;
        let warm = time_ns(lock_all(tasks, rounds)).await;
        report("first_ns_per_op", first / total);
        report("ns_per_op", warm / total);
    });
}
