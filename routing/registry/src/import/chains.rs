//! Parser of `chain.json`, common to both public registries.

use serde_json::Value;

use super::layout::{list, text};
use super::words::{CHAIN_STATUS, CHAIN_TYPE, ChainStatus, NETWORK_TYPE, UnknownWords};
use crate::draft::{ChainDraft, EndpointsDraft};
use crate::model::FeeAsset;
use crate::problem::Place;
use crate::serde_forms;

/// Parses a chain; `None` if it is dead or no Cosmos chain.
pub(super) fn chain(
    json: &Value,
    place: &Place,
    words: &mut UnknownWords,
) -> Result<Option<ChainDraft>, String> {
    let status = words.meaning(&CHAIN_STATUS, &json["status"], place);
    let is_cosmos = words.meaning(&CHAIN_TYPE, &json["chain_type"], place).unwrap_or(true);
    if status == Some(ChainStatus::Killed) || !is_cosmos {
        return Ok(None);
    }
    let id = text(&json["chain_id"]).ok_or("`chain_id` is not text")?;
    let fees: Vec<_> = list(&json["fees"]["fee_tokens"]).iter().filter_map(fee_asset).collect();
    let apis = |kind| addresses(&json["apis"][kind]);
    Ok(Some(ChainDraft {
        id,
        name: text(&json["chain_name"]),
        pretty_name: text(&json["pretty_name"]).or_else(|| text(&json["chain_name"])),
        bech32_prefix: text(&json["bech32_prefix"]),
        testnet: words.meaning(&NETWORK_TYPE, &json["network_type"], place),
        hidden: (status == Some(ChainStatus::Upcoming)).then_some(true),
        logo_uri: logo(json),
        explorer_tx: list(&json["explorers"])
            .iter()
            .filter_map(|explorer| text(&explorer["tx_page"]))
            .find(|page| page.contains("${txHash}")),
        endpoints: EndpointsDraft {
            rpc: apis("rpc"),
            rest: apis("rest"),
            json_rpc: apis("json-rpc").or_else(|| apis("evm-http-jsonrpc")),
            ..EndpointsDraft::default()
        },
        fee_assets: (!fees.is_empty()).then_some(fees),
        ..ChainDraft::default()
    }))
}

/// The image of a chain or an asset.
pub(super) fn logo(json: &Value) -> Option<String> {
    let logos = &json["logo_URIs"];
    text(&logos["png"]).or_else(|| text(&logos["svg"])).or_else(|| {
        let image = list(&json["images"]).first()?;
        text(&image["png"]).or_else(|| text(&image["svg"]))
    })
}

fn fee_asset(json: &Value) -> Option<FeeAsset> {
    let price = |key: &str| serde_forms::price(json[key].as_number()?).ok();
    let least = price("fixed_min_gas_price").unwrap_or_default();
    let price = |key: &str| price(key).unwrap_or_else(|| least.clone());
    Some(FeeAsset {
        denom: text(&json["denom"])?,
        low: price("low_gas_price"),
        average: price("average_gas_price"),
        high: price("high_gas_price"),
    })
}

/// The public addresses.
fn addresses(json: &Value) -> Option<Vec<String>> {
    let open = list(json).iter().filter(|api| api["authorizedUser"].is_null());
    let addresses: Vec<_> = open.filter_map(|api| text(&api["address"])).collect();
    (!addresses.is_empty()).then_some(addresses)
}
