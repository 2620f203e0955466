//! rw_mutex: tasks that read under a lock for readers and writers, and write every so often. The
//! result is wall time over all of these.
use peer::{number, report, time_ns};
use std::sync::Arc;
use tokio::sync::RwLock;

async fn use_all(tasks: usize, rounds: usize, write_every: usize) {
    let value = Arc::new(RwLock::new(0usize));
    let handles: Vec<_> = (0..tasks)
        .map(|_| {
            let value = value.clone();
            tokio::spawn(async move {
                let mut sum = 0usize;
                for n in 1..=rounds {
                    if n % write_every == 0 {
                        *value.write().await += 1;
                    } else {
                        sum = sum.wrapping_add(*value.read().await);
                    }
                }
                sum
            })
        })
        .collect();
    let mut seen = 0usize;
    for handle in handles {
        seen = seen.wrapping_add(handle.await.unwrap());
    }
    assert!(rounds < 2 * write_every || seen > 0);
}

fn main() {
    let tasks = number("goroutines", 8);
    let rounds = number("rounds", 1_000_000);
    let write_every = number("write_every", 1000);
    peer::run(async move {
        let total = (tasks * rounds) as f64;
        let first = time_ns(use_all(tasks, rounds, write_every)).await;
        let warm = time_ns(use_all(tasks, rounds, write_every)).await;
        report("first_ns_per_op", first / total);
        report("ns_per_op", warm / total);
    });
}
