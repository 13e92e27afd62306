//! Databases of recorded chains, damaged in every known way: each kind of damage is found and repaired.

mod damages;
pub(crate) mod database;
mod drifting;
mod evm_damages;
mod held;
mod owners;

use ingest::verify::Scope;
use schema::tx::AccountTxs;
use store::{List as _, Table as _};
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
