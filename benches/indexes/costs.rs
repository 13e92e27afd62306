//! Bytes and CPU of each set of indexes, beside those of no index.

use std::time::Duration;

use anyhow::Result;
use benches::apart::NodeApart;
use benches::indexes;
use benches::report::{bytes_each, line, median, micros_each, table};

/// The sets; all others are compared with the first. `tokens` asks for names that a recording does not have.
const SETS: [&str; 11] = [
    "",
    "blocks",
    "logs",
    "contracts",
    "parties",
    "blocks,logs,contracts,parties",
    "call_errors",
    "ledger",
    "packets,bridge",
    "search",
    "activity",
];

/// Measures each set so many times, in turns, on a recording: `NAME`, or `NAME:TXS` extended to so many transactions.
pub(crate) fn print(rounds: u32, chain: &str) -> Result<()> {
    if rounds == 0 {
        return Ok(());
    }
    let (recording, txs) = chain.split_once(':').map_or((chain, None), |(name, txs)| (name, Some(txs)));
    let extended = txs.map(|txs| anyhow::Ok((txs.parse()?, "100"))).transpose()?;
    let node = NodeApart::start(recording, extended)?;
    let txs = node.summary().txs;
    let mut cpu = [const { Vec::<Duration>::new() }; SETS.len()];
    let mut bytes = [0; SETS.len()];
    for _ in 0..rounds {
        for (place, set) in SETS.into_iter().enumerate() {
            let made = super::make(&node, &indexes(set)?)?;
            cpu[place].push(made.cpu);
            made.store.flush()?;
            made.store.compact()?;
            bytes[place] = made.store.table_sizes()?.iter().map(|size| size.file_bytes).sum();
        }
    }
    line(&format!("{txs} transactions, {rounds} rounds in turns; CPU of all lanes, RocksDB's included"));
    let row = |place: usize| {
        // Of each round, since the load of the machine differs between rounds.
        let pairs = cpu[place].iter().zip(&cpu[0]);
        let mut ratios: Vec<f64> = pairs.map(|(one, none)| one.as_secs_f64() / none.as_secs_f64()).collect();
        let least = cpu[place].iter().min().copied().unwrap_or_default();
        vec![
            if SETS[place].is_empty() { "none" } else { SETS[place] }.to_owned(),
            format!("{:.1}", bytes_each(bytes[place], txs) - bytes_each(bytes[0], txs)),
            format!("{:.1}", micros_each(least, txs)),
            format!("{:.2}", median(&mut ratios)),
        ]
    };
    let rows: Vec<_> = (0..SETS.len()).map(row).collect();
    table(&["indexes", "more bytes/tx", "least CPU us/tx", "median of ratios"], &rows);
    node.stop()
}
