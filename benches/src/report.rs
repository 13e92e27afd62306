//! Figures outside of criterion, as text on standard output.

#![expect(clippy::print_stdout, reason = "a report is printed")]

use std::time::Duration;

use store::rocks::TableSize;

/// Prints a line.
pub fn line(text: &str) {
    println!("{text}");
}

/// Prints `rows` under `heads`, the first column left-aligned and the others right-aligned.
pub fn table(heads: &[&str], rows: &[Vec<String>]) {
    let heads: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
    let all = || std::iter::once(&heads).chain(rows);
    let width =
        |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    for row in all() {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column).unwrap_or(0);
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        line(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// Prints the sizes of the tables of a compacted database with `txs` transactions, the largest first.
pub fn table_sizes(tables: &[TableSize], txs: u64) {
    let mut tables: Vec<_> = tables.iter().filter(|size| size.file_bytes > 0).collect();
    tables.sort_unstable_by_key(|size| std::cmp::Reverse(size.file_bytes));
    let row = |size: &TableSize| {
        vec![
            size.name.to_owned(),
            size.estimated_rows.to_string(),
            size.file_bytes.to_string(),
            format!("{:.1}", bytes_each(size.file_bytes, size.estimated_rows.max(1))),
            format!("{:.1}", bytes_each(size.file_bytes, txs)),
        ]
    };
    let rows: Vec<_> = tables.into_iter().map(row).collect();
    table(&["table, compacted", "rows", "bytes", "a row", "a transaction"], &rows);
}

/// `count` in `time` as a rate per second; infinite if `time` is zero.
#[expect(clippy::cast_precision_loss, reason = "a figure for eyes, below 2^53")]
pub fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// `time` per one of `count`, in microseconds.
#[expect(clippy::cast_precision_loss, reason = "a figure for eyes, below 2^53")]
pub fn micros_each(time: Duration, count: u64) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// Bytes in MB (10^6).
#[expect(clippy::cast_precision_loss, reason = "a figure for eyes, below 2^53")]
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// `bytes` per one of `count`.
#[expect(clippy::cast_precision_loss, reason = "a figure for eyes, below 2^53")]
pub fn bytes_each(bytes: u64, count: u64) -> f64 {
    bytes as f64 / count as f64
}

/// The median of `figures`, or NaN if there are none.
pub fn median(figures: &mut [f64]) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
