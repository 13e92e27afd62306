//! Measures the extension of a recording: seconds to compute the hashes of the blocks, and to compute every block with
//! its results, receipts and traces, on one core.
//!
//! `cargo run --release --workspace --example speed -- testing/recordings/evm-load 1000000 100`

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use replay::Recording;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("usage: speed RECORDING TRANSACTIONS [BLOCK]")?);
    let txs: u64 = args.next().ok_or("the number of transactions is missing")?.parse()?;
    let sizes = args.next().as_deref().unwrap_or("100").parse()?;
    let recorded = Recording::open(&dir)?;
    let (first, before) = (recorded.last() + 1, recorded.summary().txs);
    let start = Instant::now();
    let extended = synthesize::extend(recorded, txs, sizes)?;
    let hashed = start.elapsed();
    let start = Instant::now();
    let mut bytes = 0;
    for height in first..=extended.last() {
        let height = extended.height(height).ok_or("a height is missing")?;
        bytes += height.block.len() + height.block_results.len() + height.eth_receipts.map_or(0, |raw| raw.len());
    }
    let built = start.elapsed();
    let rate = |seconds: f64| (txs - before) as f64 / seconds;
    println!("hashes  {:.2} s, {:.0} transactions/s", hashed.as_secs_f64(), rate(hashed.as_secs_f64()));
    println!("blocks  {:.2} s, {:.0} transactions/s, {bytes} bytes without traces", built.as_secs_f64(), rate(built.as_secs_f64()));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
    Ok(())
}
