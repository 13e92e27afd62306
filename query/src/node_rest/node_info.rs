//! `GET /cosmos/base/tendermint/v1beta1/node_info`: clients check the chain's id with it.

use schemars::JsonSchema;
use serde_json::json;
use web::reply::Reply;

use crate::indexer::Indexer;

/// `cosmos.base.tendermint.v1beta1.GetNodeInfoResponse`.
#[derive(JsonSchema)]
pub(super) struct GetNodeInfoResponse {
    #[expect(dead_code, reason = "the schema")]
    default_node_info: serde_json::Value,
    #[expect(dead_code, reason = "the schema")]
    application_version: serde_json::Value,
}

/// The response. Members about a node, which this program is not, are empty.
pub(super) fn get(indexer: &Indexer) -> Reply {
    let build = &indexer.build;
    let body = json!({
        "default_node_info": {
            "protocol_version": { "p2p": "0", "block": "0", "app": "0" },
            "default_node_id": "", "listen_addr": "", "network": indexer.chain_id(), "version": "", "channels": null,
            "moniker": "cairn", "other": { "tx_index": "on", "rpc_address": "" },
        },
        "application_version": {
            "name": "cairn", "app_name": "cairn", "version": build.version, "git_commit": build.commit, "build_tags": "",
            "go_version": "", "build_deps": [], "cosmos_sdk_version": "",
        },
    });
    Reply::json(body.to_string())
}
