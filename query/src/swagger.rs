//! The documents of the API, generated from the list of endpoints: OpenAPI 3.1, its Swagger 2.0 form, and the page over
//! them.

use serde_json::Value;
use web::call::Call;
use web::endpoint::Endpoint;
use web::http_error::HttpError;
use web::openapi::About;
use web::openapi::api_page;
use web::openapi::schema::Document;
use web::reply::Reply;

use crate::ENDPOINTS as ALL;
use crate::api::Tag;
use crate::indexer::Indexer;
use crate::params::ACCOUNT;

const TAG: Tag = Tag("App");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    Endpoint {
        response: &Document("An OpenAPI 3.1 document."),
        ..TAG.record::<Value>("/openapi.json", "The OpenAPI 3.1 document.", &[], openapi)
    },
    Endpoint {
        response: &Document("A Swagger 2.0 document."),
        ..TAG.record::<Value>("/swagger/doc.json", "The document in the form of Swagger 2.0.", &[], swagger)
    },
];

/// The page over the document.
pub(crate) const PAGE: &[Endpoint<Indexer>] = &api_page::endpoints();

/// Requests and responses of the recorded chain `evm-scenario`, and those about packets and bridges of `l1-l2`.
const EXAMPLES: [&str; 3] =
    [include_str!("examples.json"), include_str!("ibc_examples.json"), include_str!("bridge_examples.json")];

/// Operations have the names of the RPCs with the same responses.
const NAMES: &[(&str, &str)] = &[
    ("GET /status", "GetStatus"),
    ("GET /indexer/block/v1/blocks", "ListBlocks"),
    ("GET /indexer/block/v1/blocks/{height}", "GetBlock"),
    ("GET /indexer/block/v1/avg_blocktime", "GetAverageBlockTime"),
    ("GET /indexer/tx/v1/txs", "ListTxs"),
    ("GET /indexer/tx/v1/txs/count", "CountTxs"),
    ("GET /indexer/tx/v1/txs/by_account/{account}", "ListTxsByAccount"),
    ("GET /indexer/tx/v1/txs/by_height/{height}", "ListTxsByHeight"),
    ("GET /indexer/tx/v1/txs/{tx_hash}", "GetTx"),
    ("GET /indexer/tx/v1/evm-txs", "ListEvmTxs"),
    ("GET /indexer/tx/v1/evm-txs/by_account/{account}", "ListEvmTxsByAccount"),
    ("GET /indexer/tx/v1/evm-txs/by_height/{height}", "ListEvmTxsByHeight"),
    ("GET /indexer/tx/v1/evm-txs/{tx_hash}", "GetEvmTx"),
    ("GET /indexer/tx/v1/evm-internal-txs", "ListInternalTxs"),
    ("GET /indexer/tx/v1/evm-internal-txs/by_account/{account}", "ListInternalTxsByAccount"),
    ("GET /indexer/tx/v1/evm-internal-txs/by_height/{height}", "ListInternalTxsByHeight"),
    ("GET /indexer/tx/v1/evm-internal-txs/{tx_hash}", "ListInternalTxsByHash"),
    ("GET /indexer/nft/v1/collections", "ListCollections"),
    ("GET /indexer/nft/v1/collections/by_account/{account}", "ListCollectionsByAccount"),
    ("GET /indexer/nft/v1/collections/by_name/{name}", "ListCollectionsByName"),
    ("GET /indexer/nft/v1/collections/{collection_addr}", "GetCollection"),
    ("GET /indexer/nft/v1/tokens/by_account/{account}", "ListTokensByAccount"),
    ("GET /indexer/nft/v1/tokens/by_collection/{collection_addr}", "ListTokensByCollection"),
    ("GET /indexer/nft/v1/txs/{collection_addr}/{token_id}", "ListTokenTxs"),
    ("GET /indexer/richlist/v1/{denom}", "ListHolders"),
    ("GET /indexer/ledger/v1/transfers", "ListTransfers"),
    ("GET /indexer/ledger/v1/transfers/by_account/{account}", "ListTransfersByAccount"),
    ("GET /indexer/ledger/v1/transfers/by_token/{token}", "ListTransfersByToken"),
    ("GET /indexer/ledger/v1/transfers/by_height/{height}", "ListTransfersByHeight"),
    ("GET /indexer/ledger/v1/transfers/by_tx/{tx_hash}", "ListTransfersByTx"),
    ("GET /indexer/ledger/v1/balances/by_account/{account}", "ListBalances"),
    ("GET /indexer/ledger/v1/balances/history/{account}/{token}", "ListBalanceHistory"),
    ("GET /indexer/ledger/v1/holders/{token}", "ListTokenHolders"),
    ("GET /indexer/ledger/v1/tokens", "ListLedgerTokens"),
    ("GET /indexer/ledger/v1/tokens/{token}", "GetLedgerToken"),
    ("GET /indexer/ibc/v1/channels", "ListIbcChannels"),
    ("GET /indexer/ibc/v1/channels/{channel_id}", "GetIbcChannel"),
    ("GET /indexer/ibc/v1/channels/{channel_id}/packets", "ListIbcPackets"),
    ("GET /indexer/ibc/v1/packets/{channel_id}/{sequence}", "GetIbcPacket"),
    ("GET /indexer/ibc/v1/packets/by_account/{account}", "ListIbcPacketsByAccount"),
    ("GET /indexer/ibc/v1/packets/by_tx/{tx_hash}", "ListIbcPacketsByTx"),
    ("GET /indexer/bridge/v1/info", "GetBridgeInfo"),
    ("GET /indexer/bridge/v1/withdrawals", "ListBridgeWithdrawals"),
    ("GET /indexer/bridge/v1/withdrawals/by_account/{account}", "ListBridgeWithdrawalsByAccount"),
    ("GET /indexer/bridge/v1/withdrawals/{address}", "ListExecutorWithdrawals"),
    ("GET /indexer/bridge/v1/withdrawal/{sequence}", "GetExecutorWithdrawal"),
    ("GET /indexer/bridge/v1/deposits", "ListBridgeDeposits"),
    ("GET /indexer/bridge/v1/deposits/{l1_sequence}", "GetBridgeDeposit"),
    ("GET /indexer/bridge/v1/deposits/by_account/{account}", "ListBridgeDepositsByAccount"),
    ("GET /indexer/bridge/v1/outputs", "ListBridgeOutputs"),
    ("GET /indexer/bridge/v1/outputs/{output_index}", "GetBridgeOutput"),
    ("GET /indexer/bridge/v1/coverage/{block}", "GetBridgeCoverage"),
    ("GET /indexer/bridge/v1/bridges", "ListBridges"),
    ("GET /indexer/bridge/v1/claims", "ListBridgeClaims"),
    ("GET /indexer/bridge/v1/batches", "ListBridgeBatches"),
    ("GET /indexer/stream/v1/blocks", "WatchBlocks"),
    ("GET /indexer/stream/v1/txs", "WatchTxs"),
    ("GET /indexer/stream/v1/evm-txs", "WatchEvmTxs"),
    ("GET /indexer/stream/v1/transfers", "WatchTransfers"),
];

/// True for the paths that the document has.
fn is_described(path: &str, evm: bool) -> bool {
    let is_of_evm = path.contains("/evm-") || path.contains("/richlist/");
    (evm || !is_of_evm) && !api_page::has(path)
}

/// The OpenAPI 3.1 document of the indexer API, without the EVM paths on a chain without EVM.
pub fn document(version: &str, evm: bool) -> Value {
    let about = About {
        title: "cairn indexer API",
        description: "Blocks, transactions, NFTs and rich lists of one chain, read-only. Streams of events are under \
                      `x-streams`, in the form of `paths`: a response of theirs has no end.",
        version,
        names: NAMES,
        examples: &EXAMPLES
            .iter()
            .flat_map(|file| serde_json::from_str::<Vec<Value>>(file).unwrap_or_default())
            .collect(),
    };
    web::openapi::document(&about, ALL, |path| is_described(path, evm))
}

/// The document of the served chain: its addresses begin with the chain's own prefix.
fn served(indexer: &Indexer) -> Value {
    let document = document(&indexer.build.version, indexer.is_evm());
    let prefix = &indexer.identity.prefix;
    let Some(own) = chain::Account::from_bech32(ACCOUNT, "init").map(|account| account.to_bech32(prefix))
    else {
        return document;
    };
    serde_json::from_str(&document.to_string().replace(ACCOUNT, &own)).unwrap_or(document)
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn openapi(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(served(indexer).to_string()))
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn swagger(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(web::openapi::swagger2::document(&served(indexer)).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_in_the_document_and_no_two_objects_share_a_name() {
        let document = document("1", true);
        for endpoint in ALL.iter().copied().flatten().filter(|endpoint| is_described(endpoint.path, true)) {
            let is_stream = matches!(endpoint.handler, web::endpoint::Handler::Stream(_));
            let part = &document[if is_stream { "x-streams" } else { "paths" }];
            assert!(part[endpoint.path]["get"].is_object(), "{}", endpoint.path);
        }
        assert_eq!(web::openapi::name_conflicts(ALL), Vec::<&str>::new());
    }

    #[test]
    fn every_endpoint_with_parameters_has_a_recorded_example() {
        let document = document("1", true);
        for (path, methods) in document["paths"].as_object().unwrap() {
            let operation = &methods["get"];
            let answer = &operation["responses"]["200"]["content"]["application/json"];
            assert!(operation["parameters"].is_null() || answer["example"].is_object(), "{path}");
            let in_path = |parameter: &&Value| parameter["in"] == "path";
            for parameter in operation["parameters"].as_array().into_iter().flatten().filter(in_path) {
                assert!(!parameter["example"].is_null(), "{path}: {parameter}");
            }
        }
    }

    #[test]
    fn a_chain_without_evm_has_no_evm_paths() {
        let document = document("1", false);
        let paths = document["paths"].as_object().unwrap();
        assert!(
            paths.contains_key("/indexer/tx/v1/txs") && paths.contains_key("/indexer/nft/v1/collections")
        );
        assert!(paths.keys().all(|path| !path.contains("evm") && !path.contains("richlist")));
    }
}
