//! timer_stop: makes a timer of an hour and stops it, again and again, as every request with a
//! time-out does; once alone, once beside 100,000 timers that stay. The second of two rounds
//! counts. A timer of Tokio begins when it is first polled, so each is polled once.
use peer::{number, report};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::task::unconstrained;
use tokio::time::{sleep, Sleep};

/// Polls a timer once.
struct Begin<'a>(Pin<&'a mut Sleep>);

impl Future for Begin<'_> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        assert!(self.0.as_mut().poll(context).is_pending());
        Poll::Ready(())
    }
}

async fn ns_per_timer(timers: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..timers {
        let timer = sleep(Duration::from_secs(3600));
        tokio::pin!(timer);
        Begin(timer).await;
    }
    start.elapsed().as_nanos() as f64 / timers as f64
}

async fn measure(timers: usize) {
    let first = ns_per_timer(timers).await;
    report("ns_per_op", ns_per_timer(timers).await);
    report("first_ns_per_op", first);
    let mut others = Vec::new();
    for i in 0..100_000u64 {
        let mut timer = Box::pin(sleep(Duration::from_secs(600 + i % 6000)));
        Begin(timer.as_mut()).await;
        others.push(timer);
    }
    report("ns_per_op_beside_others", ns_per_timer(timers).await);
}

fn main() {
    let timers = number("timers", 1_000_000);
    // A task that polls without end is told to give way, and its timers do not begin.
    peer::run(unconstrained(measure(timers)));
}
