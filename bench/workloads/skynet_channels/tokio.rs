//! skynet_channels: a tree of tasks, ten children each, a million leaves; each node returns the sum
//! of its subtree to its parent, through a channel.
use peer::{number, report, time_ns};
use std::future::Future;
use std::pin::Pin;
use tokio::sync::mpsc::{channel, Sender};

const CHILDREN: usize = 10;

// A recursive async function needs a box for its future.
fn skynet(
    result: Sender<usize>,
    first_leaf: usize,
    leaves: usize,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            result.send(first_leaf).await.unwrap();
            return;
        }
        let share = leaves / CHILDREN;
        let (sender, mut results) = channel(1);
        for i in 0..CHILDREN {
            tokio::spawn(skynet(sender.clone(), first_leaf + i * share, share));
        }
        let mut sum = 0;
        for _ in 0..CHILDREN {
            sum += results.recv().await.unwrap();
        }
        result.send(sum).await.unwrap();
    })
}

async fn run_tree(leaves: usize) {
    let (sender, mut result) = channel(1);
    tokio::spawn(skynet(sender, 0, leaves));
    assert_eq!(result.recv().await.unwrap(), leaves * (leaves - 1) / 2);
}

fn main() {
    let leaves = number("leaves", 1_000_000);
    peer::run(async move {
        let first = time_ns(run_tree(leaves)).await;
        let warm = time_ns(run_tree(leaves)).await;
        report("first_ms", first / 1e6);
        report("ms", warm / 1e6);
    });
}
