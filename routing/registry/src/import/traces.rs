//! Traces of an asset: its origin and every step from there.
//!
//! The last step is the asset's own origin. Earlier steps that are in no list become hidden assets; channels and
//! bridges that a step names become drafts too.

use std::collections::BTreeMap;

use serde_json::Value;

use super::layout::text;
use crate::denom;
use crate::draft::{AssetDraft, BridgeDraft, ChannelDraft, Draft, EndDraft, Located, OriginDraft, Source};
use crate::native_format::TRANSFER;
use crate::problem::Place;

/// Ids of chains by name.
type Names = BTreeMap<String, String>;

/// One step, with what went in and where.
struct Step<'a> {
    trace: &'a Value,
    from_chain: Option<String>,
    from: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Ibc,
    Op,
    Wrapped,
    /// A step that we cannot take: what comes out counts as made there.
    Other,
}

/// The asset with its origin, and all that follows from its traces.
pub(super) fn follow(asset: Located<AssetDraft>, traces: &[Value], names: &Names) -> Draft {
    let steps: Vec<_> = traces.iter().filter_map(|trace| step(trace, names)).collect();
    let mut draft = Draft::default();
    let whole = steps.len() == traces.len();
    let source = asset.source;
    let (place, listed) = (asset.place.clone(), asset.part.clone());
    let mut at = Some(asset.part);
    let mut wrapped = false;
    for step in steps.iter().rev().take_while(|_| whole) {
        let Some(mut part) = at.take() else { break };
        if step.kind == Kind::Other {
            at = Some(part);
            break;
        }
        let origin = origin(step);
        if step.kind == Kind::Ibc {
            part.path = path(step.trace, part.denom.as_deref());
        }
        follows(&mut draft, step, &part.chain, source, &place);
        wrapped |= step.kind == Kind::Wrapped;
        at = step.from_chain.clone().map(|chain| before(&listed, chain, &step.from, wrapped));
        part.origin = origin;
        draft.assets.push(implied_unless_first(&draft, part, source, &place));
    }
    if let Some(part) = at {
        draft.assets.push(implied_unless_first(&draft, part, source, &place));
    }
    draft
}

/// The asset itself is said by its list; what comes before it only follows.
fn implied_unless_first(
    draft: &Draft,
    part: AssetDraft,
    source: Source,
    place: &Place,
) -> Located<AssetDraft> {
    let source = if draft.assets.is_empty() { source } else { Source::Implied };
    Located { source, place: place.clone(), part }
}

fn step<'a>(trace: &'a Value, names: &Names) -> Option<Step<'a>> {
    let counterparty = &trace["counterparty"];
    let by_name = || names.get(counterparty["chain_name"].as_str()?).cloned();
    let kind = match trace["type"].as_str()? {
        "ibc" | "ibc-cw20" => Kind::Ibc,
        "op" => Kind::Op,
        "wrapped" if trace["provider"] == "Decimal Wrapper" => Kind::Wrapped,
        _ => Kind::Other,
    };
    Some(Step {
        trace,
        from_chain: text(&counterparty["chain_id"]).or_else(by_name),
        from: text(&counterparty["base_denom"])?,
        kind,
    })
}

fn origin(step: &Step<'_>) -> Option<OriginDraft> {
    let (chain, from) = (&step.trace["chain"], step.from.clone());
    match step.kind {
        Kind::Ibc => {
            let channel = text(&chain["channel_id"])?;
            Some(OriginDraft::Ibc { port: port(chain), channel, from })
        }
        Kind::Op => Some(OriginDraft::Bridged { from }),
        Kind::Wrapped => Some(OriginDraft::Wrapped { contract: text(&chain["contract"])?, from }),
        Kind::Other => None,
    }
}

fn port(end: &Value) -> String {
    text(&end["port"]).unwrap_or_else(|| TRANSFER.to_owned())
}

/// The path of a step over a channel, if it gives the denomination that came out.
fn path(trace: &Value, denom: Option<&str>) -> Option<String> {
    let path = text(&trace["chain"]["path"])?;
    (denom == Some(&denom::of_path(&path))).then_some(path)
}

/// The channel or the bridge that a step went over.
fn follows(draft: &mut Draft, step: &Step<'_>, here: &str, source: Source, place: &Place) {
    let Some(there) = &step.from_chain else { return };
    let (chain, counterparty) = (&step.trace["chain"], &step.trace["counterparty"]);
    if step.kind == Kind::Op
        && let Some(id) = text(&chain["bridge_id"]).and_then(|id| id.parse().ok())
    {
        let part = BridgeDraft {
            l2: here.to_owned(),
            id: Some(id),
            l1: Some(there.clone()),
            ..BridgeDraft::default()
        };
        draft.bridges.push(Located { source: Source::Implied, place: place.clone(), part });
    }
    let ends = (text(&chain["channel_id"]), text(&counterparty["channel_id"]));
    if let (Kind::Ibc, (Some(channel), Some(other))) = (step.kind, ends)
        && [chain, counterparty].iter().all(|end| port(end) == TRANSFER)
    {
        let end =
            |chain: &str, channel| EndDraft { chain: chain.to_owned(), port: TRANSFER.to_owned(), channel };
        let part =
            ChannelDraft { a: end(here, channel), b: Some(end(there, other)), paused: None, seconds: None };
        draft.channels.push(Located { source, place: place.clone(), part });
    }
}

/// What a step was made of, in case that no list has it. Behind a wrapper the decimals are others, which nobody told.
fn before(listed: &AssetDraft, chain: String, denom: &str, wrapped: bool) -> AssetDraft {
    AssetDraft {
        chain,
        denom: Some(denom.to_owned()),
        symbol: listed.symbol.clone(),
        name: listed.name.clone(),
        decimals: listed.decimals.filter(|_| !wrapped),
        logo_uri: listed.logo_uri.clone(),
        coingecko_id: listed.coingecko_id.clone(),
        hidden: Some(true),
        ..AssetDraft::default()
    }
}
