//! Claims whose transactions the layer one does not find when they are seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::bridge_output::{self, L1Claim};
use store::Snapshot;

use crate::bridge_pair::Pair;
use crate::transfers::get;

/// The stored claims.
fn claims(snapshot: &dyn Snapshot) -> BTreeMap<u64, L1Claim> {
    let claim = |sequence| Some((sequence, bridge_output::claim(snapshot, sequence).unwrap()?));
    (1..=100).filter_map(claim).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_stored_without_its_transaction_which_is_filled_in_later() {
    let pair = Pair::open("l1-l2");
    let heights = (pair.l1.last(), pair.l2.last());
    let expected = pair.l1_at(heights.0).claimed;
    let no_index = ["no-index".parse().unwrap()];
    pair.index_with(Arc::clone(&pair.store), heights, &no_index, |_| true).await.unwrap();
    let before = claims(&*pair.store.snapshot().unwrap());
    assert!(before.keys().eq(expected.keys()) && before.len() > 5, "{before:?}");
    assert!(before.values().all(|claim| claim.tx_hash.is_empty() && claim.seen > 0));
    let first = "/indexer/bridge/v1/withdrawals?state=claimed&pagination.reverse=false&pagination.limit=1";
    let one = get(&pair.app(), first)["withdrawals"][0].clone();
    assert_eq!((&one["state"], one.get("claimed_tx")), (&"claimed".into(), None));

    let is_filled =
        |snapshot: &dyn Snapshot| claims(snapshot).values().all(|claim| !claim.tx_hash.is_empty());
    pair.index_with(Arc::clone(&pair.store), heights, &[], is_filled).await.unwrap();
    let after = claims(&*pair.store.snapshot().unwrap());
    for (sequence, claim) in &after {
        assert_eq!(hex::encode_upper(&claim.tx_hash), expected[sequence]);
        assert_eq!(claim.seen, before[sequence].seen, "when it was seen first");
    }
    assert!(
        bridge_output::open_claims(&*pair.store.snapshot().unwrap(), 0, 100)
            .unwrap()
            .iter()
            .all(|sequence| !after.contains_key(sequence))
    );
}

#[test]
fn the_search_for_the_transaction_of_a_claim_ends_after_a_day() {
    const HOUR: u64 = 3_600_000_000_000;
    let claim = |seen, tx_hash: &[u8]| L1Claim { seen, tx_hash: tx_hash.to_vec() };
    assert!(claim(5, &[1; 32]).ends_search(5));
    assert!(!claim(5 + 23 * HOUR, &[]).ends_search(5));
    assert!(claim(5 + 24 * HOUR, &[]).ends_search(5));
}
