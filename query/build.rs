//! Compiles the messages of `proto/cairn/index/v1/*.proto`, without a system `protoc`: they are the records of the JSON
//! API too, with the comments as descriptions in its OpenAPI document.
//!
//! The tables say where the JSON differs from serde's defaults, and what its texts look like.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use prost_types::field_descriptor_proto::{Label, Type};

const ROOT: &str = "../proto";
const PACKAGE: &str = "cairn/index/v1";

/// The messages that JSON has, with their names in the OpenAPI document.
const RECORDS: [(&str, &str); 72] = [
    ("Balance", "ledger.Balance"),
    ("BalanceChange", "ledger.BalanceChange"),
    ("Block", "block.Block"),
    ("BridgeWithdrawal", "bridge.Withdrawal"),
    ("BridgeDeposit", "bridge.Deposit"),
    ("BridgeOutput", "bridge.Output"),
    ("Bridge", "bridge.Bridge"),
    ("BridgeClaim", "bridge.Claim"),
    ("ListExecutorWithdrawalsResponse", "bridge.ExecutorWithdrawalsResponse"),
    ("GetBridgeInfoResponse", "bridge.InfoResponse"),
    ("ListBridgeWithdrawalsResponse", "bridge.WithdrawalsResponse"),
    ("ListBridgeDepositsResponse", "bridge.DepositsResponse"),
    ("GetBridgeDepositResponse", "bridge.DepositResponse"),
    ("ListBridgeOutputsResponse", "bridge.OutputsResponse"),
    ("GetBridgeOutputResponse", "bridge.OutputResponse"),
    ("GetBridgeCoverageResponse", "bridge.CoverageResponse"),
    ("ListBridgesResponse", "bridge.BridgesResponse"),
    ("ListBridgeClaimsResponse", "bridge.ClaimsResponse"),
    ("Coin", "block.Coin"),
    ("CollectionDetail", "nft.CollectionDetail"),
    ("Collection", "nft.Collection"),
    ("CountTxsResponse", "tx.CountResponse"),
    ("EventAttribute", "tx.EventAttribute"),
    ("Event", "tx.Event"),
    ("EvmLog", "evm-tx.EvmLog"),
    ("EvmTx", "evm-tx.EvmTx"),
    ("GetAverageBlockTimeResponse", "block.AvgBlockTimeResponse"),
    ("GetBlockResponse", "block.BlockResponse"),
    ("GetCollectionResponse", "nft.CollectionResponse"),
    ("GetEvmTxResponse", "evm-tx.EvmTxResponse"),
    ("GetLedgerTokenResponse", "ledger.TokenResponse"),
    ("GetStatusResponse", "status.StatusResponse"),
    ("GetTxResponse", "tx.TxResponse"),
    ("GetIbcChannelResponse", "ibc.ChannelResponse"),
    ("GetIbcPacketResponse", "ibc.PacketResponse"),
    ("IbcChannel", "ibc.Channel"),
    ("IbcEnd", "ibc.End"),
    ("IbcOldestPacket", "ibc.OldestPacket"),
    ("IbcPacket", "ibc.Packet"),
    ("IbcPacketCounts", "ibc.PacketCounts"),
    ("IbcPacketData", "ibc.PacketData"),
    ("IbcPacketName", "ibc.PacketName"),
    ("IbcPacketStage", "ibc.PacketStage"),
    ("ListIbcChannelsResponse", "ibc.ChannelsResponse"),
    ("ListIbcPacketsResponse", "ibc.PacketsResponse"),
    ("InternalTx", "evm-internal-tx.EvmInternalTx"),
    ("ListBalanceHistoryResponse", "ledger.BalanceHistoryResponse"),
    ("ListBalancesResponse", "ledger.BalancesResponse"),
    ("LedgerToken", "ledger.Token"),
    ("ListBlocksResponse", "block.BlocksResponse"),
    ("ListCollectionsResponse", "nft.CollectionsResponse"),
    ("ListEvmTxsResponse", "evm-tx.EvmTxsResponse"),
    ("ListHoldersResponse", "richlist.TokenHoldersResponse"),
    ("ListInternalTxsResponse", "evm-internal-tx.EvmInternalTxsResponse"),
    ("ListTokenHoldersResponse", "ledger.HoldersResponse"),
    ("ListLedgerTokensResponse", "ledger.TokensResponse"),
    ("ListTokensResponse", "nft.NftsResponse"),
    ("ListTransfersResponse", "ledger.TransfersResponse"),
    ("ListTxsResponse", "tx.TxsResponse"),
    ("MovedToken", "ledger.MovedToken"),
    ("NftDetails", "nft.NftDetails"),
    ("NftHandle", "nft.NftHandle"),
    ("Nft", "nft.Nft"),
    ("OptionalIndex", "status.OptionalIndex"),
    ("PageResponse", "common.PaginationResponse"),
    ("Proposer", "block.Proposer"),
    ("Reorg", "stream.Reorg"),
    ("StreamStart", "stream.StreamStart"),
    ("TokenHolder", "richlist.TokenHolder"),
    ("Transfer", "ledger.Transfer"),
    ("TransferReference", "ledger.TransferReference"),
    ("Tx", "tx.Tx"),
];

/// The messages that are written from their type; the JSON of the others is stored, or written in parts.
const WRITTEN: [&str; 31] = [
    "Balance",
    "BalanceChange",
    "BridgeClaim",
    "BridgeDeposit",
    "BridgeOutput",
    "BridgeWithdrawal",
    "Bridge",
    "Coin",
    "GetBridgeCoverageResponse",
    "GetBridgeInfoResponse",
    "CollectionDetail",
    "Collection",
    "GetStatusResponse",
    "GetIbcPacketResponse",
    "IbcChannel",
    "IbcEnd",
    "IbcOldestPacket",
    "IbcPacket",
    "IbcPacketCounts",
    "IbcPacketData",
    "IbcPacketName",
    "IbcPacketStage",
    "LedgerToken",
    "MovedToken",
    "NftDetails",
    "NftHandle",
    "Nft",
    "OptionalIndex",
    "TokenHolder",
    "Transfer",
    "TransferReference",
];

/// Messages that are built from an event, and have no JSON of their own.
const STREAMED: [&str; 4] =
    ["WatchBlocksResponse", "WatchEvmTxsResponse", "WatchTransfersResponse", "WatchTxsResponse"];

/// Numbers that JSON has as decimal strings.
const DECIMALS: [&str; 33] = [
    "ListTokenHoldersResponse.height",
    "Balance.last_height",
    "BalanceChange.height",
    "Block.height",
    "Block.block_time",
    "Block.tx_count",
    "CountTxsResponse.count",
    "ListBalanceHistoryResponse.known_from",
    "ListBalancesResponse.height",
    "IbcOldestPacket.height",
    "IbcOldestPacket.sequence",
    "IbcPacket.sequence",
    "IbcPacket.timeout_timestamp",
    "IbcPacketCounts.sent",
    "IbcPacketCounts.received",
    "IbcPacketCounts.pending",
    "IbcPacketCounts.acknowledged",
    "IbcPacketCounts.failed",
    "IbcPacketCounts.timed_out",
    "IbcPacketCounts.stuck",
    "IbcPacketCounts.unacknowledged",
    "IbcPacketName.sequence",
    "IbcPacketStage.height",
    "LedgerToken.first_height",
    "PageResponse.total",
    "Reorg.height",
    "StreamStart.height",
    "Transfer.height",
    "Transfer.sequence",
    "TransferReference.sequence",
    "Tx.height",
    "Tx.gas_used",
    "Tx.gas_wanted",
];
/// The same of numbers that may be `null`.
const OPTIONAL_DECIMALS: [&str; 4] = [
    "LedgerToken.complete_from",
    "LedgerToken.holders",
    "LedgerToken.supply_checked_height",
    "LedgerToken.transfers",
];
const DECIMAL: &str = "^[0-9]+$";

/// Texts by the regular expression (ECMA 262) that they match.
const PATTERNS: [(&str, &[&str]); 10] = [
    ("^[0-9]*$", &["Balance.amount", "BalanceChange.amount"]),
    ("^([0-9a-f]{2})*$", &["IbcPacket.acknowledgement_hex", "IbcPacket.data_hex"]),
    ("^-?[0-9]+$", &["BalanceChange.change"]),
    (
        DECIMAL,
        &[
            "Block.gas_used",
            "Block.gas_wanted",
            "Coin.amount",
            "LedgerToken.supply",
            "TokenHolder.amount",
            "Transfer.amount",
        ],
    ),
    ("^[0-9A-F]{64}$", &["Block.hash", "Tx.txhash"]),
    ("^[0-9A-F]*$", &["Tx.data"]),
    (
        "^0x[0-9a-fA-F]*$",
        &[
            "Collection.object_addr",
            "EvmLog.block_number",
            "EvmLog.block_timestamp",
            "EvmLog.data",
            "EvmLog.log_index",
            "EvmLog.transaction_index",
            "EvmTx.block_number",
            "EvmTx.cumulative_gas_used",
            "EvmTx.effective_gas_price",
            "EvmTx.gas_used",
            "EvmTx.logs_bloom",
            "EvmTx.status",
            "EvmTx.transaction_index",
            "EvmTx.type",
            "InternalTx.gas",
            "InternalTx.gas_used",
            "InternalTx.input",
            "InternalTx.output",
            "InternalTx.value",
            "Nft.collection_addr",
        ],
    ),
    (
        "^0x[0-9a-fA-F]{64}$",
        &[
            "EvmLog.block_hash",
            "EvmLog.transaction_hash",
            "EvmTx.block_hash",
            "EvmTx.transaction_hash",
            "InternalTx.hash",
        ],
    ),
    ("^0x[0-9a-fA-F]{40}$", &["EvmLog.address", "EvmTx.contract_address", "EvmTx.from", "InternalTx.from"]),
    ("^(0x[0-9a-fA-F]{40})?$", &["EvmTx.to", "InternalTx.to"]),
];

/// Times: RFC 3339.
const TIMES: [&str; 14] = [
    "BridgeClaim.timestamp",
    "BridgeDeposit.timestamp",
    "BridgeOutput.l1_time",
    "BridgeWithdrawal.claimable_at",
    "BridgeWithdrawal.tx_time",
    "ListTokenHoldersResponse.timestamp",
    "BalanceChange.timestamp",
    "Block.timestamp",
    "Collection.timestamp",
    "IbcPacketStage.timestamp",
    "ListBalancesResponse.timestamp",
    "Nft.timestamp",
    "Transfer.timestamp",
    "Tx.timestamp",
];

/// Texts that JSON has as `null` where they are empty.
const NULLABLES: [&str; 3] = ["EventAttribute.value", "PageResponse.next_key", "PageResponse.previous_key"];

/// Members that JSON lacks where they are empty, with their types where they are not.
const OPTIONALS: [(&str, &str); 22] = [
    ("BridgeWithdrawal.claimable_at", "String"),
    ("BridgeWithdrawal.claimed_tx", "String"),
    ("BridgeWithdrawal.output_l1_height", "u64"),
    ("BridgeWithdrawal.state", "String"),
    ("ListExecutorWithdrawalsResponse.next", "u64"),
    ("ListTokenHoldersResponse.incomplete", "bool"),
    ("CollectionDetail.name_truncated", "bool"),
    ("EvmLog.block_timestamp", "String"),
    ("Event.attributes", "Vec<EventAttribute>"),
    ("Event.type", "String"),
    ("EventAttribute.index", "bool"),
    ("EventAttribute.key", "String"),
    ("EventAttribute.value", "Option<String>"),
    ("GetStatusResponse.indexes", "Vec<OptionalIndex>"),
    ("GetStatusResponse.internal_tx_complete_from", "u64"),
    ("GetStatusResponse.internal_tx_height", "u64"),
    ("GetStatusResponse.internal_tx_untraced", "Vec<u64>"),
    ("GetStatusResponse.metadata_missing_from", "u64"),
    ("GetStatusResponse.rich_list_height", "u64"),
    ("GetStatusResponse.rich_list_off", "String"),
    ("ListHoldersResponse.incomplete", "bool"),
    ("NftDetails.uri_truncated", "bool"),
];

/// Further attributes of fields.
const OTHERS: [(&str, &str); 9] = [
    (
        "BridgeWithdrawal.withdrawal_proofs",
        r#"#[serde(with = "crate::free_json::null_if_empty")]
           #[schemars(with = "Option<Vec<String>>")]"#,
    ),
    ("GetBridgeCoverageResponse.output", r#"#[serde(skip_serializing_if = "Option::is_none")]"#),
    ("EvmLog.topics", r#"#[schemars(inner(regex(pattern = "^0x[0-9a-fA-F]{64}$")))]"#),
    ("InternalTx.gas_used", r#"#[serde(rename = "gasUsed")]"#),
    ("InternalTx.index", "#[schemars(range(min = 0))]"),
    (
        "MovedToken.complete",
        r#"#[serde(skip_serializing_if = "Option::is_none")] #[schemars(with = "bool")]"#,
    ),
    ("Transfer.ref", r#"#[serde(skip_serializing_if = "Option::is_none")]"#),
    (
        "Tx.logs",
        r#"#[serde(deserialize_with = "crate::free_json::texts")]
           #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]"#,
    ),
    (
        "Tx.tx",
        r#"#[serde(deserialize_with = "crate::free_json::text")]
           #[schemars(with = "crate::signed_tx::SignedTx")]"#,
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(ROOT).join(PACKAGE);
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    // The order of a directory is not fixed, that of the descriptors is.
    files.sort();
    let descriptors = protox::compile(files, [ROOT])?;

    let mut config = prost_build::Config::new();
    config.message_attribute(".", "#[derive(serde::Deserialize)]\n#[serde(default)]");
    for (message, name) in RECORDS {
        let schema = format!("#[derive(schemars::JsonSchema)]\n#[schemars(rename = {name:?})]");
        config.message_attribute(message, schema);
    }
    // An absent message is not a message of this API.
    for message in descriptors.file.iter().flat_map(|file| &file.message_type) {
        let of_record = RECORDS.iter().any(|(record, _)| *record == message.name());
        let members = message.field.iter().filter(|field| of_record && field.label() != Label::Repeated);
        for field in members.filter(|field| field.r#type() == Type::Message) {
            let name = field.type_name().rsplit('.').next().unwrap_or_default();
            let path = format!("{}.{}", message.name(), field.name());
            config.field_attribute(path, format!("#[schemars(with = {name:?})]"));
        }
    }
    for message in STREAMED {
        config.field_attribute(format!("{message}.event"), "#[serde(skip)]");
    }
    for message in WRITTEN {
        config.message_attribute(message, "#[derive(serde::Serialize)]");
    }
    for message in ["EvmTx", "EvmLog"] {
        config.message_attribute(message, r#"#[serde(rename_all = "camelCase")]"#);
    }
    for field in DECIMALS {
        config.field_attribute(field, r#"#[serde(with = "serde_with::As::<serde_with::DisplayFromStr>")]"#);
        config
            .field_attribute(field, format!("#[schemars(with = \"String\", regex(pattern = {DECIMAL:?}))]"));
    }
    for field in OPTIONAL_DECIMALS {
        let with = "serde_with::As::<Option<serde_with::DisplayFromStr>>";
        config.field_attribute(field, format!("#[serde(with = {with:?})]"));
        let schema = format!("#[schemars(with = \"Option<String>\", regex(pattern = {DECIMAL:?}))]");
        config.field_attribute(field, schema);
    }
    for (pattern, fields) in PATTERNS {
        for field in fields {
            config.field_attribute(field, format!("#[schemars(regex(pattern = {pattern:?}))]"));
        }
    }
    for field in TIMES {
        config.field_attribute(field, r#"#[schemars(extend("format" = "date-time"))]"#);
    }
    for field in NULLABLES {
        config.field_attribute(
            field,
            r#"#[serde(deserialize_with = "serde_with::As::<serde_with::DefaultOnNull>::deserialize")]"#,
        );
        if !OPTIONALS.iter().any(|(other, _)| *other == field) {
            config.field_attribute(field, r#"#[schemars(with = "Option<String>")]"#);
        }
    }
    for (field, kind) in OPTIONALS {
        config.field_attribute(field, r#"#[serde(skip_serializing_if = "crate::free_json::is_default")]"#);
        config.field_attribute(field, format!("#[schemars(with = {kind:?})]"));
    }
    for (field, attributes) in OTHERS {
        config.field_attribute(field, attributes);
    }
    Ok(config.compile_fds(descriptors)?)
}
