//! Databases of recorded chains, damaged in every known way: each kind of damage is found and repaired.

mod damages;
pub(crate) mod database;
mod drifting;
mod evm_damages;
mod owners;

use ingest::verify::Scope;
use schema::rollback::{RollbackError, finish_pending, force_rollback, is_pending, rollback};
use schema::tx::AccountTxs;
use store::{List as _, Table as _};
use testkit::crashing_store::CrashingStore;
use testkit::indexed;

use self::damages::Damage;
use self::database::Indexed;

/// More heights than the small recordings have.
const EVERY_HEIGHT: Scope = Scope::Last(1000);

async fn find_and_heal(indexed: &Indexed, damages: &[Damage]) {
    let mut failures = Vec::new();
    for (name, damage) in damages {
        let store = indexed.copy().unwrap();
        damage(&*store).unwrap();
        match indexed.heal(&store).await {
            Ok(done) if done.found.is_sound() => failures.push(format!("{name}: not found")),
            Ok(_) => {}
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undamaged_database_has_no_findings() {
    for name in ["wasm-scenario", "move-scenario", "evm-scenario", "l1-l2/l2"] {
        let indexed = Indexed::new(name).await.unwrap();
        let store = indexed.copy().unwrap();
        for scope in [EVERY_HEIGHT, Scope::Last(1), Scope::Last(30), Scope::All] {
            let report = indexed.look(&store, scope).await.unwrap();
            assert!(report.is_sound(), "{name} {scope:?}: {:#?}", report.findings);
            assert!(report.checked["rows"] > 100, "{name} {scope:?}: {:?}", report.checked);
        }
        assert_eq!(indexed::digest(&*store).unwrap(), indexed.digest, "looking changes nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_blocks_and_records_is_found_and_repaired() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    find_and_heal(&indexed, damages::OF_BLOCKS).await;
    find_and_heal(&indexed, damages::OF_RECORDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_lists_is_found_and_repaired() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    find_and_heal(&indexed, damages::OF_LISTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_nfts_is_found_and_repaired() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    find_and_heal(&indexed, damages::OF_NFTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_evm_records_call_frames_and_the_rich_list_is_found_and_repaired() {
    let indexed = Indexed::new("evm-scenario").await.unwrap();
    find_and_heal(&indexed, evm_damages::OF_EVM).await;
    find_and_heal(&indexed, evm_damages::OF_RICH_LIST).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_rollback_of_an_undamaged_database_equals_a_rollback() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    for from in [5, 31, 50, 67] {
        let (store, rolled_back) = (indexed.copy().unwrap(), indexed.copy().unwrap());
        force_rollback(&*store, from).unwrap();
        rollback(&*rolled_back, from - 1).unwrap();
        assert_eq!(indexed::digest(&*store).unwrap(), indexed::digest(&*rolled_back).unwrap(), "from {from}");
    }
    let store = indexed.copy().unwrap();
    for from in [0, 3, 69] {
        let error = force_rollback(&*store, from).unwrap_err();
        assert!(matches!(error, RollbackError::OutOfRange { first: 4, last: 67, .. }), "{error:?}");
    }
    assert_eq!(indexed::digest(&*store).unwrap(), indexed.digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_node_only_derived_rows_are_repaired() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    let (_nobody, stop) = tokio::sync::watch::channel(false);
    let heal = async |store| {
        let scratch = database::scratch();
        ingest::verify::repair(&store, None, &*scratch, stop.clone()).await.unwrap()
    };
    let store = indexed.copy().unwrap();
    database::lose(&*store, schema::tx::TxByHash::SPEC).unwrap();
    database::lose(&*store, schema::nft::Holdings::SPEC).unwrap();
    let done = heal(std::sync::Arc::clone(&store)).await;
    assert!(!done.found.is_sound() && done.left.is_sound(), "{:#?}", done.left.findings);
    assert_eq!(indexed::digest(&*store).unwrap(), indexed.digest);

    database::lose(&*store, AccountTxs::SPEC).unwrap();
    let damaged = indexed::digest(&*store).unwrap();
    let done = heal(std::sync::Arc::clone(&store)).await;
    assert!(!done.left.is_sound() && done.steps.is_empty(), "{:?}", done.steps);
    assert_eq!(indexed::digest(&*store).unwrap(), damaged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_rollback_may_be_interrupted_between_any_two_commits() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    let back = indexed.copy().unwrap();
    rollback(&*back, 30).unwrap();
    let back = indexed::digest(&*back).unwrap();
    for commits in 0.. {
        let store = indexed.copy().unwrap();
        // Above the remaining heights, so that it is removed.
        damages::lose_entry(&*store, AccountTxs::SPEC, |ordinal, len| ordinal + 2 == len && len > 6).unwrap();
        let outcome = force_rollback(&CrashingStore::after(commits, std::sync::Arc::clone(&store)), 31);
        assert_eq!(is_pending(&*store).unwrap(), commits > 0 && outcome.is_err(), "after {commits} commits");
        if commits > 0 {
            finish_pending(&*store).unwrap();
            assert_eq!(indexed::digest(&*store).unwrap(), back, "after {commits} commits");
        }
        if outcome.is_ok() {
            assert!(commits > 10, "only {commits} commits");
            break;
        }
    }
}
