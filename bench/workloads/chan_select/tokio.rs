//! chan_select: eight producers fill a buffered channel each, one task selects over the eight. The
//! result is wall time per value.
use peer::{number, report, time_ns};
use tokio::sync::mpsc::{channel, Receiver};

fn produce(each: usize) -> Receiver<usize> {
    let (sender, receiver) = channel(128);
    tokio::spawn(async move {
        for i in 0..each {
            sender.send(i).await.unwrap();
        }
    });
    receiver
}

async fn stream(each: usize) {
    let (mut a, mut b, mut c, mut d) = (produce(each), produce(each), produce(each), produce(each));
    let (mut e, mut f, mut g, mut h) = (produce(each), produce(each), produce(each), produce(each));
    let mut sum = 0;
    for _ in 0..8 * each {
        tokio::select! {
            Some(value) = a.recv() => sum += value,
            Some(value) = b.recv() => sum += value,
            Some(value) = c.recv() => sum += value,
            Some(value) = d.recv() => sum += value,
            Some(value) = e.recv() => sum += value,
            Some(value) = f.recv() => sum += value,
            Some(value) = g.recv() => sum += value,
            Some(value) = h.recv() => sum += value,
            else => panic!("all channels are closed"),
        }
    }
    assert_eq!(sum, 8 * (each * (each - 1) / 2));
}

fn main() {
    let each = number("values", 250_000);
    peer::run(async move {
        let values = (8 * each) as f64;
        let first = time_ns(stream(each)).await;
        let warm = time_ns(stream(each)).await;
        report("first_ns_per_op", first / values);
        report("ns_per_op", warm / values);
    });
}
