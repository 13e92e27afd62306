//! A chain whose tokens change balances without logs, and a node that has rebuilt its EVM index.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chain::U256;
use ingest::verify::{Scope, repair, verify};
use node::Node;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::audit::{Finding, Report};
use schema::evm_tx::EvmTxs;
use schema::rich::{self, Address, Balances};
use serde_json::Value;
use store::{Key as _, Store, Table as _};
use testkit::indexed;
use testkit::overridden_node::OverriddenNode;

use super::damages;
use super::database::{Indexed, change, put, rows, scratch};
use crate::planted::{self, ContractCall, ContractReply, Events};

/// The token that multiplies all balances by 1.5 at height [`REBASED`].
const REBASING: &str = "4605ac7f98658de8dda464aa92f4e75023b1ab9e";
const REBASED: u64 = 19;

/// Balances by height, contract and account.
type History = BTreeMap<u64, BTreeMap<(Address, Address), U256>>;

fn history(recording: &Recording) -> History {
    let (mut held, mut history) = (BTreeMap::<(Address, Address), U256>::new(), History::new());
    let address =
        |text: &str| -> Address { hex::decode(&text[text.len() - 40..]).unwrap().try_into().unwrap() };
    for height in recording.heights() {
        let results: Value = serde_json::from_slice(&height.block_results).unwrap();
        let txs = results["txs_results"].as_array().cloned().unwrap_or_default();
        let events = txs.iter().flat_map(|tx| tx["events"].as_array().cloned().unwrap_or_default());
        let attributes = events
            .filter(|event| event["type"] == "evm")
            .flat_map(|event| event["attributes"].as_array().cloned().unwrap());
        for log in attributes.filter(|attribute| attribute["key"] == "log") {
            let log: Value = serde_json::from_str(log["value"].as_str().unwrap()).unwrap();
            let topics: Vec<_> =
                log["topics"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
            let contract = address(log["address"].as_str().unwrap());
            let amount =
                || U256::from_str_radix(log["data"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
            match topics[..] {
                [_, from, to] => {
                    let (from, to) = ((contract, address(from)), (contract, address(to)));
                    *held.entry(to).or_default() += amount();
                    let before = held.entry(from).or_default();
                    *before = before.wrapping_sub(amount());
                }
                // A deposit.
                [_, account] => *held.entry((contract, address(account))).or_default() += amount(),
                _ => {}
            }
        }
        if height.height == REBASED {
            for ((contract, _), amount) in &mut held {
                if *contract == address(REBASING) {
                    *amount = *amount * U256::from(3) / U256::from(2);
                }
            }
        }
        history.insert(height.height, held.clone());
    }
    history
}

/// A chain of wrapped ether and a rebasing token.
struct Chain {
    recording: Arc<Recording>,
    history: Arc<History>,
}

impl Chain {
    fn new() -> Self {
        let recording = Arc::new(Recording::open(&testkit::recording("evm-weth-rebase")).unwrap());
        let history = Arc::new(history(&recording));
        Self { recording, history }
    }

    /// A node with the contracts' replies about all tokens but the fee token, and without `replies` the rebasing one.
    async fn node(&self, replies: bool) -> OverriddenNode {
        let (history, gas) =
            (Arc::clone(&self.history), hex::decode("042add9e80f7a23ab71d5e1d392af1d3928b7d05").unwrap());
        let rebasing = hex::decode(REBASING).unwrap();
        let reply = move |call: &ContractCall| match call.account() {
            Some(_) if call.to[..] == gas || (!replies && call.to[..] == rebasing) => ContractReply::Reverted,
            Some(account) => {
                let held = history.get(&call.height).and_then(|held| held.get(&(call.to, account)).copied());
                ContractReply::Amount(held.unwrap_or_default())
            }
            None if call.is_supply() => ContractReply::Reverted,
            None => ContractReply::Recorded,
        };
        planted::node(Arc::clone(&self.recording), Events::new(), reply).await
    }

    /// An index whose balances are those of the contracts.
    async fn index(&self, node: &OverriddenNode) -> Arc<dyn Store> {
        let every = Some(Duration::from_millis(40));
        planted::index(&self.recording, node, every, |store| self.is_right(store)).await
    }

    /// Whether balances are those of the contracts that reply, at the last height.
    fn is_right(&self, store: &dyn Store) -> bool {
        let held = &self.history[&self.recording.last()];
        let mut contracts: Vec<_> = held.keys().map(|(contract, _)| *contract).collect();
        contracts.dedup();
        contracts.iter().filter(|contract| contract[0] != 0x04).all(|contract| {
            let of_contract = held
                .iter()
                .filter(|((of, account), amount)| of == contract && *account != [0; 20] && !amount.is_zero());
            let expected: BTreeMap<_, _> =
                of_contract.map(|((_, account), amount)| (*account, *amount)).collect();
            planted::balances(store, *contract) == expected
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn right_balances_of_drifting_tokens_are_no_damage_and_no_repair_changes_them() {
    let chain = Chain::new();
    let node = chain.node(true).await;
    let store = chain.index(&node).await;
    let clients = Arc::new(node.clients().unwrap());
    let digest = indexed::digest(&*store).unwrap();
    for scope in [Scope::All, Scope::Last(5), Scope::Last(1)] {
        let report = verify(&store, Some(&clients), scope, &*scratch()).await.unwrap();
        assert!(report.is_sound(), "{scope:?}: {:#?}", report.findings);
        let notes = report.notes.iter().filter(|note| note.contains(REBASING)).count();
        // The last heights begin with what is stored.
        assert!(notes == 1 || scope != Scope::All, "{scope:?}: {:?}", report.notes);
    }
    let (_nobody, stop) = tokio::sync::watch::channel(false);
    let done = repair(&store, Some(&clients), &*scratch(), stop.clone()).await.unwrap();
    assert!(done.found.is_sound() && done.steps.is_empty(), "{:?} {:#?}", done.steps, done.found.findings);
    assert_eq!(indexed::digest(&*store).unwrap(), digest);

    // Damage to such a balance is found and repaired to what the contract says.
    let rebasing: Address = hex::decode(REBASING).unwrap().try_into().unwrap();
    let (account, amount) = planted::balances(&*store, rebasing).pop_first().unwrap();
    put(&*store, Balances::SPEC, (rebasing, account).to_bytes(), vec![5]).unwrap();
    let done = repair(&store, Some(&clients), &*scratch(), stop).await.unwrap();
    let unlike: Vec<_> =
        done.found.findings.iter().filter(|it| it.kind == "row unlike a new index's").collect();
    assert!(matches!(unlike[..], [finding] if finding.table == Balances::SPEC), "{:#?}", done.found.findings);
    assert!(unlike[0].stored == "05" && unlike[0].expected == format!("{amount:x}"), "{}", unlike[0]);
    assert!(done.left.is_sound(), "{:?} {:#?}", done.steps, done.left.findings);
    assert_eq!(indexed::digest(&*store).unwrap(), digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_of_drifting_tokens_without_their_contracts_replies_are_left_out_and_named() {
    let chain = Chain::new();
    let node = chain.node(true).await;
    let store = chain.index(&node).await;
    let digest = indexed::digest(&*store).unwrap();
    let mute = chain.node(false).await;
    let clients: Arc<Node> = Arc::new(mute.clients().unwrap());
    let (_nobody, stop) = tokio::sync::watch::channel(false);
    let done = repair(&store, Some(&clients), &*scratch(), stop).await.unwrap();
    let named = done.found.notes.iter().any(|note| note.contains(REBASING) && note.contains("not compared"));
    assert!(named, "{:?}", done.found.notes);
    assert!(done.found.unchecked.values().sum::<u64>() >= 30, "{:?}", done.found.unchecked);
    assert!(done.found.is_sound() && done.steps.is_empty(), "{:?} {:#?}", done.steps, done.found.findings);
    assert_eq!(indexed::digest(&*store).unwrap(), digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_rebuilt_its_evm_index_is_noted_and_changes_no_digest() {
    let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
    let indexed = Indexed::of(Arc::clone(&recording)).await.unwrap();
    let store = indexed.copy().unwrap();
    let faults = vec!["json-rpc:block-hashes=100".parse().unwrap()];
    let rebuilt = ReplayNode::start(
        Arc::clone(&recording),
        Addresses::default(),
        Options { faults, ..Options::default() },
    )
    .await
    .unwrap();
    let clients = Arc::new(testkit::indexed::clients(&rebuilt).unwrap());
    for scope in [Scope::All, Scope::Last(30)] {
        let report = verify(&store, Some(&clients), scope, &*scratch()).await.unwrap();
        assert!(report.is_sound(), "{scope:?}: {:#?}", report.findings);
        assert!(report.notes.iter().any(|note| note.contains("EVM block hashes")), "{:?}", report.notes);
    }
    let other = Indexed::of_node(&rebuilt, &recording).await.unwrap();
    assert_ne!(rows(&*other, EvmTxs::SPEC).unwrap(), rows(&*store, EvmTxs::SPEC).unwrap());
    assert_eq!(testkit::indexed::digest(&*other).unwrap(), indexed.digest);
}

/// The first row that differs from a new index's.
fn unlike(report: &Report) -> &Finding {
    report.findings.iter().find(|finding| finding.kind == "row unlike a new index's").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_names_the_members_that_differ_with_both_values() {
    let indexed = Indexed::new("evm-scenario").await.unwrap();
    let store = indexed.copy().unwrap();
    (damages::OF_BLOCKS[2].1)(&*store).unwrap();
    let report = indexed.look(&store, Scope::All).await.unwrap();
    let finding = unlike(&report);
    let time =
        |text: &str, year: &str| text.starts_with(&format!("json/timestamp {year}")) && text.len() < 60;
    assert!(time(&finding.stored, "3") && time(&finding.expected, "2"), "{finding}");

    // The record of a neighbour.
    let store = indexed.copy().unwrap();
    let all = rows(&*store, EvmTxs::SPEC).unwrap();
    put(&*store, EvmTxs::SPEC, all[10].0.clone(), all[11].1.clone()).unwrap();
    let report = indexed.look(&store, Scope::All).await.unwrap();
    let finding = unlike(&report);
    assert!(finding.stored.starts_with("record ") && finding.stored.contains("blockHash 0x"), "{finding}");
    assert!(finding.to_string().len() < 1500, "{finding}");

    // A flag of a token.
    let store = indexed.copy().unwrap();
    change::<rich::Erc20s, rich::Erc20>(&*store, |token| !std::mem::replace(&mut token.silent, true))
        .unwrap();
    let report = indexed.look(&store, Scope::All).await.unwrap();
    let finding = unlike(&report);
    assert_eq!((finding.stored.as_str(), finding.expected.as_str()), ("silent true", "silent false"));
}
