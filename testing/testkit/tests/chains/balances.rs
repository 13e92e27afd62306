//! Balances of a chain with fees and unusual tokens: every account in every token at every height, as its contracts
//! said.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead as _;
use std::sync::Arc;
use std::time::Duration;

use chain::movement::Token;
use chain::{Account, U256};
use ingest::{Config, Ingest};
use replay::Recording;
use replay::answers::HttpReply;
use schema::index::Index;
use schema::known_balance::Known;
use schema::known_token::KnownToken;
use schema::ledger::{History, Holder, LEDGER};
use schema::meta::{self, RichLane};
use schema::rich::{self, Address, Erc20s};
use serde_json::Value;
use store::{MemStore, Message, Store};
use testkit::live::Live;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};

use crate::{etherscan, otterscan};

static OF_LEDGER: Index = LEDGER;

/// The contract of the fee token.
const GAS: &str = "0x042add9e80f7a23ab71d5e1d392af1d3928b7d05";

const BALANCE_OF: &str = "70a08231";
const TOTAL_SUPPLY: &str = "18160ddd";

/// The contracts' replies.
struct Oracle {
    accounts: Vec<Address>,
    names: HashMap<Address, String>,
    /// By height and contract: the total supply, then the balance of each account. None before the contract's creation.
    replies: HashMap<(u64, Address), Vec<Option<U256>>>,
}

fn address(text: &str) -> Address {
    hex::decode(text.trim_start_matches("0x")).unwrap().try_into().unwrap()
}

impl Oracle {
    fn open(name: &str) -> Self {
        let file = std::fs::File::open(recording(name).join("balances.ndjson.zst")).unwrap();
        let text = zstd::stream::read::Decoder::new(file).unwrap();
        let mut lines = std::io::BufReader::new(text).lines();
        let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let list = |name: &str| first[name].as_array().unwrap().clone();
        let accounts = list("accounts").iter().map(|it| address(it["address"].as_str().unwrap())).collect();
        let named =
            |it: &Value| (address(it["contract"].as_str().unwrap()), it["name"].as_str().unwrap().to_owned());
        let names = list("tokens").iter().map(named).collect();
        let mut replies = HashMap::new();
        for line in lines {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            for (contract, amounts) in line["erc20"].as_object().unwrap() {
                let Some(amounts) = amounts.as_array() else { continue };
                let amount = |it: &Value| it.as_str().map(|digits| U256::from_str_radix(digits, 10).unwrap());
                let key = (line["height"].as_u64().unwrap(), address(contract));
                replies.insert(key, amounts.iter().map(amount).collect());
            }
        }
        Self { accounts, names, replies }
    }

    fn reply(&self, contract: Address, data: &str, height: u64) -> Option<U256> {
        let replies = self.replies.get(&(height, contract))?;
        let (function, argument) = data.split_at_checked(8)?;
        match function {
            TOTAL_SUPPLY => replies[0],
            BALANCE_OF => {
                let account = address(argument.get(24..)?);
                replies[1 + self.accounts.iter().position(|known| *known == account)?]
            }
            _ => None,
        }
    }

    /// Whether the rich list knows the balances of a contract by its logs, or by its replies.
    fn is_certain(&self, contract: &Address, left_out: &[&str]) -> bool {
        self.names.get(contract).is_some_and(|name| !left_out.contains(&name.as_str()))
    }

    /// What `account` holds at `height` in other tokens than `left_out`.
    fn held(&self, account: &Address, height: u64, left_out: &[&str]) -> BTreeMap<Address, U256> {
        let place = self.accounts.iter().position(|known| known == account).unwrap();
        let of = |contract: &Address| self.replies.get(&(height, *contract))?[1 + place];
        let contracts = self.names.keys().filter(|contract| self.is_certain(contract, left_out));
        contracts
            .filter_map(|contract| Some((*contract, of(contract)?)))
            .filter(|(_, amount)| !amount.is_zero())
            .collect()
    }

    /// The first balance of `store` that differs at `height`, in tokens other than `left_out`.
    fn difference(&self, store: &dyn Store, height: u64, left_out: &[&str]) -> Option<String> {
        let snapshot = store.snapshot().unwrap();
        for (contract, name) in self.names.iter().filter(|(_, name)| !left_out.contains(&name.as_str())) {
            let Some(replies) = self.replies.get(&(height, *contract)) else { continue };
            for (account, reply) in self.accounts.iter().zip(&replies[1..]) {
                let held = rich::balance(&*snapshot, contract, account).unwrap().map(U256::from_be_bytes);
                let (held, reply) = (held.unwrap_or_default(), reply.unwrap_or_default());
                if held != reply {
                    let account = hex::encode(account);
                    return Some(format!(
                        "{name} of {account} at {height}: {held}, the contract says {reply}"
                    ));
                }
            }
        }
        None
    }
}

async fn node(recording: &Arc<Recording>, oracle: &Arc<Oracle>) -> OverriddenNode {
    let oracle = Arc::clone(oracle);
    let alter = move |exchange: RecordedExchange<'_>| -> HttpReply {
        let call: Value = serde_json::from_slice(exchange.request.body()).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().trim_start_matches("0x").to_owned();
        let (to, data) = (text(&call["params"][0]["to"]), text(&call["params"][0]["data"]));
        let height = u64::from_str_radix(&text(&call["params"][1]), 16);
        let reply = match (call["method"].as_str(), height) {
            (Some("eth_call"), Ok(height)) if to.len() == 40 => oracle.reply(address(&to), &data, height),
            _ => None,
        };
        match reply {
            Some(amount) => exchange.with_result(&format!("0x{amount:064x}").into()),
            None => exchange.answer,
        }
    };
    OverriddenNode::start(Arc::clone(recording), alter).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_balance_agrees_with_its_contract_at_each_height() {
    let recording = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    let oracle = Arc::new(Oracle::open("evm-fees"));
    let node = node(&recording, &oracle).await;
    let store = Arc::new(MemStore::new());
    let config = indexed::config(&recording).unwrap();
    let last = recording.last();
    // Not until no query about NFTs is open: contracts that refused one are asked again at heights that are not recorded.
    let clients = Arc::new(node.clients().unwrap());
    let ingest = Ingest::prepare(config, clients, Arc::<MemStore>::clone(&store) as _).await.unwrap();
    indexed::run_to(&ingest, last).await.unwrap();
    // Their transfers move other amounts than they log, or balances change without a log.
    let drifting = ["fee", "reb", "liar"];
    let zero = [0; 20];
    let kept = |contract: &Address| rich::balance(&*store.snapshot().unwrap(), contract, &zero).unwrap();
    let kept: Vec<_> = oracle.names.keys().filter_map(kept).map(U256::from_be_bytes).collect();
    assert_eq!(kept.iter().sum::<U256>(), U256::from(8), "what two tokens keep at the zero address");
    holdings_are_what_the_contracts_said(&oracle, Arc::<MemStore>::clone(&store) as _, last, &drifting).await;
    for height in (1..=last).rev() {
        rich::rewind(&*store, height).unwrap();
        let lane: RichLane = meta::read(&*store.snapshot().unwrap()).unwrap().unwrap();
        assert_eq!(lane.height, height);
        assert_eq!(oracle.difference(&*store, height, &drifting), None);
        for account in &oracle.accounts {
            let snapshot = store.snapshot().unwrap();
            let held = |contract: &Address| {
                rich::balance(&*snapshot, contract, account).unwrap().is_some_and(|amount| amount != [0; 32])
            };
            let listed = rich::tokens_of(&*snapshot, account, None, store::Order::Asc, 1000).unwrap();
            let listed: BTreeSet<_> = listed.into_iter().filter(|it| held(it)).collect();
            let expected = oracle.held(account, height, &drifting);
            let listed: Vec<_> = listed.into_iter().filter(|it| oracle.is_certain(it, &drifting)).collect();
            assert_eq!(listed, expected.into_keys().collect::<Vec<_>>(), "{} {height}", hex::encode(account));
        }
    }
}

/// Compares the tokens of each account, as Etherscan's API and as Otterscan's methods list them, with the contracts' replies.
async fn holdings_are_what_the_contracts_said(
    oracle: &Oracle,
    store: Arc<dyn Store>,
    height: u64,
    drifting: &[&str],
) {
    let app = etherscan::over(Arc::clone(&store));
    let rpc = otterscan::over(store);
    let mut compared = 0;
    for account in &oracle.accounts {
        let name = format!("0x{}", hex::encode(account));
        let mut expected = oracle.held(account, height, drifting);
        // The fee token is the native currency.
        expected.remove(&address(GAS));
        let rows = |action: &str, more: &str| format!("module=account&action={action}&address={name}{more}");
        let of = |row: &Value, contract: &str, amount: &str| {
            let number = U256::from_str_radix(row[amount].as_str().unwrap(), 10).unwrap();
            (address(row[contract].as_str().unwrap()), number)
        };
        let listed = etherscan::rows(&app, &rows("addresstokenbalance", "")).await;
        let found: Vec<_> = listed.iter().map(|row| of(row, "TokenAddress", "TokenQuantity")).collect();
        let certain = |(contract, _): &&(Address, U256)| oracle.is_certain(contract, drifting);
        let found_certain: BTreeMap<_, _> = found.iter().filter(certain).copied().collect();
        assert_eq!(found_certain, expected, "{name}");
        assert!(found.is_sorted_by(|one, next| one.0 < next.0), "{found:?}");
        let blockscout = etherscan::rows(&app, &rows("tokenlist", "")).await;
        let same: Vec<_> = blockscout.iter().map(|row| of(row, "contractAddress", "balance")).collect();
        assert_eq!(same, found);
        let page = etherscan::rows(&app, &rows("addresstokenbalance", "&page=2&offset=2")).await;
        assert_eq!(page[..], listed[listed.len().min(2)..listed.len().min(4)]);
        let holdings = otterscan::reply(&rpc, "ots2_getERC20Holdings", &serde_json::json!([name])).await;
        let contracts: Vec<_> = found
            .iter()
            .map(|(contract, _)| serde_json::json!({ "address": format!("0x{}", hex::encode(contract)) }))
            .collect();
        assert_eq!(holdings["result"], Value::from(contracts), "{holdings}");
        compared += expected.len();
    }
    assert!(compared > 10, "{compared}");
    let nobody = format!("module=account&action=addresstokenbalance&address=0x{}", "5b".repeat(20));
    let none = etherscan::reply(&app, &nobody).await;
    assert_eq!((&none["status"], &none["message"]), (&"0".into(), &"No tokens found".into()), "{none}");
    let missing = etherscan::reply(&app, "module=account&action=tokenlist").await;
    assert_eq!(missing["result"], "Error! Missing address", "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reconciled_every_balance_is_right_and_every_token_complete_that_does_not_round() {
    let recording = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    let oracle = Arc::new(Oracle::open("evm-fees"));
    let node = node(&recording, &oracle).await;
    let store = Arc::new(MemStore::new());
    let config =
        Config { reconcile_every: Some(Duration::from_millis(40)), ..indexed::config(&recording).unwrap() };
    let clients = Arc::new(node.clients().unwrap());
    let mut live = Live::start(clients, config, Arc::<MemStore>::clone(&store) as _).await.unwrap();
    live.reach(&recording, recording.last()).await.unwrap();
    let complete = || {
        let snapshot = store.snapshot().unwrap();
        let is_complete = |contract: &Address| {
            store::table::read::<Erc20s>(&*snapshot, contract)
                .unwrap()
                .is_some_and(|Message(token)| token.complete)
        };
        let incomplete = oracle.names.iter().filter(|(contract, _)| !is_complete(contract));
        incomplete.map(|(_, name)| name.as_str()).collect::<Vec<_>>() == ["reb"]
    };
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let settled = async {
        while oracle.difference(&*store, recording.last(), &[]).is_some() || !complete() {
            looks.tick().await;
        }
    };
    let settled = tokio::time::timeout(Duration::from_mins(1), settled).await;
    assert!(settled.is_ok(), "{:?}", oracle.difference(&*store, recording.last(), &[]));
    live.stop().await.unwrap();
}

/// The balance at `height` by movements, with whether it is exact; `None` if it is not known.
fn at_height(store: &dyn Store, contract: Address, account: Address, height: u64) -> Option<(U256, bool)> {
    let (snapshot, token, account) =
        (store.snapshot().unwrap(), Token::Erc20(contract), Account::from(account));
    let history = History::of(&*snapshot, &token, Holder(Some(account))).unwrap();
    let last = history.until(height).unwrap();
    let known = Known::of(&*snapshot, &token, account, &history).unwrap()?;
    Some((known.at(height, last)?, known.is_exact()))
}

#[tokio::test(flavor = "multi_thread")]
async fn movements_lead_from_the_rich_list_to_every_balance_at_every_height() {
    let recording = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    let oracle = Arc::new(Oracle::open("evm-fees"));
    let node = node(&recording, &oracle).await;
    let store = Arc::new(MemStore::new());
    let config = Config {
        indexes: vec![&OF_LEDGER],
        reconcile_every: Some(Duration::from_millis(40)),
        ..indexed::config(&recording).unwrap()
    };
    let clients = Arc::new(node.clients().unwrap());
    let mut live = Live::start(clients, config, Arc::<MemStore>::clone(&store) as _).await.unwrap();
    live.reach(&recording, recording.last()).await.unwrap();
    // Their transfers move other amounts than they log, or balances change without a log.
    let odd = ["fee", "reb", "liar", "weth"];
    let is_odd = |contract: &Address| odd.contains(&oracle.names[contract].as_str());
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let all_drift = || {
        let snapshot = store.snapshot().unwrap();
        let drifts = |contract: &Address| {
            let state = store::table::read::<Erc20s>(&*snapshot, contract).unwrap();
            state.is_some_and(|Message(token)| token.drifting)
        };
        let mut moved = oracle
            .names
            .keys()
            .filter(|contract| ["fee", "reb", "liar"].contains(&oracle.names[*contract].as_str()));
        moved.all(drifts)
    };
    let all_have_supplies = || {
        let snapshot = store.snapshot().unwrap();
        let supply = |contract: &Address| {
            let token = Token::Erc20(*contract);
            KnownToken::of(&*snapshot, &token).unwrap().supply(&*snapshot, &token, recording.last()).unwrap()
        };
        let is_told = |contract: &&Address| {
            oracle.replies.get(&(recording.last(), **contract)).is_some_and(|replies| replies[0].is_some())
        };
        oracle.names.keys().filter(is_told).all(|contract| supply(contract).amount.is_some())
    };
    while !all_drift() || !all_have_supplies() {
        looks.tick().await;
    }
    live.stop().await.unwrap();
    supplies_are_right(&*store, &oracle, &odd);
    let mut compared = 0;
    for ((height, contract), replies) in &oracle.replies {
        for (account, reply) in oracle.accounts.iter().zip(&replies[1..]) {
            let Some((amount, is_exact)) = at_height(&*store, *contract, *account, *height) else {
                assert!(
                    is_odd(contract),
                    "{} of {} is not known",
                    oracle.names[contract],
                    hex::encode(account)
                );
                continue;
            };
            if is_odd(contract) {
                let is_right = amount == reply.unwrap_or_default();
                assert!(is_right || !is_exact, "{} {height} is called exact", oracle.names[contract]);
            } else {
                let name = &oracle.names[contract];
                assert_eq!(
                    (amount, is_exact),
                    (reply.unwrap_or_default(), true),
                    "{name} {height} {}",
                    hex::encode(account)
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 100_000, "{compared}");
}

/// The supplies of each height, from one that a contract was asked for.
fn supplies_are_right(store: &dyn Store, oracle: &Oracle, odd: &[&str]) {
    let snapshot = store.snapshot().unwrap();
    let mut compared = 0;
    for ((height, contract), replies) in &oracle.replies {
        let (token, name) = (Token::Erc20(*contract), oracle.names[contract].as_str());
        let known = KnownToken::of(&*snapshot, &token).unwrap();
        let supply = known.supply(&*snapshot, &token, *height).unwrap();
        if odd.contains(&name) {
            assert!(!known.is_drifting || known.complete_from.is_none(), "{name}");
            continue;
        }
        assert_eq!(
            (known.complete_from, known.is_drifting, known.is_silent),
            (Some(1), false, false),
            "{name}"
        );
        assert_eq!(supply.amount, Some(replies[0].unwrap_or_default()), "{name} {height}");
        compared += 1;
    }
    assert!(compared > 500, "{compared}");
}
