//! Measures the extension of a recording on one core: the time to compute the hashes of the blocks, and to compute every
//! block with its results, receipts and traces.
//!
//! `cargo run --release --workspace --example speed -- testing/recordings/evm-load 1000000 100`

#![allow(clippy::print_stdout, reason = "its output")]

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use replay::Recording;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("usage: speed RECORDING TRANSACTIONS [BLOCK]")?);
    let txs: u128 = args.next().ok_or("the number of transactions is missing")?.parse()?;
    let sizes = args.next().as_deref().unwrap_or("100").parse()?;
    let recorded = Recording::open(&dir)?;
    let (first, before) = (recorded.last() + 1, u128::from(recorded.summary().txs));
    let report = |name: &str, time: Duration| {
        let rate = (txs - before) * 1_000_000 / time.as_micros().max(1);
        println!("{name} {:.2} s, {rate} transactions/s", time.as_secs_f64());
    };
    let start = Instant::now();
    let extended = synthesize::extend(recorded, u64::try_from(txs)?, sizes)?;
    report("hashes", start.elapsed());
    let start = Instant::now();
    for height in first..=extended.last() {
        extended.height(height).ok_or("a height is missing")?;
    }
    report("blocks", start.elapsed());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    Ok(())
}
