//! The page of the results: `benchmarks.md`, and the plots in `benchmarks/`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use benches::report::{bytes_each, median, micros_each, per_second};
use store::rocks::TableSize;

use crate::load::{Figures, Measured};
use crate::plots::{self, Line, Titles};

const HEAD: &str = include_str!("head.md");
const REQUESTS: &str = include_str!("requests.md");

/// An ingest of the recorded chain by each.
pub(crate) struct IngestRound {
    pub(crate) txs: u64,
    /// Time and CPU: cairn, the stand-in with relaxed and with strict durability.
    pub(crate) figures: [(Duration, Duration); 3],
}

/// All results.
pub(crate) struct Document {
    pub(crate) version: String,
    /// Load averages of the machine before and after.
    pub(crate) load: [String; 2],
    pub(crate) rounds: Vec<IngestRound>,
    /// Transactions of the long chain.
    pub(crate) txs: u64,
    /// Time and transactions so far while the long chain was ingested: cairn and the stand-in.
    pub(crate) progress: [Vec<(Duration, u64)>; 2],
    pub(crate) tables: Vec<TableSize>,
    pub(crate) relations: Vec<(String, u64)>,
    pub(crate) requests: Vec<Measured>,
    pub(crate) by_offset: Vec<(u64, [f64; 2])>,
    pub(crate) by_connections: Vec<(usize, [Figures; 2])>,
}

impl Document {
    /// Writes the page and its plots into the directory `docs`.
    pub(crate) fn write(&self, docs: &Path) -> Result<()> {
        let plots = docs.join("benchmarks");
        fs::create_dir_all(&plots).with_context(|| format!("creating {}", plots.display()))?;
        let mut text = String::from(HEAD);
        self.machine(&mut text)?;
        self.ingest(&mut text)?;
        self.deciles(&mut text, &plots.join("rate-by-decile.svg"))?;
        self.sizes(&mut text, &plots.join("bytes-by-table.svg"))?;
        self.requests(&mut text)?;
        self.offsets(&mut text, &plots.join("page-by-offset.svg"))?;
        self.connections(&mut text, &plots.join("latency-by-connections.svg"))?;
        let file = docs.join("benchmarks.md");
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
    }

    fn machine(&self, text: &mut String) -> Result<()> {
        let processor = fs::read_to_string("/proc/cpuinfo").context("reading /proc/cpuinfo")?;
        let model = processor.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
        let memory = memory.lines().next().unwrap_or_default().trim_start_matches("MemTotal:").trim();
        let kernel =
            fs::read_to_string("/proc/sys/kernel/osrelease").context("reading the kernel's version")?;
        let cores = std::thread::available_parallelism()?;
        let [before, after] = &self.load;
        writeln!(text, "\n## Machine\n")?;
        writeln!(text, "| | |\n|---|---|")?;
        writeln!(text, "| processor | {cores} cores, {} |", model.trim_start_matches([' ', '\t', ':']))?;
        writeln!(text, "| memory | {memory} |")?;
        writeln!(text, "| kernel | Linux {} |", kernel.trim())?;
        let version = self.version.split(" on ").next().unwrap_or_default();
        writeln!(text, "| stand-in | {version}, `shared_buffers=4GB`, `max_wal_size=4GB` |")?;
        Ok(writeln!(text, "| load average, before and after | {before} and {after} |")?)
    }

    fn ingest(&self, text: &mut String) -> Result<()> {
        writeln!(text, "\n## Ingest of the recorded chain\n")?;
        let txs = self.rounds.first().map_or(0, |round| round.txs);
        writeln!(text, "{txs} transactions, {} rounds in turns; medians.\n", self.rounds.len())?;
        writeln!(text, "| | tx/s | CPU per transaction |\n|---|---|---|")?;
        let names = [
            "cairn: fetch, verify, derive, all lanes but the rich list; syncs at most every 200 ms",
            "stand-in: statements only, `synchronous_commit=off`",
            "stand-in: statements only, `synchronous_commit=on` (a sync for each block)",
        ];
        for (place, name) in names.into_iter().enumerate() {
            let over = |figure: &dyn Fn(&(Duration, Duration)) -> f64| {
                median(&mut self.rounds.iter().map(|round| figure(&round.figures[place])).collect::<Vec<_>>())
            };
            let rate = over(&|(elapsed, _)| per_second(txs, *elapsed));
            let cpu = over(&|(_, cpu)| micros_each(*cpu, txs) / 1e3);
            writeln!(text, "| {name} | {rate:.0} | {cpu:.3} ms |")?;
        }
        Ok(())
    }

    fn deciles(&self, text: &mut String, plot: &Path) -> Result<()> {
        let [cairn, stand_in] = self.progress.each_ref().map(|progress| rates_by_decile(progress, self.txs));
        writeln!(text, "\n## Ingest of a long chain\n")?;
        writeln!(text, "{} transactions; transactions per second in each tenth of them.\n", self.txs)?;
        writeln!(text, "| decile | cairn | stand-in |\n|---|---|---|")?;
        for (decile, (cairn, stand_in)) in (1..).zip(cairn.iter().zip(&stand_in)) {
            writeln!(text, "| {decile} | {cairn:.0} | {stand_in:.0} |")?;
        }
        writeln!(text, "\n![Rate by decile](benchmarks/rate-by-decile.svg)")?;
        let titles = Titles { plot: "Ingest by decile", x: "decile of the chain", y: "transactions/s" };
        let points = |rates: Vec<f64>| (1_u32..).map(f64::from).zip(rates).collect();
        let lines = [
            Line { name: "cairn", points: points(cairn) },
            Line { name: "PostgreSQL", points: points(stand_in) },
        ];
        plots::lines(plot, &titles, &lines)
    }

    fn sizes(&self, text: &mut String, plot: &Path) -> Result<()> {
        const SHOWN: usize = 10;
        let each = |bytes: u64| bytes_each(bytes, self.txs);
        let mut tables: Vec<_> = self
            .tables
            .iter()
            .map(|table| (format!("cairn: {}", table.name), each(table.file_bytes)))
            .collect();
        tables.sort_unstable_by(|(_, one), (_, other)| other.total_cmp(one));
        let relations: Vec<_> = self
            .relations
            .iter()
            .map(|(name, bytes)| (format!("PostgreSQL: {name}"), each(*bytes)))
            .collect();
        let sum = |sizes: &[(String, f64)]| sizes.iter().map(|(_, size)| size).sum::<f64>();
        let (ours, theirs) = (sum(&tables), sum(&relations));
        writeln!(text, "\n## Bytes on disk\n")?;
        writeln!(text, "After a flush (cairn) and a vacuum (PostgreSQL), bytes per transaction:")?;
        writeln!(text, "cairn {ours:.0}, stand-in {theirs:.0}, {:.1} times as many.\n", theirs / ours)?;
        writeln!(text, "| table | bytes per transaction |\n|---|---|")?;
        let shown = |sizes: Vec<(String, f64)>| sizes.into_iter().take(SHOWN);
        let first_group = tables.len().min(SHOWN);
        let all: Vec<_> = shown(tables).chain(shown(relations)).collect();
        for (name, size) in &all {
            writeln!(text, "| {name} | {size:.1} |")?;
        }
        writeln!(text, "\n![Bytes by table](benchmarks/bytes-by-table.svg)")?;
        let titles = Titles { plot: "The largest tables", x: "bytes per transaction", y: "" };
        plots::bars(plot, &titles, &all, first_group)
    }

    fn requests(&self, text: &mut String) -> Result<()> {
        text.push_str(REQUESTS);
        writeln!(
            text,
            "\n| | bytes | cairn /s | p50 / p99 ms | CPU µs | stand-in /s | p50 / p99 ms | CPU µs | CPU, stand-in to cairn | CPU, cairn to bare hyper |"
        )?;
        writeln!(text, "|---|---|---|---|---|---|---|---|---|---|")?;
        for Measured { name, body, cairn, stand_in, bare, .. } in &self.requests {
            let cells = |figures: &Figures| {
                let Figures { per_second, p50, p99, cpu } = figures;
                format!("{per_second:.0} | {p50:.2} / {p99:.2} | {cpu:.0}")
            };
            let (ratio, overhead) = (stand_in.cpu / cairn.cpu, cairn.cpu / bare);
            writeln!(
                text,
                "| {name} | {body:.0} | {} | {} | {ratio:.1} | {overhead:.1} |",
                cells(cairn),
                cells(stand_in)
            )?;
        }
        let compared: usize = self.requests.iter().map(|measured| measured.compared).sum();
        Ok(writeln!(text, "\n{compared} answers were compared record by record; none differs.")?)
    }

    fn offsets(&self, text: &mut String, plot: &Path) -> Result<()> {
        writeln!(text, "\n## A page by its offset\n")?;
        writeln!(text, "100 of all transactions, one request at a time, median.\n")?;
        writeln!(text, "| offset | cairn ms | stand-in ms |\n|---|---|---|")?;
        for (offset, [cairn, stand_in]) in &self.by_offset {
            writeln!(text, "| {offset} | {cairn:.2} | {stand_in:.2} |")?;
        }
        writeln!(text, "\n![Page by offset](benchmarks/page-by-offset.svg)")?;
        let titles = Titles { plot: "A page of 100 transactions", x: "offset", y: "ms" };
        let line = |name, server: usize| Line {
            name,
            points: self.by_offset.iter().map(|(offset, times)| (wide(*offset), times[server])).collect(),
        };
        plots::lines(plot, &titles, &[line("cairn", 0), line("PostgreSQL", 1)])
    }

    fn connections(&self, text: &mut String, plot: &Path) -> Result<()> {
        writeln!(text, "\n## Latency under load\n")?;
        writeln!(text, "{}; each connection always has a request in flight.\n", crate::cases::UNDER_LOAD)?;
        writeln!(
            text,
            "| connections | cairn /s | p50 / p99 ms | stand-in /s | p50 / p99 ms |\n|---|---|---|---|---|"
        )?;
        for (connections, figures) in &self.by_connections {
            let [cairn, stand_in] = figures
                .map(|Figures { per_second, p50, p99, .. }| format!("{per_second:.0} | {p50:.2} / {p99:.2}"));
            writeln!(text, "| {connections} | {cairn} | {stand_in} |")?;
        }
        writeln!(text, "\n![Latency by connections](benchmarks/latency-by-connections.svg)")?;
        let titles = Titles { plot: "Latency under load", x: "connections", y: "ms" };
        let line = |name, server: usize, figure: fn(&Figures) -> f64| Line {
            name,
            points: self
                .by_connections
                .iter()
                .map(|(n, of)| (wide(*n as u64), figure(&of[server])))
                .collect(),
        };
        let lines = [
            line("cairn, p50", 0, |figures| figures.p50),
            line("PostgreSQL, p50", 1, |figures| figures.p50),
            line("cairn, p99", 0, |figures| figures.p99),
            line("PostgreSQL, p99", 1, |figures| figures.p99),
        ];
        plots::log_lines(plot, &titles, &lines)
    }
}

/// Transactions per second in each tenth of `txs`, from the time and the transactions so far.
fn rates_by_decile(progress: &[(Duration, u64)], txs: u64) -> Vec<f64> {
    let reached = |part: u64| progress.iter().find(|(_, done)| *done >= txs * part / 10).copied();
    let mut last = (Duration::ZERO, 0);
    let rate = |part| {
        let (elapsed, done) = reached(part)?;
        let rate = per_second(done - last.1, elapsed.saturating_sub(last.0));
        last = (elapsed, done);
        Some(rate)
    };
    (1..=10).map_while(rate).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for eyes, below 2^53")]
fn wide(number: u64) -> f64 {
    number as f64
}
