//! Databases of recorded chains, damaged in every way that there is: each damage is found, and healed so that nothing of
//! it is left.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

#[path = "verify/damages.rs"]
mod damages;
#[path = "verify/database.rs"]
mod database;
#[path = "verify/evm_damages.rs"]
mod evm_damages;

use ingest::verify::Scope;

use damages::Damage;
use database::Indexed;

/// More heights than the small recordings have.
const EVERY_HEIGHT: Scope = Scope::Sample(1000);

async fn find_and_heal(indexed: &Indexed, damages: &[Damage], scope: Scope) {
    let mut failures = Vec::new();
    for (name, damage) in damages {
        let started = std::time::Instant::now();
        let store = indexed.copy().unwrap();
        damage(&*store).unwrap();
        let report = indexed.look(&store, scope).await.unwrap();
        if report.is_sound() {
            failures.push(format!("{name}: not found"));
            continue;
        }
        match indexed.heal(&store, scope).await {
            Ok(done) => println!("{name}: {:?}, {:?}, {:?}", report.counts, done.steps, started.elapsed()),
            Err(error) => failures.push(format!("{name}: {:?}: {error}", report.counts)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_in_what_was_never_damaged() {
    for name in ["wasm-scenario", "move-scenario", "evm-scenario"] {
        let started = std::time::Instant::now();
        let indexed = Indexed::new(name).await.unwrap();
        println!("{name} indexed {:?}", started.elapsed());
        let store = indexed.copy().unwrap();
        for scope in [EVERY_HEIGHT, Scope::Sample(5), Scope::All] {
            let started = std::time::Instant::now();
            let report = indexed.look(&store, scope).await.unwrap();
            assert!(report.is_sound(), "{name} {scope:?}: {:#?}", report.findings);
            println!("{name} {scope:?} {:?} {:?} {:?}", report.checked, report.unchecked, started.elapsed());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_blocks_and_records_is_found_and_healed() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    find_and_heal(&indexed, damages::OF_BLOCKS, EVERY_HEIGHT).await;
    find_and_heal(&indexed, damages::OF_RECORDS, EVERY_HEIGHT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_lists_is_found_and_healed() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    find_and_heal(&indexed, damages::OF_LISTS, EVERY_HEIGHT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_nfts_is_found_and_healed() {
    let indexed = Indexed::new("wasm-scenario").await.unwrap();
    find_and_heal(&indexed, damages::OF_NFTS, EVERY_HEIGHT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_evm_records_call_frames_and_the_rich_list_is_found_and_healed() {
    let indexed = Indexed::new("evm-scenario").await.unwrap();
    find_and_heal(&indexed, evm_damages::OF_EVM, Scope::Sample(4)).await;
    find_and_heal(&indexed, evm_damages::OF_RICH_LIST, Scope::Sample(400)).await;
}
