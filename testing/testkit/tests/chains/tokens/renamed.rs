//! Tokens that change their names without a log.

use std::sync::Arc;
use std::time::Duration;

use chain::movement::Token;
use ingest::Config;
use replay::answers::HttpReply;
use schema::tokens::{self, TokenReply};
use serde_json::Value;
use store::Store;
use testkit::indexed;
use testkit::live::Live;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};

use super::{DECIMALS, INDEXES, NAME, SYMBOL, all_tokens, app, chain, list, text};

/// A token of the chain `evm-fees` with a name, a symbol and decimals.
const CONTRACT: &str = "0xd9c7d23bf7c6c2708418bda767090562716c1eaa";

/// A text as a contract returns it.
fn returned(text: &str) -> Value {
    format!("0x{:064x}{:064x}{:0<64}", 32, text.len(), hex::encode(text)).into()
}

fn replies(store: &dyn Store) -> Vec<(Token, Option<TokenReply>)> {
    let snapshot = store.snapshot().unwrap();
    let of = |token: Token| (token.clone(), tokens::reply(&*snapshot, &token).unwrap());
    all_tokens(store).into_iter().map(of).collect()
}

/// What it does not say any more stays, and so do all other tokens.
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_token_is_asked_again_and_found_by_its_new_symbol_only() {
    let (recording, store) = chain("evm-fees").await;
    let before = replies(&*store);
    let alter = |exchange: RecordedExchange<'_>| -> HttpReply {
        let call: Value = serde_json::from_slice(exchange.request.body()).unwrap_or_default();
        if call["method"] != "eth_call" || call["params"][0]["to"] != CONTRACT {
            return exchange.answer;
        }
        match call["params"][0]["data"].as_str() {
            Some(NAME) => exchange.with_result(&returned("Renamed")),
            Some(SYMBOL) => exchange.with_result(&returned("RNMD")),
            Some(DECIMALS) => exchange.with_error(3, "execution reverted"),
            _ => exchange.answer,
        }
    };
    let node = OverriddenNode::start(Arc::clone(&recording), alter).await.unwrap();
    let config = Config {
        indexes: INDEXES.iter().collect(),
        internal_txs: false,
        rich_list: false,
        reconcile_every: Some(Duration::from_millis(20)),
        ..indexed::config(&recording).unwrap()
    };
    let live = Live::start(Arc::new(node.clients().unwrap()), config, Arc::clone(&store)).await.unwrap();
    let contract: [u8; 20] = hex::decode(&CONTRACT[2..]).unwrap().try_into().unwrap();
    let renamed = async {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        let token = Token::Erc20(contract);
        while tokens::reply(&*store.snapshot().unwrap(), &token).unwrap().unwrap().name != "Renamed" {
            looks.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), renamed).await.expect("the token is asked again");
    live.stop().await.unwrap();
    for ((token, before), (_, after)) in before.into_iter().zip(replies(&*store)) {
        if token != Token::Erc20(contract) {
            assert!(before.is_none() || before == after, "{token:?}: {before:?} {after:?}");
            continue;
        }
        let (before, after) = (before.unwrap(), after.unwrap());
        assert_eq!((&*after.name, &*after.symbol), ("Renamed", "RNMD"));
        assert_eq!((after.known_decimals(), &after.denom), (before.known_decimals(), &before.denom));
        assert!(before.known_decimals().is_some() && before.symbol != "RNMD");
        let app = app(Arc::clone(&store));
        let found = |symbol: &str| {
            let found = list(&app, &format!("search={symbol}"));
            found.iter().filter(|record| text(record, "address") == CONTRACT).count()
        };
        assert_eq!(found("rnm"), 1);
        let is_denom = before.denom.to_lowercase().starts_with(&before.symbol.to_lowercase());
        assert_eq!(found(&before.symbol), usize::from(is_denom));
    }
}
