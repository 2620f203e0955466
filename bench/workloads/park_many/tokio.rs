//! park_many: a million tasks start and wait at a gate; then it opens. Wall time for each, to start
//! and to wait, and to wake and to end. All of it cold: the first thing that the process does.
use peer::{number, report};
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

struct Gate {
    left_to_arrive: AtomicUsize,
    arrived: Notify,
    open: Notify,
    left_to_end: AtomicUsize,
    ended: Notify,
}

fn main() {
    let tasks = number("goroutines", 1_000_000);
    peer::run(async move {
        let start = Instant::now();
        let gate = Arc::new(Gate {
            left_to_arrive: AtomicUsize::new(tasks),
            arrived: Notify::new(),
            open: Notify::new(),
            left_to_end: AtomicUsize::new(tasks),
            ended: Notify::new(),
        });
        for _ in 0..tasks {
            let gate = gate.clone();
            tokio::spawn(async move {
                let open = gate.open.notified();
                tokio::pin!(open);
                open.as_mut().enable();
                if gate.left_to_arrive.fetch_sub(1, AcqRel) == 1 {
                    gate.arrived.notify_one();
                }
                open.await;
                if gate.left_to_end.fetch_sub(1, AcqRel) == 1 {
                    gate.ended.notify_one();
                }
            });
        }
        gate.arrived.notified().await;
        let parked = start.elapsed().as_nanos() as f64;
        let start = Instant::now();
        gate.open.notify_waiters();
        gate.ended.notified().await;
        let woken = start.elapsed().as_nanos() as f64;
        report("first_ns_per_op", parked / tasks as f64);
        report("first_wake_ns_per_op", woken / tasks as f64);
    });
}
