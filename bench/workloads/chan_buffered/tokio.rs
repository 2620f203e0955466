//! chan_buffered: one producer, one consumer, a buffer of 128. The result is wall time per value.
use peer::{number, report, time_ns};
use tokio::sync::mpsc;

async fn stream(values: usize, capacity: usize) {
    let (sender, mut receiver) = mpsc::channel::<usize>(capacity);
    tokio::spawn(async move {
        for i in 0..values {
            sender.send(i).await.unwrap();
        }
    });
    let mut sum = 0;
    while let Some(value) = receiver.recv().await {
        sum += value;
    }
    assert_eq!(sum, values * (values - 1) / 2);
}

fn main() {
    let values = number("values", 10_000_000);
    let capacity = number("capacity", 128);
    peer::run(async move {
        let first = time_ns(stream(values, capacity)).await;
        let warm = time_ns(stream(values, capacity)).await;
        report("first_ns_per_op", first / values as f64);
        report("ns_per_op", warm / values as f64);
    });
}
