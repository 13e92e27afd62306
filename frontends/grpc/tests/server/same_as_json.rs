//! Every RPC against its JSON endpoint, on every request that is recorded with the deployed server's reply.

use std::any::type_name;
use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use grpc::v1;
use percent_encoding::percent_decode_str;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::{Map, Value, json};
use testkit::golden;
use tonic::{Code, Status};
use web::limits::Limits;
use web::router::Router;

use crate::indexed::{Client, app, client, serve};

/// Calls an RPC with a request and a response as JSON.
type Call = fn(Client, Value) -> BoxFuture<'static, Result<Value, Status>>;

macro_rules! rpc {
    ($method:ident, $request:ident) => {
        (stringify!($request), |mut client: Client, request: Value| {
            Box::pin(async move {
                let request: v1::$request = serde_json::from_value(request).unwrap();
                client.$method(request).await.map(|response| to_json(response.get_ref()))
            })
        })
    };
}

/// The RPC of each endpoint, with the name of its request.
const RPCS: &[(&str, (&str, Call))] = &[
    ("/status", rpc!(get_status, GetStatusRequest)),
    ("/indexer/block/v1/blocks", rpc!(list_blocks, ListBlocksRequest)),
    ("/indexer/block/v1/blocks/{height}", rpc!(get_block, GetBlockRequest)),
    ("/indexer/block/v1/avg_blocktime", rpc!(get_average_block_time, GetAverageBlockTimeRequest)),
    ("/indexer/tx/v1/txs", rpc!(list_txs, ListTxsRequest)),
    ("/indexer/tx/v1/txs/count", rpc!(count_txs, CountTxsRequest)),
    ("/indexer/tx/v1/txs/by_account/{account}", rpc!(list_txs_by_account, ListTxsByAccountRequest)),
    ("/indexer/tx/v1/txs/by_height/{height}", rpc!(list_txs_by_height, ListTxsByHeightRequest)),
    ("/indexer/tx/v1/txs/{tx_hash}", rpc!(get_tx, GetTxRequest)),
    ("/indexer/tx/v1/evm-txs", rpc!(list_evm_txs, ListEvmTxsRequest)),
    (
        "/indexer/tx/v1/evm-txs/by_account/{account}",
        rpc!(list_evm_txs_by_account, ListEvmTxsByAccountRequest),
    ),
    ("/indexer/tx/v1/evm-txs/by_height/{height}", rpc!(list_evm_txs_by_height, ListEvmTxsByHeightRequest)),
    ("/indexer/tx/v1/evm-txs/{tx_hash}", rpc!(get_evm_tx, GetEvmTxRequest)),
    ("/indexer/tx/v1/evm-internal-txs", rpc!(list_internal_txs, ListInternalTxsRequest)),
    (
        "/indexer/tx/v1/evm-internal-txs/by_account/{account}",
        rpc!(list_internal_txs_by_account, ListInternalTxsByAccountRequest),
    ),
    (
        "/indexer/tx/v1/evm-internal-txs/by_height/{height}",
        rpc!(list_internal_txs_by_height, ListInternalTxsByHeightRequest),
    ),
    (
        "/indexer/tx/v1/evm-internal-txs/{tx_hash}",
        rpc!(list_internal_txs_by_hash, ListInternalTxsByHashRequest),
    ),
    ("/indexer/nft/v1/collections", rpc!(list_collections, ListCollectionsRequest)),
    (
        "/indexer/nft/v1/collections/by_account/{account}",
        rpc!(list_collections_by_account, ListCollectionsByAccountRequest),
    ),
    (
        "/indexer/nft/v1/collections/by_name/{name}",
        rpc!(list_collections_by_name, ListCollectionsByNameRequest),
    ),
    ("/indexer/nft/v1/collections/{collection_addr}", rpc!(get_collection, GetCollectionRequest)),
    ("/indexer/nft/v1/tokens/by_account/{account}", rpc!(list_tokens_by_account, ListTokensByAccountRequest)),
    (
        "/indexer/nft/v1/tokens/by_collection/{collection_addr}",
        rpc!(list_tokens_by_collection, ListTokensByCollectionRequest),
    ),
    ("/indexer/nft/v1/txs/{collection_addr}/{token_id}", rpc!(list_token_txs, ListTokenTxsRequest)),
    ("/indexer/richlist/v1/{denom}", rpc!(list_holders, ListHoldersRequest)),
    ("/indexer/ledger/v1/transfers", rpc!(list_transfers, ListTransfersRequest)),
    (
        "/indexer/ledger/v1/transfers/by_account/{account}",
        rpc!(list_transfers_by_account, ListTransfersByAccountRequest),
    ),
    (
        "/indexer/ledger/v1/transfers/by_token/{token}",
        rpc!(list_transfers_by_token, ListTransfersByTokenRequest),
    ),
    (
        "/indexer/ledger/v1/transfers/by_height/{height}",
        rpc!(list_transfers_by_height, ListTransfersByHeightRequest),
    ),
    ("/indexer/ledger/v1/transfers/by_tx/{tx_hash}", rpc!(list_transfers_by_tx, ListTransfersByTxRequest)),
    ("/indexer/ledger/v1/balances/by_account/{account}", rpc!(list_balances, ListBalancesRequest)),
    (
        "/indexer/ledger/v1/balances/history/{account}/{token}",
        rpc!(list_balance_history, ListBalanceHistoryRequest),
    ),
    ("/indexer/ledger/v1/holders/{token}", rpc!(list_token_holders, ListTokenHoldersRequest)),
    ("/indexer/ledger/v1/tokens", rpc!(list_ledger_tokens, ListLedgerTokensRequest)),
    ("/indexer/ledger/v1/tokens/{token}", rpc!(get_ledger_token, GetLedgerTokenRequest)),
    ("/indexer/ibc/v1/channels", rpc!(list_ibc_channels, ListIbcChannelsRequest)),
    ("/indexer/ibc/v1/channels/{channel_id}", rpc!(get_ibc_channel, GetIbcChannelRequest)),
    ("/indexer/ibc/v1/channels/{channel_id}/packets", rpc!(list_ibc_packets, ListIbcPacketsRequest)),
    ("/indexer/ibc/v1/packets/{channel_id}/{sequence}", rpc!(get_ibc_packet, GetIbcPacketRequest)),
    (
        "/indexer/ibc/v1/packets/by_account/{account}",
        rpc!(list_ibc_packets_by_account, ListIbcPacketsByAccountRequest),
    ),
    ("/indexer/ibc/v1/packets/by_tx/{tx_hash}", rpc!(list_ibc_packets_by_tx, ListIbcPacketsByTxRequest)),
    ("/indexer/bridge/v1/info", rpc!(get_bridge_info, GetBridgeInfoRequest)),
    ("/indexer/bridge/v1/withdrawals", rpc!(list_bridge_withdrawals, ListBridgeWithdrawalsRequest)),
    (
        "/indexer/bridge/v1/withdrawals/by_account/{account}",
        rpc!(list_bridge_withdrawals_by_account, ListBridgeWithdrawalsByAccountRequest),
    ),
    (
        "/indexer/bridge/v1/withdrawals/{address}",
        rpc!(list_executor_withdrawals, ListExecutorWithdrawalsRequest),
    ),
    ("/indexer/bridge/v1/withdrawal/{sequence}", rpc!(get_executor_withdrawal, GetExecutorWithdrawalRequest)),
    ("/indexer/bridge/v1/deposits", rpc!(list_bridge_deposits, ListBridgeDepositsRequest)),
    ("/indexer/bridge/v1/deposits/{l1_sequence}", rpc!(get_bridge_deposit, GetBridgeDepositRequest)),
    (
        "/indexer/bridge/v1/deposits/by_account/{account}",
        rpc!(list_bridge_deposits_by_account, ListBridgeDepositsByAccountRequest),
    ),
    ("/indexer/bridge/v1/outputs", rpc!(list_bridge_outputs, ListBridgeOutputsRequest)),
    ("/indexer/bridge/v1/outputs/{output_index}", rpc!(get_bridge_output, GetBridgeOutputRequest)),
    ("/indexer/bridge/v1/coverage/{block}", rpc!(get_bridge_coverage, GetBridgeCoverageRequest)),
    ("/indexer/bridge/v1/bridges", rpc!(list_bridges, ListBridgesRequest)),
    ("/indexer/bridge/v1/claims", rpc!(list_bridge_claims, ListBridgeClaimsRequest)),
    ("/indexer/bridge/v1/batches", rpc!(list_bridge_batches, ListBridgeBatchesRequest)),
];

/// Paths that are not compared here: reflection takes the place of the documents, and streams have tests of their own.
const NOT_READS: [&str; 3] = ["/swagger", "/openapi.json", "/indexer/stream/"];

fn is_read(path: &str) -> bool {
    !NOT_READS.iter().any(|prefix| path.starts_with(prefix))
}

/// The message as JSON by its descriptor, with the names of the fields and every field that has no presence.
fn to_json<T: Message>(message: &T) -> Value {
    let pool = DescriptorPool::decode(grpc::DESCRIPTORS).unwrap();
    let name = type_name::<T>().rsplit("::").next().unwrap();
    let descriptor = pool.get_message_by_name(&format!("cairn.index.v1.{name}")).unwrap();
    let message = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).unwrap();
    let options = SerializeOptions::new().use_proto_field_name(true).skip_default_fields(false);
    message.serialize_with_options(serde_json::value::Serializer, &options).unwrap()
}

/// The request for `target` of the endpoint `template` as JSON; `None` if its types cannot express the target.
fn request(template: &str, target: &str) -> Option<Value> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Map::new();
    for (name, value) in template.split('/').zip(path.split('/')) {
        if let Some(name) = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            let value = percent_decode_str(value).decode_utf8().ok()?;
            // The executor takes any text for a number.
            let is_executor = template.contains("/withdrawal/");
            let value = if is_executor { Some(json!(value)) } else { typed(name, &value) };
            request.insert(name.to_owned(), value?);
        }
    }
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let value = percent_decode_str(value).decode_utf8().ok()?;
        // The executor takes any text for a number.
        let is_executor = template.ends_with("/withdrawals/{address}");
        if is_executor {
            request.insert(name.to_owned(), json!(value));
        } else if matches!(name, "msgs" | "direction" | "kind" | "type") {
            let values = request.entry(name).or_insert_with(|| json!([]));
            values.as_array_mut().unwrap().push(json!(value));
        } else if let Some(name) = name.strip_prefix("pagination.") {
            let page = request.entry("pagination").or_insert_with(|| json!({}));
            page.as_object_mut().unwrap().insert(name.to_owned(), typed(name, &value)?);
        } else {
            request.insert(name.to_owned(), typed(name, &value)?);
        }
    }
    Some(request.into())
}

/// The value of a parameter.
fn typed(name: &str, value: &str) -> Option<Value> {
    match name {
        "height" | "from_height" | "to_height" | "sequence" | "bridge_id" | "l1_sequence"
        | "output_index" | "l2_sequence" => Some(json!(value.parse::<u64>().ok()?)),
        "offset" => Some(json!(value.parse::<i64>().ok()?)),
        // 0 means no limit here, and an error there.
        "limit" => Some(json!(value.parse::<u32>().ok().filter(|limit| *limit > 0)?)),
        "count_total" | "reverse" | "is_signer" | "include_fees" | "include_zero" => {
            Some(json!(value.parse::<bool>().ok()?))
        }
        "order_by" => match value {
            "token_id" => Some(json!(v1::TokenOrder::Id as i32)),
            "height" | "from_height" | "to_height" => Some(json!(v1::TokenOrder::Height as i32)),
            _ => None,
        },
        _ => Some(json!(value)),
    }
}

/// The place and reason where `message` differs from `json`.
fn difference(json: &Value, message: &Value) -> Option<String> {
    let same = match (json, message) {
        (Value::Object(json), Value::Object(message)) => {
            let named: BTreeMap<_, _> = json.iter().map(|(name, value)| (snake_case(name), value)).collect();
            for (name, value) in &named {
                let of_message = message.get(name).unwrap_or(&Value::Null);
                if let Some(difference) = difference(value, of_message) {
                    return Some(format!("{name}: {difference}"));
                }
            }
            // Members that the JSON has only where they are true, or not empty, or not 0.
            let is_absent =
                |name: &str| [json!(false), json!([]), json!(""), json!("0")].contains(&message[name]);
            let more = message.keys().find(|name| !named.contains_key(*name) && !is_absent(name));
            return more.map(|name| format!("{name}: not in the JSON"));
        }
        (Value::Array(json), Value::Array(message)) => {
            if json.len() != message.len() {
                return Some(format!("{} instead of {} elements", message.len(), json.len()));
            }
            return json.iter().zip(message).find_map(|(json, message)| difference(json, message));
        }
        // JSON of free form.
        (Value::Object(_), Value::String(text)) => {
            serde_json::from_str::<Value>(text).is_ok_and(|free| free == *json)
        }
        (Value::Number(number), Value::String(text)) => number.to_string() == *text,
        (Value::Number(json), Value::Number(message)) => json.as_f64() == message.as_f64(),
        (Value::Null, Value::String(text)) => text.is_empty(),
        (Value::Null, Value::Array(list)) => list.is_empty(),
        (json, message) => json == message,
    };
    (!same).then(|| format!("{message} instead of {json}"))
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Compares every recorded request to the chain, and counts the equal replies by endpoint.
async fn compare(chain: &str, golden: Option<&str>, counts: &mut BTreeMap<&'static str, usize>) {
    let app = app(chain).await;
    let server = serve(app.clone(), Limits::default());
    let (client, router) = (client(&server).await, Router::new(query::ENDPOINTS).unwrap());
    // The goldens lack these, which change with the program or with the time.
    let more = [
        "/status",
        "/indexer/block/v1/avg_blocktime",
        "/indexer/tx/v1/txs/count",
        "/indexer/ledger/v1/transfers?from_height=3&pagination.limit=50",
        "/indexer/ledger/v1/transfers?kind=mint&kind=burn&from_time=2026-11-21T00:00:00Z&to_time=2026-11-22T00:00:00Z",
        "/indexer/ledger/v1/transfers/by_account/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw?counterparty=0x1&kind=transfer",
        "/indexer/ledger/v1/transfers/by_account/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw?include_fees=true",
        "/indexer/ledger/v1/transfers/by_account/0x1?direction=in&direction=out&token=GAS",
        "/indexer/ledger/v1/transfers/by_token/GAS?to_height=100",
        "/indexer/ledger/v1/transfers/by_height/5",
        "/indexer/ledger/v1/balances/by_account/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw?height=100",
        "/indexer/ledger/v1/balances/history/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw/GAS?from_height=5",
        "/indexer/ledger/v1/holders/GAS?height=100&pagination.limit=5",
        "/indexer/ledger/v1/transfers/by_tx/6854C9CF287311D13C9AF72E69E17BAEDB45949DE415766AB3DE8CC8A52B1193",
        "/indexer/ledger/v1/tokens?type=erc20&type=erc721&pagination.limit=9",
        "/indexer/ledger/v1/tokens?search=%20",
        "/indexer/ledger/v1/tokens/0x042add9e80f7a23ab71d5e1d392af1d3928b7d05",
        "/indexer/ibc/v1/channels?pagination.limit=5",
        "/indexer/ibc/v1/channels/channel-0?port=transfer",
        "/indexer/ibc/v1/channels/channel-0/packets?side=received&state=acknowledged&pagination.limit=5",
        "/indexer/ibc/v1/channels/channel-0/packets?state=lost",
        "/indexer/ibc/v1/packets/channel-0/1",
        "/indexer/ibc/v1/packets/channel-0/3?side=sent&port=transfer",
        "/indexer/ibc/v1/packets/by_account/init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd?state=failed",
        "/indexer/ibc/v1/packets/by_tx/D539B39B568F826E474914BD1A973EFD91942731D2E27BC5D32039E96794686A",
        "/indexer/bridge/v1/info",
        "/indexer/bridge/v1/withdrawals?state=waiting&pagination.limit=3",
        "/indexer/bridge/v1/withdrawals?pagination.limit=3",
        "/indexer/bridge/v1/withdrawals/by_account/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw",
        "/indexer/bridge/v1/withdrawals/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw?limit=2&order=asc",
        "/indexer/bridge/v1/withdrawal/7",
        "/indexer/bridge/v1/withdrawal/7000",
        "/indexer/bridge/v1/withdrawal/x",
        "/indexer/bridge/v1/withdrawals/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw?limit=-2",
        "/indexer/bridge/v1/deposits?pagination.limit=3",
        "/indexer/bridge/v1/deposits?bridge_id=1&pagination.limit=3",
        "/indexer/bridge/v1/deposits/by_account/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw",
        "/indexer/bridge/v1/deposits/6",
        "/indexer/bridge/v1/outputs",
        "/indexer/bridge/v1/outputs?bridge_id=1&pagination.limit=3",
        "/indexer/bridge/v1/outputs/1",
        "/indexer/bridge/v1/coverage/20",
        "/indexer/bridge/v1/coverage/40",
        "/indexer/bridge/v1/bridges",
        "/indexer/bridge/v1/claims?bridge_id=1&pagination.limit=3",
        "/indexer/bridge/v1/claims?bridge_id=1&l2_sequence=3",
        "/indexer/bridge/v1/batches?bridge_id=1&pagination.limit=3",
    ]
    .map(str::to_owned);
    let cases = golden.map_or_else(Vec::new, |golden| golden::cases(golden).unwrap());
    for target in cases.into_iter().map(|case| case.target).chain(more) {
        let target = target.as_str();
        let path = target.split('?').next().unwrap();
        let Some(template) = router.template(path).filter(|path| is_read(path)) else { continue };
        let Some(request) = request(template, target) else { continue };
        let (_, (_, call)) = RPCS
            .iter()
            .find(|(path, _)| *path == template)
            .unwrap_or_else(|| panic!("{template} has no RPC"));
        match (app.read(target), call(client.clone(), request).await) {
            (Ok(reply), Ok(message)) => {
                let json = serde_json::from_slice(&reply.body).unwrap();
                if let Some(difference) = difference(&json, &message) {
                    panic!("{chain} {target}: {difference}");
                }
                *counts.entry(template).or_default() += 1;
            }
            (Err(error), Err(status)) => {
                assert_eq!(status.code(), Code::from(i32::from(error.code())), "{target}");
                assert_eq!(status.message(), error.message(), "{target}");
            }
            (json, message) => panic!("{chain} {target}: {:?} and {:?}", json.err(), message.err()),
        }
    }
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_has_an_rpc_with_the_same_answers() {
    let mut counts = BTreeMap::new();
    for (chain, golden) in [
        ("evm-scenario", Some("evm-scenario")),
        ("l1-l2/l2", Some("l1-l2-l2")),
        ("move-scenario", Some("move-scenario")),
        ("l1-l2/l1", None),
    ] {
        compare(chain, golden, &mut counts).await;
    }
    let endpoints = query::ENDPOINTS.iter().copied().flatten().map(|endpoint| endpoint.path);
    for path in endpoints.filter(|path| is_read(path)) {
        assert!(counts.contains_key(path), "no answer of {path} was compared: {counts:#?}");
    }
    println!("{counts:#?}");
}

#[test]
fn an_operation_of_the_document_has_the_name_of_its_rpc() {
    let document = query::document("0", true);
    for (path, (request, _)) in RPCS {
        let name = &document["paths"][path]["get"]["operationId"];
        assert_eq!(name.as_str(), request.strip_suffix("Request"), "{path}");
    }
}

#[test]
fn a_difference_is_found() {
    let json = json!({ "gasUsed": "0x1", "n": 7, "key": null, "tx": { "@type": "a" } });
    let equal = json!({ "gas_used": "0x1", "n": "7", "key": "", "tx": r#"{"@type":"a"}"# });
    assert_eq!(difference(&json, &equal), None);
    for (name, value) in [
        ("gas_used", json!("0x2")),
        ("n", json!("8")),
        ("key", json!("k")),
        ("tx", json!("{}")),
        ("more", json!(0)),
    ] {
        let mut other = equal.clone();
        other[name] = value;
        assert!(difference(&json, &other).is_some_and(|text| text.contains(name)), "{name}");
    }
}
