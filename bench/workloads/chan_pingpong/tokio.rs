//! chan_pingpong: two tasks pass a number to and fro. Tokio has no unbuffered channel; a buffer of
//! one is its smallest. The result is wall time per round.
use peer::{number, report, time_ns};
use tokio::sync::mpsc;

async fn play(rounds: usize) {
    let (there, mut there_end) = mpsc::channel::<usize>(1);
    let (back, mut back_end) = mpsc::channel::<usize>(1);
    tokio::spawn(async move {
        while let Some(value) = there_end.recv().await {
            back.send(value + 1).await.unwrap();
        }
    });
    let mut value = 0;
    for _ in 0..rounds {
        there.send(value).await.unwrap();
        value = back_end.recv().await.unwrap();
    }
    drop(there);
    assert!(back_end.recv().await.is_none() && value == rounds);
}

fn main() {
    let rounds = number("rounds", 2_000_000);
    peer::run(async move {
        let first = time_ns(play(rounds)).await;
        let warm = time_ns(play(rounds)).await;
        report("first_ns_per_op", first / rounds as f64);
        report("ns_per_op", warm / rounds as f64);
    });
}
