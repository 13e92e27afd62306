//! The lane of the layer one, killed at its commits: it ends with the rows of a calm run.

use std::sync::Arc;

use schema::bridge::BRIDGE;
use schema::bridge_output::{L1Claim, L1Claims};
use store::{Bounds, Message, Order, Table as _};
use testkit::crashing_store::CrashingStore;

use crate::bridge_pair::Pair;

/// Heights of both chains that are visible one after another. Output 65 is deleted between the last two but one.
const STAGES: [(u64, u64); 6] = [(620, 180), (700, 250), (900, 350), (1028, 452), (1029, 452), (1430, 820)];

/// Rows of a table by name, key and value.
type Rows = Vec<(&'static str, Vec<u8>, Vec<u8>)>;

/// The rows of the index, and the claims without the times at which they were seen.
fn rows(pair: &Pair) -> (Rows, Vec<(u64, Vec<u8>)>) {
    let snapshot = pair.store.snapshot().unwrap();
    let tables = BRIDGE.tables.iter().filter(|spec| spec.name != L1Claims::SPEC.name);
    let all = tables.flat_map(|spec| {
        let rows = snapshot.scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap();
        rows.into_iter().map(move |(key, value)| (spec.name, key, value))
    });
    let claim = |sequence: u64| {
        let claim = store::table::read::<L1Claims>(&*snapshot, &sequence).unwrap();
        claim.map(|Message(L1Claim { tx_hash, .. })| (sequence, tx_hash))
    };
    (all.collect(), (1..=100).filter_map(claim).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_commit_the_lane_ends_with_the_rows_of_a_calm_run() {
    let calm = Pair::open("l1-l2");
    for (l1, l2) in STAGES {
        calm.index(l1, l2).await;
    }
    let wanted = rows(&calm);
    assert_eq!(wanted.1.len(), calm.l1_at(STAGES[5].0).claimed.len());
    let mut killed = 0;
    for seed in 0..4_u64 {
        let pair = Pair::open("l1-l2");
        for (stage, heights) in (0_u64..).zip(STAGES) {
            // Twice, because the second life begins with what the first one left.
            for life in 0..2 {
                let commits = (seed * 5 + stage * 3 + life) % 7;
                let dying = Arc::new(CrashingStore::after(commits, Arc::clone(&pair.store)));
                killed += usize::from(pair.index_in(dying, heights).await.is_err());
            }
            pair.index(heights.0, heights.1).await;
        }
        let (found, claims) = rows(&pair);
        assert_eq!(claims, wanted.1, "seed {seed}");
        for (found, wanted) in found.iter().zip(&wanted.0) {
            assert_eq!(found, wanted, "seed {seed}");
        }
        assert_eq!(found.len(), wanted.0.len(), "seed {seed}");
    }
    println!("killed {killed} times");
    assert!(killed > 10, "{killed}");
}
