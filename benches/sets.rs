//! Cost of a page of a ranked set at any offset: tokens in both orders and holders, at the first, random and last
//! offsets of several hundred thousand rows. Handlers only, without sockets.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use benches::pick::Pick;
use criterion::Criterion;
use query::Indexer;
use schema::meta::{self, BlockLane, Identity};
use schema::nft::fold;
use schema::nft::{Change, Collection, Entry, Mint, NewCollection, Place, TokenName};
use schema::rich::{self, Erc20, Erc20s};
use store::{Counts, Durability, Message, RocksOptions, RocksStore, Store, Txn};
use testkit::indexed;
use web::app::App;

/// Tokens of the only collection, and mints per block.
const TOKENS: u64 = 100_000;
const MINTS: u64 = 500;
/// Number of token owners.
const OWNERS: u64 = 4;
/// Holders of the only ERC-20.
const HOLDERS: u64 = 500_000;
/// Rows of a page.
const PAGE: u64 = 100;

fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(RocksStore::open(directory.path(), schema::TABLES, RocksOptions::default())?);
    fill(&*store)?;
    store.compact()?;
    let indexer = indexed::indexer(Arc::clone(&store) as Arc<dyn Store>)?;
    let app = App::new(indexer, query::ENDPOINTS)?;
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, &app);
    criterion.final_summary();
    Ok(())
}

fn bench(criterion: &mut Criterion, app: &App<Indexer>) {
    let (collection, owner) = (hex(0xc0), hex(0));
    let lists = [
        ("tokens by id", format!("/indexer/nft/v1/tokens/by_collection/{collection}"), TOKENS),
        (
            "tokens by height",
            format!("/indexer/nft/v1/tokens/by_collection/{collection}?order_by=height"),
            TOKENS,
        ),
        ("an owner's tokens", format!("/indexer/nft/v1/tokens/by_account/{owner}"), TOKENS / OWNERS),
        ("holders", format!("/indexer/richlist/v1/{}", hex(0xe2)), HOLDERS),
    ];
    let mut group = criterion.benchmark_group("sets");
    group.sample_size(60).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for (name, path, len) in lists {
        let join = if path.contains('?') { '&' } else { '?' };
        let at = |offset| format!("{path}{join}pagination.limit={PAGE}&pagination.offset={offset}");
        let mut pick = Pick::seeded(4);
        let random: Vec<String> = (0..500).map(|_| at(pick.below(len - PAGE))).collect();
        for (place, targets) in
            [("first", vec![at(0)]), ("random", random), ("deepest", vec![at(len - PAGE)])]
        {
            let mut targets = targets.iter().cycle();
            group.bench_function(format!("{name}, {place} offset"), |bencher| {
                bencher.iter(|| {
                    let response = app.get(targets.next().expect("there is a target"));
                    assert_eq!(response.status(), 200);
                    response.body().len()
                });
            });
        }
    }
    group.finish();
}

fn address(of: u64) -> [u8; 20] {
    let mut address = [0x11; 20];
    address[..8].copy_from_slice(&of.to_be_bytes());
    address
}

fn hex(of: u64) -> String {
    let account = chain::Account::from(address(of));
    account.to_hex()
}

fn fill(store: &dyn Store) -> Result<()> {
    let identity = Identity {
        format: schema::FORMAT,
        chain_id: "bench-1".to_owned(),
        vm: "evm".to_owned(),
        prefix: "init".to_owned(),
        start_height: 1,
    };
    schema::open::or_create(store, &identity)?;
    let collection = address(0xc0).to_vec();
    let new = NewCollection {
        address: collection.clone(),
        collection: Collection { name: "Many".to_owned(), height: 1, ..Collection::default() },
    };
    commit(store, |txn| {
        meta::put(txn, &BlockLane { height: 1 + TOKENS / MINTS, ..BlockLane::default() });
        let entry = Entry { time: 0, tx: 0, change: Some(Change::Collection(new.clone())) };
        Ok(fold::record(txn, &Place::of_event(1, 1), entry)?)
    })?;
    for block in 0..TOKENS / MINTS {
        let entry = |n: u64| {
            let token = TokenName { collection: collection.clone(), token_id: n.to_string() };
            let uri = format!("ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi/{n}.json");
            let owner = address(n % OWNERS).to_vec();
            let mint = Mint { token, owner, uri, ..Mint::default() };
            Entry { time: 0, tx: 0, change: Some(Change::Mint(mint)) }
        };
        commit(store, |txn| {
            for (ordinal, n) in (1..).zip(block * MINTS..(block + 1) * MINTS) {
                fold::record(txn, &Place::of_event(2 + block, ordinal), entry(n))?;
            }
            Ok(())
        })?;
    }
    let token = address(0xe2);
    commit(store, |txn| {
        txn.put::<Erc20s>(&token, &Message(Erc20 { complete: true, ..Erc20::default() }));
        Ok(())
    })?;
    let mut pick = Pick::seeded(5);
    for first in (0..HOLDERS).step_by(10_000) {
        commit(store, |txn| {
            for n in first..first + 10_000 {
                let mut amount = [0; 32];
                // Many holders have the same amount.
                amount[24..].copy_from_slice(&(1 + pick.below(HOLDERS / 2)).to_be_bytes());
                rich::set_balance(txn, &token, &address(n), Some(amount))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn commit(store: &dyn Store, write: impl FnOnce(&mut Txn<'_>) -> Result<()>) -> Result<()> {
    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    write(&mut txn)?;
    let (batch, _pending) = txn.finish();
    drop(snapshot);
    Ok(store.commit(batch, Durability::Buffered)?)
}
