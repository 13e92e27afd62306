//! The lists of token movements, against a filter over all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use ingest::{Config, Ingest};
use query::Indexer;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::ledger::LEDGER;
use serde_json::Value;
use store::{MemStore, Store};
use testkit::{indexed, recording};
use web::app::App;

static INDEX: schema::index::Index = LEDGER;

pub(crate) const ROOT: &str = "/indexer/ledger/v1/transfers";

pub(crate) async fn app(chain: &str) -> App<Indexer> {
    let recording = Arc::new(Recording::open(&recording(chain)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config {
        indexes: vec![&INDEX],
        internal_txs: false,
        rich_list: false,
        ..indexed::config(&recording).unwrap()
    };
    let last = recording.last();
    let played = ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap();
    // Not until no query about NFTs is open: contracts that refused one are asked again at heights that are not recorded.
    let node = Arc::new(indexed::clients(&played).unwrap());
    let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await.unwrap();
    indexed::run_to(&ingest, last).await.unwrap();
    App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap()
}

pub(crate) fn get(app: &App<Indexer>, target: &str) -> Value {
    let reply = app.read(target).map_err(|error| format!("{target}: {}", error.message())).unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

/// All records of a list, oldest first, by pages of `limit`; their number is the total of each page.
pub(crate) fn all(app: &App<Indexer>, target: &str, limit: usize) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    let separator = if target.contains('?') { '&' } else { '?' };
    loop {
        let page = get(
            app,
            &format!(
                "{target}{separator}pagination.reverse=false&pagination.limit={limit}&pagination.offset={}",
                found.len()
            ),
        );
        let records = page["transfers"].as_array().unwrap();
        found.extend(records.iter().cloned());
        let total: usize = page["pagination"]["total"].as_str().unwrap().parse().unwrap();
        if records.len() < limit {
            assert_eq!(total, found.len(), "{target}");
            return found;
        }
    }
}

pub(crate) fn text<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap()
}

pub(crate) fn is_fee(record: &Value) -> bool {
    matches!(text(record, "kind"), "fee" | "fee_refund")
}

pub(crate) fn encoded(name: &str) -> String {
    name.replace('/', "%2F")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_list_of_movements_is_what_a_filter_over_all_leaves() {
    for chain in ["evm-scenario", "evm-fees", "l1-l2/l1", "l1-l2/l2", "move-ledger", "wasm-ledger"] {
        let app = app(chain).await;
        let every = all(&app, ROOT, 1000);
        assert!(every.len() > 20, "{chain}");
        for (number, record) in (1..).zip(&every) {
            assert_eq!(text(record, "sequence"), number.to_string(), "{chain}");
        }
        let parties: BTreeSet<&str> =
            every.iter().flat_map(|record| [text(record, "from"), text(record, "to")]).collect();
        for account in parties.into_iter().filter(|account| !account.is_empty()).take(40) {
            let (gave, got) =
                (|it: &&Value| text(it, "from") == account, |it: &&Value| text(it, "to") == account);
            let is_zero = |it: &&Value| text(it, "amount") == "0";
            let plain = |it: &&Value| !is_fee(it) && !is_zero(it);
            let of = |filter: &dyn Fn(&&Value) -> bool| -> Vec<Value> {
                every.iter().filter(|it| (gave(it) || got(it)) && filter(it)).cloned().collect()
            };
            let path = format!("{ROOT}/by_account/{account}");
            assert_eq!(all(&app, &path, 7), of(&plain), "{chain} {account}");
            assert_eq!(
                all(&app, &format!("{path}?include_fees=true&include_zero=true"), 100),
                of(&|_| true),
                "{chain} {account}"
            );
            assert_eq!(
                all(&app, &format!("{path}?direction=in,self"), 100),
                of(&|it| plain(it) && got(it)),
                "{chain} {account}"
            );
            let sent = of(&|it| plain(it) && gave(it) && !got(it));
            assert_eq!(all(&app, &format!("{path}?direction=out"), 100), sent, "{chain} {account}");
            if let Some(token) =
                sent.first().map(|it| &it["token"]).filter(|it| !text(it, "denom").is_empty())
            {
                let denom = encoded(text(token, "denom"));
                assert_eq!(
                    all(&app, &format!("{path}?direction=out&token={denom}"), 3),
                    of(&|it| plain(it) && gave(it) && !got(it) && it["token"] == *token),
                    "{chain} {account} {denom}"
                );
            }
        }
        let tokens: BTreeSet<String> = every.iter().map(|it| it["token"].to_string()).collect();
        for token in tokens {
            let token: Value = serde_json::from_str(&token).unwrap();
            for member in ["denom", "address"] {
                let name = text(&token, member);
                if name.is_empty() {
                    continue;
                }
                // A contract may log movements of several types.
                let of: Vec<&Value> = every.iter().filter(|it| it["token"][member] == name).collect();
                let listed = all(&app, &format!("{ROOT}/by_token/{}", encoded(name)), 900);
                assert_eq!(listed.iter().collect::<Vec<_>>(), of, "{chain} {name}");
            }
        }
        let heights: BTreeSet<u64> = every.iter().map(|it| text(it, "height").parse().unwrap()).collect();
        let height_of = |it: &Value| text(it, "height").parse::<u64>().unwrap();
        for height in heights.iter().step_by(heights.len() / 20 + 1) {
            let of: Vec<Value> = every.iter().filter(|it| height_of(it) == *height).cloned().collect();
            assert_eq!(all(&app, &format!("{ROOT}/by_height/{height}"), 50), of, "{chain} {height}");
            let from = format!("{ROOT}?from_height={height}&to_height={}", height + 9);
            let last = height + 9;
            let of: Vec<Value> =
                every.iter().filter(|it| (*height..=last).contains(&height_of(it))).cloned().collect();
            assert_eq!(all(&app, &from, 50), of, "{chain} {from}");
            let hash = text(&of[0], "txhash");
            if !hash.is_empty() {
                let of: Vec<Value> = every.iter().filter(|it| text(it, "txhash") == hash).cloned().collect();
                assert_eq!(all(&app, &format!("{ROOT}/by_tx/{hash}"), 50), of, "{chain} {hash}");
            }
        }
        assert_eq!(app.read(&format!("{ROOT}/by_height/999999")).unwrap_err().status(), 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn movements_name_their_packets_and_deposits_and_what_failed() {
    let (l1, l2, fees) = (app("l1-l2/l1").await, app("l1-l2/l2").await, app("evm-fees").await);
    let kinds = |app: &App<Indexer>| -> BTreeSet<(String, String)> {
        let every = all(app, ROOT, 1000);
        let of =
            |it: &Value| (text(it, "kind").to_owned(), it["ref"]["type"].as_str().unwrap_or("").to_owned());
        every.iter().map(of).collect()
    };
    let has = |kinds: &BTreeSet<(String, String)>, kind: &str, reference: &str| {
        assert!(kinds.contains(&(kind.to_owned(), reference.to_owned())), "{kind} {reference}: {kinds:?}");
    };
    let (of_l1, of_l2, of_fees) = (kinds(&l1), kinds(&l2), kinds(&fees));
    for of in [&of_l1, &of_l2] {
        has(of, "ibc_out", "packet");
        has(of, "ibc_in", "packet");
        has(of, "ibc_refund", "packet");
    }
    has(&of_l1, "bridge_out", "deposit");
    has(&of_l1, "bridge_in", "withdrawal");
    has(&of_l2, "bridge_in", "deposit");
    has(&of_l2, "bridge_out", "withdrawal");
    has(&of_l1, "fee", "");
    has(&of_fees, "fee", "");
    has(&of_fees, "fee_refund", "");
    let failed = all(&fees, ROOT, 1000);
    let mut failed = failed.iter().filter(|it| it["success"] == false).peekable();
    assert!(failed.peek().is_some());
    assert!(failed.all(|it| text(it, "kind") == "fee"), "what failed has paid its fee, and nothing else");
    let of_block = all(&l1, ROOT, 1000);
    assert!(of_block.iter().any(|it| text(it, "txhash").is_empty() && it["tx_index"].is_null()));
    // The fee denom of the chain is of its genesis, which no event names.
    let every = all(&fees, &format!("{ROOT}/by_token/GAS"), 1000);
    assert!(every.len() > 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_parameters_and_a_missing_index_are_refused_with_what_to_do() {
    let app = app("move-scenario").await;
    for (target, status, words) in [
        ("by_account/x", 400, "account"),
        ("by_account/0x1?direction=up", 400, "any of in, out, self"),
        ("by_account/0x1?from_height=-1", 400, "invalid value for from_height: -1 (must be a number from 0"),
        ("by_account/0x1?to_height=x", 400, "invalid value for to_height: x"),
        ("by_account/0x1?include_fees=maybe", 400, "include_fees: maybe (must be `true` or `false`)"),
        ("by_account/0x1?include_zero=1", 400, "include_zero"),
        ("by_account/0x1?kind=gift", 400, "kind: gift (must be any of transfer, fee,"),
        ("by_account/0x1?kind=fee,gift", 400, "kind: gift"),
        (
            "by_account/0x1?kinds=fee",
            400,
            "unknown query parameter `kinds`: this endpoint has direction, token,",
        ),
        ("by_account/0x1?Direction=in", 400, "unknown query parameter `Direction`"),
        ("by_account/0x1?from_time=yesterday", 400, "from_time: yesterday (must be an RFC 3339 time"),
        ("by_account/0x1?to_time=1795244846", 400, "to_time"),
        ("by_account/0x1?counterparty=x", 400, "counterparty: x"),
        ("by_account/0x1?format=xml", 400, "format: xml (must be one of json, csv)"),
        ("by_account/0x1?pagination.limit=0", 400, "pagination.limit"),
        ("by_account/0x1?pagination.limit=10001", 400, "pagination.limit"),
        ("by_account/0x1?pagination.limit=many", 400, "pagination.limit: many"),
        (
            "by_account/0x1?pagination.offset=9223372036854775808",
            400,
            "pagination.offset: 9223372036854775808",
        ),
        ("by_account/0x1?pagination.offset=-1", 400, "pagination.offset"),
        ("by_account/0x1?pagination.offset=1&kind=mint", 400, "pagination.offset does not go with kind"),
        ("by_account/0x1?pagination.reverse=no", 400, "pagination.reverse"),
        ("by_account/0x1?pagination.count_total=2", 400, "pagination.count_total"),
        ("by_account/0x1?pagination.key=%25", 400, "pagination.key"),
        ("by_height/0", 400, "height"),
        ("by_height/1?from_height=1", 400, "unknown query parameter `from_height`"),
        ("by_tx/00", 404, "not found"),
        ("by_token/umin?format=csv", 400, "unknown query parameter `format`"),
    ] {
        let error = app.read(&format!("{ROOT}/{target}")).err().unwrap();
        assert_eq!(error.status().as_u16(), status, "{target}: {}", error.message());
        assert!(error.message().contains(words), "{target}: {}", error.message());
    }
    let recording = Arc::new(Recording::open(&recording("move-scenario")).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = indexed::config(&recording).unwrap();
    indexed::index_as(config, recording, Options::default(), Arc::clone(&store)).await.unwrap();
    let without = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let error = without.read(ROOT).err().unwrap();
    assert!(error.message().contains(r#"set `index = ["ledger"]`"#), "{}", error.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_has_not_moved_is_not_found_on_any_machine() {
    let of_move = self::app("move-scenario").await;
    for name in ["0xzz", "0x", "move%2F", "unknown"] {
        let error = of_move.read(&format!("{ROOT}/by_token/{name}")).err().unwrap();
        assert_eq!(error.status().as_u16(), 404, "{name}: {}", error.message());
        assert!(error.message().contains("token not found"), "{}", error.message());
    }
    let error = of_move.read(&format!("{ROOT}/by_account/0x1?token=unknown")).err().unwrap();
    assert!(error.message().contains("token not found: unknown"), "{}", error.message());
    let of_evm = self::app("evm-scenario").await;
    for name in [
        "evm%2F",
        "evm%2F0x",
        "0x",
        "evm%2F1",
        "0x0000000000000000000000000000000000000009",
        "UNKNOWN",
        "gas",
    ] {
        let error = of_evm.read(&format!("{ROOT}/by_token/{name}")).err().unwrap();
        assert_eq!(error.status().as_u16(), 404, "{name}: {}", error.message());
    }
    let of_wasm = self::app("wasm-ledger").await;
    for name in ["unknown", "ibc%2F00", "init1ltd0maxmte3xf4zshta9j5djrq9cl692ctsp9u5q0p9wss0f5lmsffa8tb"] {
        let error = of_wasm.read(&format!("{ROOT}/by_token/{name}")).err().unwrap();
        assert_eq!(error.status().as_u16(), 404, "{name}: {}", error.message());
    }
}
