//! Parameters of the lists of token movements, against a naive scan of all of them.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use query::Indexer;
use serde_json::Value;
use web::app::App;

use super::transfers::{ROOT, all, app, encoded, get, is_fee, text};

const KINDS: [&str; 12] = [
    "transfer",
    "fee",
    "fee_refund",
    "mint",
    "burn",
    "ibc_out",
    "ibc_in",
    "ibc_refund",
    "bridge_out",
    "bridge_in",
    "stake",
    "reward",
];

/// A request by account, by its choices.
#[derive(Clone, Debug)]
struct Query {
    account: prop::sample::Index,
    directions: Vec<&'static str>,
    kinds: Vec<&'static str>,
    token: Option<prop::sample::Index>,
    counterparty: Option<prop::sample::Index>,
    include: (bool, bool),
    heights: Option<(prop::sample::Index, u64)>,
    times: Option<(prop::sample::Index, prop::sample::Index)>,
    limit: usize,
    reverse: bool,
}

fn queries() -> impl Strategy<Value = Query> {
    use prop::option::of;
    let few = |words: &'static [&'static str]| prop::sample::subsequence(words, 0..=words.len().min(3));
    (
        any::<prop::sample::Index>(),
        few(&["in", "out", "self"]),
        of(few(&KINDS)),
        of(any::<prop::sample::Index>()),
        prop::option::weighted(0.3, any::<prop::sample::Index>()),
        any::<(bool, bool)>(),
        of((any::<prop::sample::Index>(), 0_u64..300)),
        of(any::<(prop::sample::Index, prop::sample::Index)>()),
        1_usize..200,
        any::<bool>(),
    )
        .prop_map(
            |(account, directions, kinds, token, counterparty, include, heights, times, limit, reverse)| {
                let kinds = kinds.unwrap_or_default();
                Query {
                    account,
                    directions,
                    kinds,
                    token,
                    counterparty,
                    include,
                    heights,
                    times,
                    limit,
                    reverse,
                }
            },
        )
}

struct Chain {
    app: App<Indexer>,
    every: Vec<Value>,
    accounts: Vec<String>,
    tokens: Vec<Value>,
}

impl Chain {
    async fn open(name: &str) -> Self {
        let app = app(name).await;
        let every = all(&app, ROOT, 1000);
        let sides = every.iter().flat_map(|it| [text(it, "from"), text(it, "to")]);
        let accounts: BTreeSet<String> = sides.filter(|it| !it.is_empty()).map(str::to_owned).collect();
        let mut tokens: Vec<Value> = Vec::new();
        for record in &every {
            if !tokens.contains(&record["token"]) {
                tokens.push(record["token"].clone());
            }
        }
        Self { app, every, accounts: accounts.into_iter().collect(), tokens }
    }

    /// The target of a query without paging, whether its rows are searched for, and the rows of a scan.
    fn scanned(&self, query: &Query) -> (String, bool, Vec<&Value>) {
        let account = query.account.get(&self.accounts);
        let mut target = format!("{ROOT}/by_account/{account}?include_zero={}", query.include.1);
        write!(target, "&include_fees={}&direction={}", query.include.0, query.directions.join(",")).unwrap();
        let kinds: Vec<String> = query.kinds.iter().map(|kind| format!("&kind={kind}")).collect();
        target += &kinds.concat();
        let token = query.token.map(|token| token.get(&self.tokens));
        // A contract may log movements of several types.
        let name = token
            .map(|it| if text(it, "address").is_empty() { text(it, "denom") } else { text(it, "address") });
        if let Some(name) = name {
            write!(target, "&token={}", encoded(name)).unwrap();
        }
        let other = query.counterparty.map(|other| other.get(&self.accounts));
        if let Some(other) = other {
            write!(target, "&counterparty={other}").unwrap();
        }
        let height = |it: &Value| text(it, "height").parse::<u64>().unwrap();
        let heights = query.heights.map(|(at, more)| {
            let from = height(at.get(&self.every));
            (from, from + more)
        });
        if let Some((from, to)) = heights {
            write!(target, "&from_height={from}&to_height={to}").unwrap();
        }
        let times = query.times.map(|(from, to)| {
            let of = |at: prop::sample::Index| text(at.get(&self.every), "timestamp");
            (of(from), of(to))
        });
        if let Some((from, to)) = times {
            write!(target, "&from_time={from}&to_time={to}").unwrap();
        }
        let time = |text: &str| chain::Timestamp::parse(text).unwrap().unix_nanos();
        let wants = |it: &&Value| {
            let (gave, got) = (text(it, "from") == account, text(it, "to") == account);
            let direction = match (gave, got) {
                (true, true) => "self",
                (true, false) => "out",
                (false, true) => "in",
                (false, false) => return false,
            };
            let names_fees = query.kinds.iter().any(|kind| kind.starts_with("fee"));
            let class = if text(it, "amount") == "0" {
                query.include.1
            } else if is_fee(it) {
                query.include.0 || names_fees
            } else {
                query.directions.is_empty() || query.directions.contains(&direction)
            };
            let other_side = if gave { text(it, "to") } else { text(it, "from") };
            let address = |it: &Value| {
                text(&it["token"], if text(&it["token"], "address").is_empty() { "denom" } else { "address" })
                    .to_owned()
            };
            class
                && (query.kinds.is_empty() || query.kinds.contains(&text(it, "kind")))
                && name.is_none_or(|name| address(it) == name)
                && other.is_none_or(|other| other_side == other)
                && heights.is_none_or(|(from, to)| (from..=to).contains(&height(it)))
                && times
                    .is_none_or(|(from, to)| (time(from)..=time(to)).contains(&time(text(it, "timestamp"))))
        };
        let mut rows: Vec<&Value> = self.every.iter().filter(wants).collect();
        if query.reverse {
            rows.reverse();
        }
        (target, !query.kinds.is_empty() || other.is_some(), rows)
    }

    /// Compares the pages of a query, by its cursors, with a scan.
    fn check(&self, query: &Query) {
        let (target, is_searched, expected) = self.scanned(query);
        let target =
            format!("{target}&pagination.limit={}&pagination.reverse={}", query.limit, query.reverse);
        let (mut found, mut key) = (Vec::new(), String::new());
        loop {
            let page = get(&self.app, &format!("{target}&pagination.key={key}"));
            let total = if is_searched { 0 } else { expected.len() };
            assert_eq!(page["pagination"]["total"], total.to_string(), "{target}");
            found.extend(page["transfers"].as_array().unwrap().iter().cloned());
            match page["pagination"]["next_key"].as_str() {
                Some(next) => next.clone_into(&mut key),
                None => break,
            }
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{target}");
        if !is_searched {
            let offset = expected.len() / 2;
            let page = get(&self.app, &format!("{target}&pagination.offset={offset}"));
            let page: Vec<&Value> = page["transfers"].as_array().unwrap().iter().collect();
            assert_eq!(
                page,
                expected[offset..(offset + query.limit).min(expected.len())],
                "{target} from {offset}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_choice_of_an_accounts_movements_is_what_a_scan_of_all_leaves() {
    for name in ["evm-fees", "l1-l2/l1", "move-ledger", "wasm-ledger"] {
        let chain = Chain::open(name).await;
        let mut runner =
            TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
        runner
            .run(&queries(), |query| {
                chain.check(&query);
                Ok(())
            })
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_selects_from_every_list_and_a_token_id_from_those_of_a_contract() {
    let chain = Chain::open("evm-scenario").await;
    let follow = |target: &str| {
        let mut found = Vec::new();
        let mut key = String::new();
        loop {
            let page = get(&chain.app, &format!("{target}&pagination.reverse=false&pagination.key={key}"));
            assert_eq!(page["pagination"]["total"], "0", "{target}");
            found.extend(page["transfers"].as_array().unwrap().iter().cloned());
            match page["pagination"]["next_key"].as_str() {
                Some(next) => next.clone_into(&mut key),
                None => return found,
            }
        }
    };
    let of = |wants: &dyn Fn(&&Value) -> bool| -> Vec<Value> {
        chain.every.iter().filter(wants).cloned().collect()
    };
    let minted = of(&|it| text(it, "kind") == "mint");
    assert!(minted.len() > 3);
    assert_eq!(follow(&format!("{ROOT}?kind=mint")), minted);
    let (height, hash) = (text(&minted[0], "height"), text(&minted[0], "txhash"));
    let at = |member: &'static str, value: &str| {
        let value = value.to_owned();
        of(&move |it| text(it, "kind") == "mint" && text(it, member) == value)
    };
    assert_eq!(follow(&format!("{ROOT}/by_height/{height}?kind=mint,burn")), at("height", height));
    assert_eq!(follow(&format!("{ROOT}/by_tx/{hash}?kind=mint")), at("txhash", hash));
    let nft = chain.every.iter().find(|it| it["token"]["type"] == "erc721").unwrap();
    let (contract, id) = (text(&nft["token"], "address"), text(nft, "token_id"));
    let of_token = of(&|it| it["token"] == nft["token"] && text(it, "token_id") == id);
    assert_eq!(follow(&format!("{ROOT}/by_token/{contract}?token_id={id}")), of_token);
}

#[tokio::test(flavor = "multi_thread")]
async fn nfts_of_move_and_of_cw721_are_where_their_last_movement_brought_them() {
    for name in ["move-scenario", "wasm-scenario", "wasm-ledger"] {
        let chain = Chain::open(name).await;
        let account = |text: &str| chain::Account::parse(text, "init").unwrap();
        let mut owners: HashMap<(chain::Account, String), String> = HashMap::new();
        let mut moved = 0;
        for record in &chain.every {
            let token = &record["token"];
            if !matches!(text(token, "type"), "collection" | "cw721") {
                continue;
            }
            let key = (account(text(token, "address")), text(record, "token_id").to_owned());
            let before = owners.insert(key.clone(), text(record, "to").to_owned());
            // The recording of wasm begins in the middle of the chain.
            assert!(
                name != "move-scenario" || before.unwrap_or_default() == text(record, "from"),
                "{record}"
            );
            assert_eq!(text(record, "amount"), "1");
            moved += 1;
            let by_id =
                get(&chain.app, &format!("{ROOT}/by_token/{}?token_id={}", text(token, "address"), key.1));
            assert!(by_id["transfers"].as_array().unwrap().contains(record), "{record}");
        }
        assert!(moved > 5, "{name}: {moved}");
        let mut compared = 0;
        let collections = get(&chain.app, "/indexer/nft/v1/collections?pagination.limit=1000");
        for collection in collections["collections"].as_array().unwrap() {
            let address = text(collection, "object_addr");
            let list = format!("/indexer/nft/v1/tokens/by_collection/{address}?pagination.limit=1000");
            for token in get(&chain.app, &list)["tokens"].as_array().unwrap() {
                let key = (account(address), text(&token["nft"], "token_id").to_owned());
                if let Some(owner) = owners.remove(&key) {
                    assert_eq!(account(&owner), account(text(token, "owner")), "{name} {key:?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 3, "{name}: {compared}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_whole_only_if_their_first_balances_are_known() {
    let chain = Chain::open("wasm-ledger").await;
    let complete = |contract: &str| {
        let token = chain.tokens.iter().find(|it| text(it, "address") == contract).unwrap();
        token["complete"].as_bool()
    };
    // A contract has instantiated it.
    let factory_made = "init1wug8sewp6cedgkmrmvhl3lf3tulagm9hnvy8p0rppz9yjw0g4wtq7947m6";
    assert_eq!(complete(factory_made), Some(false));
    assert!(chain.tokens.iter().any(|it| it["complete"] == true));
    assert!(chain.tokens.iter().all(|it| (it["type"] == "cw20") == it["complete"].is_boolean()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_to_the_zero_address_is_no_burn() {
    let chain = Chain::open("evm-fees").await;
    let zero = "0x0000000000000000000000000000000000000000";
    let sent: Vec<&Value> = chain.every.iter().filter(|it| text(it, "to") == zero).collect();
    let short = |it: &&Value| {
        (text(it, "height").to_owned(), text(it, "kind").to_owned(), text(it, "amount").to_owned())
    };
    // A value of the fee token, and a transfer that the sender has asked an ERC-20 for: the supply of both stayed.
    let expected = [("76", "3"), ("119", "5")]
        .map(|(height, amount)| (height.to_owned(), "transfer".to_owned(), amount.to_owned()));
    assert_eq!(sent.iter().map(short).collect::<Vec<_>>(), expected);
    let listed = all(&chain.app, &format!("{ROOT}/by_account/{zero}"), 10);
    assert_eq!(listed.iter().collect::<Vec<_>>(), sent);
    // burn(uint256) of the same tokens.
    for height in ["117", "413"] {
        let burned = chain.every.iter().any(|it| {
            text(it, "height") == height && text(it, "kind") == "burn" && text(it, "to").is_empty()
        });
        assert!(burned, "{height}");
    }
}
