//! The Rust twin of support/measure.h: `key=value` parameters in, `key=value` results out.

use std::future::Future;
use std::time::Instant;

/// The parameter `key`, or `fallback` where it was not given.
pub fn number(key: &str, fallback: usize) -> usize {
    for argument in std::env::args().skip(1) {
        if let Some(value) = argument.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')) {
            match value.parse::<usize>() {
                Ok(number) if number > 0 => return number,
                _ => {
                    eprintln!("{key} must be a positive number, found {argument:?}");
                    std::process::exit(2);
                }
            }
        }
    }
    fallback
}

/// Prints one result.
pub fn report(key: &str, value: f64) {
    println!("{key}={value:.3}");
}

/// How long `work` takes, in nanoseconds of wall time.
pub async fn time_ns(work: impl Future<Output = ()>) -> f64 {
    let start = Instant::now();
    work.await;
    start.elapsed().as_nanos() as f64
}

/// CPU time of this process so far, user and system.
pub fn cpu_ns() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Runs `work` on as many threads as the parameter procs says. With one it is Tokio's
/// current_thread runtime, which is the faster of its two there. With more, `work` is a task like
/// all others: block_on() alone would leave it on a thread that is no worker.
pub fn run(work: impl Future<Output = ()> + Send + 'static) {
    let procs = number("procs", 1);
    if procs == 1 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::spawn(work).await.unwrap() });
    } else {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(procs)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { tokio::spawn(work).await.unwrap() });
    }
}
