//! sleepers: 100,000 tasks sleep one second each. How late they wake on average and at worst, and
//! the CPU time of the whole. The second of two rounds counts.
use peer::{number, report};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Outcome {
    mean_late_us: f64,
    max_late_us: f64,
    cpu_ms: f64,
}

async fn round(tasks: usize, milliseconds: usize) -> Outcome {
    let late = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let duration = Duration::from_millis(milliseconds as u64);
    let cpu_before = peer::cpu_ns();
    let handles: Vec<_> = (0..tasks)
        .map(|_| {
            let late = late.clone();
            tokio::spawn(async move {
                let due = Instant::now() + duration;
                tokio::time::sleep(duration).await;
                let ns = Instant::now().saturating_duration_since(due).as_nanos() as u64;
                late.0.fetch_add(ns, Relaxed);
                late.1.fetch_max(ns, Relaxed);
            })
        })
        .collect();
    for handle in handles {
        handle.await.unwrap();
    }
    Outcome {
        mean_late_us: late.0.load(Relaxed) as f64 / tasks as f64 / 1e3,
        max_late_us: late.1.load(Relaxed) as f64 / 1e3,
        cpu_ms: (peer::cpu_ns() - cpu_before) / 1e6,
    }
}

fn main() {
    let tasks = number("goroutines", 100_000);
    let milliseconds = number("milliseconds", 1000);
    peer::run(async move {
        let first = round(tasks, milliseconds).await;
        let second = round(tasks, milliseconds).await;
        report("cpu_ms", second.cpu_ms);
        report("mean_late_us", second.mean_late_us);
        report("max_late_us", second.max_late_us);
        report("first_cpu_ms", first.cpu_ms);
        report("first_mean_late_us", first.mean_late_us);
    });
}
