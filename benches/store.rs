//! Cost of lists in each engine: pushes and their commit, pages, and the position of a value.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use anyhow::Result;
use benches::pick::Pick;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use store::list::{self, COUNT};
use store::{
    Access, Bounds, Counts, Durability, List, MemStore, Order, RocksOptions, RocksStore, Store, TableSpec,
    Txn,
};
use tempfile::TempDir;

/// Numbers of a holder.
///
/// | holder (20) | ordinal (8, BE) | → number (varint)
struct Numbers;

impl List for Numbers {
    const SPEC: &'static TableSpec = &TableSpec { name: "numbers", tag: 0x10, access: Access::Scan };
    type Owner = [u8; 20];
}

const TABLES: &[&TableSpec] = &[COUNT, Numbers::SPEC];

/// Pushes of one commit, about those of a hundred blocks.
const PUSHES: u64 = 10_000;
/// Number of holders.
const HOLDERS: u64 = 1_000;
/// Length of the list that the benchmark reads.
const LONG: u64 = 500_000;
/// Rows of a page.
const PAGE: u64 = 100;

fn main() -> Result<()> {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("store/mem");
    pushes(&mut group, || Ok((MemStore::new(), ())));
    let mem = MemStore::new();
    fill(&mem)?;
    reads(&mut group, &mem)?;
    group.finish();

    let mut group = criterion.benchmark_group("store/rocks");
    pushes(&mut group, rocks);
    let rocks = rocks()?;
    fill(&rocks.0)?;
    // Flushed into table files, where most rows of a database are.
    rocks.0.compact()?;
    reads(&mut group, &rocks.0)?;
    group.finish();
    criterion.final_summary();
    Ok(())
}

/// A database and its directory, in drop order.
fn rocks() -> Result<(RocksStore, TempDir)> {
    let directory = tempfile::tempdir()?;
    let store = RocksStore::open(directory.path(), TABLES, RocksOptions::default())?;
    Ok((store, directory))
}

/// A transaction full of pushes and its commit, into an empty store.
fn pushes<S: Store, D>(group: &mut BenchmarkGroup<'_, WallTime>, open: impl Fn() -> Result<(S, D)>) {
    let mut pick = Pick::seeded(1);
    let holders: Vec<_> = (0..PUSHES).map(|_| holder(pick.below(HOLDERS))).collect();
    group.throughput(Throughput::Elements(PUSHES)).sample_size(20);
    group.bench_function("push and commit (elements: pushes)", |bencher| {
        bencher.iter_batched_ref(
            || open().expect("a store can be opened"),
            |(store, _)| commit(store, &holders, 1).expect("pushes can be committed"),
            BatchSize::PerIteration,
        );
    });
}

/// One long list.
fn fill(store: &dyn Store) -> Result<()> {
    for first in (0..LONG).step_by(50_000) {
        commit(store, &vec![holder(0); 50_000], first)?;
    }
    Ok(())
}

/// Reads of the long list in `store`, at positions spread over its whole length.
fn reads(group: &mut BenchmarkGroup<'_, WallTime>, store: &dyn Store) -> Result<()> {
    let owner = holder(0);
    let snapshot = store.snapshot()?;
    let mut pick = Pick::seeded(2);
    group.throughput(Throughput::Elements(PAGE)).sample_size(50);
    group.bench_function("page of a list", |bencher| {
        bencher.iter(|| {
            let first = pick.below(LONG - PAGE);
            list::slice::<Numbers>(&*snapshot, &owner, first..first + PAGE).expect("the list is there")
        });
    });
    for (name, order) in
        [("scan of 100 rows, ascending", Order::Asc), ("scan of 100 rows, descending", Order::Desc)]
    {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let at =
                    [&owner[..], &pick.below(LONG - 2 * PAGE).saturating_add(PAGE).to_be_bytes()].concat();
                let bounds = match order {
                    Order::Asc => Bounds { start: &at, end: None },
                    Order::Desc => Bounds { start: &[], end: Some(&at) },
                };
                snapshot.scan(Numbers::SPEC, bounds, order, 100).expect("the rows are there")
            });
        });
    }
    group.throughput(Throughput::Elements(1));
    group.bench_function("place of a value in half a million", |bencher| {
        bencher.iter(|| {
            let value = pick.below(LONG);
            list::position::<Numbers>(&*snapshot, &owner, LONG, value).expect("the list is there")
        });
    });
    Ok(())
}

/// Pushes increasing numbers from `first` on, one for each of `holders`, and commits them.
fn commit(store: &dyn Store, holders: &[[u8; 20]], first: u64) -> Result<()> {
    let mut counts = Counts::new(1 << 16);
    let snapshot = store.snapshot()?;
    let mut txn = Txn::new(&*snapshot, &mut counts);
    for (number, holder) in (first..).zip(holders) {
        txn.push::<Numbers>(holder, number)?;
    }
    let (batch, pending) = txn.finish();
    drop(snapshot);
    store.commit(batch, Durability::Buffered)?;
    counts.absorb(pending);
    Ok(())
}

/// The address of a holder: distinct, in pseudo-random order.
fn holder(number: u64) -> [u8; 20] {
    let mut address = [0; 20];
    let mut pick = Pick::seeded(number);
    for part in address.chunks_mut(4) {
        part.copy_from_slice(&pick.below(1 << 32).to_be_bytes()[4..]);
    }
    address
}
