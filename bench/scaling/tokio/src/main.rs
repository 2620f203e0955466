// The CPU workloads of bench/workloads and the load curve of ../load, on Tokio's multi-threaded
// runtime. Parameters and results are `key=value` words, as in support/measure.h. The workload is
// the parameter `workload`.
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, Mutex, Notify};

fn text(key: &str) -> Option<String> {
    let begin = format!("{key}=");
    std::env::args().skip(1).find_map(|word| word.strip_prefix(&begin).map(str::to_string))
}

fn number(key: &str, fallback: u64) -> u64 {
    match text(key) {
        None => fallback,
        Some(word) => match word.parse() {
            Ok(n) if n > 0 => n,
            _ => {
                eprintln!("{key} must be a positive number, found {word:?}");
                std::process::exit(2);
            }
        },
    }
}

fn report(key: &str, value: f64) {
    println!("{key}={value:.3}");
}

fn steals() -> u64 {
    let metrics = Handle::current().metrics();
    (0..metrics.num_workers()).map(|worker| metrics.worker_steal_count(worker)).sum()
}

// The time of the second, warm round, and how much was stolen in it.
async fn warm<F: Future<Output = ()>>(mut round: impl FnMut() -> F) -> Duration {
    round().await;
    let (before, begin) = (steals(), Instant::now());
    round().await;
    let time = begin.elapsed();
    report("stolen_per_second", (steals() - before) as f64 / time.as_secs_f64());
    time
}

fn report_each(time: Duration, operations: u64) {
    report("ns_per_op", time.as_nanos() as f64 / operations as f64);
}

fn report_ms(time: Duration) {
    report("ms", time.as_secs_f64() * 1e3);
}

#[inline(never)]
fn busy_work(rounds: u64, seed: u64) -> u64 {
    let mut x = black_box(seed | 1);
    for _ in 0..rounds {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    }
    x
}

// Short enough that, on a busy machine too, one of the tries is not interrupted.
fn rounds_per_ns() -> f64 {
    const ROUNDS: u64 = 100_000;
    let best = (0..100)
        .map(|_| {
            let begin = Instant::now();
            black_box(busy_work(ROUNDS, 1));
            begin.elapsed().as_nanos()
        })
        .min()
        .unwrap();
    ROUNDS as f64 / best as f64
}

// Tokio has no WaitGroup.
struct Countdown {
    left: AtomicI64,
    over: Notify,
}

impl Countdown {
    fn new(count: u64) -> Arc<Self> {
        Arc::new(Countdown { left: AtomicI64::new(count as i64), over: Notify::new() })
    }
    fn done(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.over.notify_one();
        }
    }
}

async fn spawn_join() {
    let count = number("goroutines", 1_000_000);
    let time = warm(|| async move {
        let all = Countdown::new(count);
        for _ in 0..count {
            let all = all.clone();
            tokio::spawn(async move { all.done() });
        }
        all.over.notified().await;
    })
    .await;
    report_each(time, count);
}

async fn spawn_handles() {
    let count = number("goroutines", 1_000_000);
    let time = warm(|| async move {
        let handles: Vec<_> = (0..count).map(|_| tokio::spawn(async {})).collect();
        for handle in handles {
            handle.await.unwrap();
        }
    })
    .await;
    report_each(time, count);
}

async fn yield_() {
    let (count, yields) = (number("goroutines", 100), number("yields", 100_000));
    let time = warm(|| async move {
        let all: Vec<_> = (0..count)
            .map(|_| {
                tokio::spawn(async move {
                    for _ in 0..yields {
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in all {
            task.await.unwrap();
        }
    })
    .await;
    report_each(time, count * yields);
}

fn sky(first: u64, leaves: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            return first;
        }
        let share = leaves / 10;
        let children: Vec<_> =
            (0..10).map(|i| tokio::spawn(sky(first + i * share, share))).collect();
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    })
}

async fn skynet() {
    let leaves = number("leaves", 1_000_000);
    let time = warm(|| async move {
        assert_eq!(sky(0, leaves).await, leaves * (leaves - 1) / 2);
    })
    .await;
    report_ms(time);
}

fn fib(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let first = tokio::spawn(fib(n - 1));
        let second = fib(n - 2).await;
        first.await.unwrap() + second
    })
}

async fn fib_() {
    let n = number("n", 32);
    let time = warm(|| async move {
        black_box(fib(n).await);
    })
    .await;
    report_ms(time);
}

// Tokio has no unbuffered channel: a buffer of one.
async fn chan_pingpong() {
    let rounds = number("rounds", 2_000_000);
    let time = warm(|| async move {
        let (there, mut ours) = mpsc::channel::<u64>(1);
        let (answers, mut back) = mpsc::channel::<u64>(1);
        tokio::spawn(async move {
            while let Some(value) = ours.recv().await {
                answers.send(value + 1).await.unwrap();
            }
        });
        let mut value = 0;
        for _ in 0..rounds {
            there.send(value).await.unwrap();
            value = back.recv().await.unwrap();
        }
        assert_eq!(value, rounds);
    })
    .await;
    report_each(time, rounds);
}

async fn chan_buffered() {
    let (values, capacity) = (number("values", 10_000_000), number("capacity", 128));
    let time = warm(|| async move {
        let (sender, mut receiver) = mpsc::channel::<u64>(capacity as usize);
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
    })
    .await;
    report_each(time, values);
}

async fn mutex() {
    let (count, rounds) = (number("goroutines", 8), number("rounds", 1_000_000));
    let time = warm(|| async move {
        let sum = Arc::new(Mutex::new(0u64));
        let all: Vec<_> = (0..count)
            .map(|_| {
                let sum = sum.clone();
                tokio::spawn(async move {
                    for _ in 0..rounds {
                        *sum.lock().await += 1;
                    }
                })
            })
            .collect();
        for task in all {
            task.await.unwrap();
        }
        assert_eq!(*sum.lock().await, count * rounds);
    })
    .await;
    report_each(time, count * rounds);
}

async fn balance() {
    let count = number("goroutines", 1_000);
    let rounds = (rounds_per_ns() * 1e6) as u64;
    let time = warm(|| async move {
        let all: Vec<_> = (0..count)
            .map(|i| tokio::spawn(async move { black_box(busy_work(rounds, i)) }))
            .collect();
        for task in all {
            task.await.unwrap();
        }
    })
    .await;
    report("parallel_ms", time.as_secs_f64() * 1e3);
}

// A small generator, so that no further crate is needed. Uniform in (0, 1].
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
    fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }
}

async fn load(procs: u64) {
    let work_us = number("work_us", 10) as f64;
    let tick = Duration::from_micros(number("tick_us", 1_000));
    let duration = Duration::from_millis(number("milliseconds", 2_000));
    let cpus = procs.min(std::thread::available_parallelism().unwrap().get() as u64);
    let per_second = number("load_percent", 50) as f64 / 100.0 * cpus as f64 * 1e6 / work_us;
    let rounds = (rounds_per_ns() * work_us * 1e3) as u64;
    let mut random = Random(42);
    let mut gap = || random.exponential() / per_second;
    let mut due = Vec::new();
    let mut at = gap();
    while at < duration.as_secs_f64() {
        due.push(Duration::from_secs_f64(at));
        at += gap();
    }
    if due.is_empty() {
        return;
    }
    let zeros = |count| Arc::new((0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let (from_go, from_due) = (zeros(due.len()), zeros(due.len()));

    let all = Countdown::new(due.len() as u64);
    let (before, begin) = (steals(), Instant::now());
    let (mut next, mut ticks) = (0, 0u64);
    while next < due.len() {
        tokio::time::sleep(tick).await;
        ticks += 1;
        let now = begin.elapsed();
        while next < due.len() && due[next] <= now {
            let (all, from_go, from_due) = (all.clone(), from_go.clone(), from_due.clone());
            let (index, due_at, born) = (next, begin + due[next], Instant::now());
            next += 1;
            tokio::spawn(async move {
                let start = Instant::now();
                from_go[index].store((start - born).as_nanos() as u64, Ordering::Relaxed);
                from_due[index].store((start - due_at).as_nanos() as u64, Ordering::Relaxed);
                black_box(busy_work(rounds, index as u64));
                all.done();
            });
        }
    }
    all.over.notified().await;
    let seconds = begin.elapsed().as_secs_f64();
    let stolen = steals() - before;
    let at = |waits: &[AtomicU64], share: f64| {
        let mut sorted: Vec<u64> = waits.iter().map(|w| w.load(Ordering::Relaxed)).collect();
        sorted.sort_unstable();
        sorted[(share * (sorted.len() - 1) as f64) as usize] as f64 / 1e3
    };
    report("median_us", at(&from_go, 0.5));
    report("p99_us", at(&from_go, 0.99));
    report("worst_us", at(&from_go, 1.0));
    report("due_median_us", at(&from_due, 0.5));
    report("due_p99_us", at(&from_due, 0.99));
    report("ticks_per_second", ticks as f64 / seconds);
    report("started_per_second", due.len() as f64 / seconds);
    report("stolen_per_second", stolen as f64 / seconds);
}

fn main() {
    let procs = number("procs", 2);
    let workload = text("workload").unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(procs as usize)
        .enable_all()
        .build()
        .unwrap();
    // Started on a worker: block_on() itself runs on a thread that is none.
    let main = runtime.spawn(async move {
        match workload.as_str() {
            "spawn_join" => spawn_join().await,
            "spawn_handles" => spawn_handles().await,
            "yield" => yield_().await,
            "skynet" => skynet().await,
            "fib" => fib_().await,
            "chan_pingpong" => chan_pingpong().await,
            "chan_buffered" => chan_buffered().await,
            "mutex" => mutex().await,
            "balance" => balance().await,
            "load" => load(procs).await,
            other => {
                eprintln!("no workload {other:?}");
                std::process::exit(2);
            }
        }
    });
    runtime.block_on(main).unwrap();
}
