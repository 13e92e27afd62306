//! Traces of an asset: its origin and every step from there to the asset.
//!
//! The last step is the origin of the asset. Inputs of earlier steps become hidden assets unless a list has them;
//! channels and bridges of a step become drafts too.

use serde_json::Value;

use super::layout::text;
use super::names::Names;
use super::words::{Step as Kind, TRACE_TYPE, UnknownWords};
use crate::denom::{self, TRANSFER_PORT, is_contract_port};
use crate::draft::{
    AssetDraft, BridgeDraft, BridgedDraft, ChannelDraft, Draft, EndDraft, IbcDraft, Located, Source,
    WrappedDraft,
};
use crate::problem::Place;

/// One step, with its input.
struct Step<'a> {
    trace: &'a Value,
    from_chain: Option<String>,
    from: String,
    kind: Kind,
}

/// The asset with its origin, and all parts that its traces imply. Malformed traces are ignored as a whole.
pub(super) fn follow(
    asset: Located<AssetDraft>,
    traces: &[Value],
    names: &Names,
    words: &mut UnknownWords,
) -> Draft {
    let Located { source, place, part: listed } = asset;
    let steps: Option<Vec<_>> = traces.iter().map(|trace| step(trace, names, words, &place)).collect();
    let (mut draft, mut input, mut wrapped) = (Draft::default(), Some(listed.clone()), false);
    // The first asset is the listed one; its ancestors are implied.
    let located = |draft: &Draft, part| {
        let source = if draft.asset.is_empty() { source } else { Source::Implied };
        Located { source, place: place.clone(), part }
    };
    for step in steps.iter().flatten().rev() {
        let Some(mut part) = input.take_if(|part| {
            set_path(part, step);
            step.kind != Kind::Other
        }) else {
            break;
        };
        set_origin(&mut part, step);
        imply_link(&mut draft, step, &part.chain, source, &place);
        wrapped |= step.kind == Kind::Wrapped;
        let path = part.path.as_deref().and_then(denom::parent_path);
        input = step.from_chain.clone().map(|chain| AssetDraft {
            path: path
                .filter(|path| denom::is_voucher(&step.from) && is_of(path, &step.from))
                .map(str::to_owned),
            ..ancestor(&listed, chain, &step.from, wrapped)
        });
        draft.asset.push(located(&draft, part));
    }
    if let Some(part) = input {
        draft.asset.push(located(&draft, part));
    }
    draft
}

fn step<'a>(trace: &'a Value, names: &Names, words: &mut UnknownWords, place: &Place) -> Option<Step<'a>> {
    let counterparty = &trace["counterparty"];
    trace["type"].as_str()?;
    let kind = match words.meaning(&TRACE_TYPE, &trace["type"], place) {
        Some(Kind::Wrapped) if trace["provider"] != "Decimal Wrapper" => Kind::Other,
        kind => kind.unwrap_or(Kind::Other),
    };
    Some(Step {
        trace,
        from_chain: names.meant(counterparty),
        from: text(&counterparty["base_denom"])?,
        kind,
    })
}

/// Sets the path that a step states, if it gives the denomination. The step may be one over IBC v2, which is not
/// followed further.
fn set_path(part: &mut AssetDraft, step: &Step<'_>) {
    let Some(denom) = part.denom.as_deref().filter(|denom| denom::is_voucher(denom)) else { return };
    if let Some(path) = text(&step.trace["chain"]["path"]).filter(|path| is_of(path, denom)) {
        part.path = Some(path);
    }
}

fn is_of(path: &str, denom: &str) -> bool {
    denom::of_path(path) == denom
}

fn set_origin(part: &mut AssetDraft, step: &Step<'_>) {
    let (chain, from) = (&step.trace["chain"], step.from.clone());
    match step.kind {
        Kind::Ibc => {
            let channel = text(&chain["channel_id"]);
            part.ibc = channel.map(|channel| IbcDraft { port: text(&chain["port"]), channel, from });
        }
        Kind::Op => part.bridged = Some(BridgedDraft { from }),
        Kind::Wrapped => {
            part.wrapped = text(&chain["contract"]).map(|contract| WrappedDraft { contract, from });
        }
        Kind::Other => {}
    }
}

/// Adds the channel or the bridge of a step.
fn imply_link(draft: &mut Draft, step: &Step<'_>, here: &str, source: Source, place: &Place) {
    let Some(there) = &step.from_chain else { return };
    let (chain, counterparty) = (&step.trace["chain"], &step.trace["counterparty"]);
    if step.kind == Kind::Op
        && let Some(id) = text(&chain["bridge_id"]).and_then(|id| id.parse().ok())
    {
        let (l2, l1) = (here.to_owned(), Some(there.clone()));
        let part = BridgeDraft { l2, id: Some(id), l1, ..BridgeDraft::default() };
        draft.bridge.push(Located { source: Source::Implied, place: place.clone(), part });
    }
    let end = |chain: &str, end: &Value| {
        let port = text(&end["port"]).unwrap_or_else(|| TRANSFER_PORT.to_owned());
        let channel =
            text(&end["channel_id"]).filter(|_| port == TRANSFER_PORT || is_contract_port(&port))?;
        Some(EndDraft { chain: chain.to_owned(), port, channel })
    };
    if let (Kind::Ibc, Some(a), Some(b)) = (step.kind, end(here, chain), end(there, counterparty)) {
        let b = Some(b);
        let part = ChannelDraft { a, b, paused: None, seconds: None };
        draft.channel.push(Located { source, place: place.clone(), part });
    }
}

/// The input of a step, used if no list has it. Its decimals are unknown if the step wraps it, because the wrapper
/// changes them.
fn ancestor(listed: &AssetDraft, chain: String, denom: &str, wrapped: bool) -> AssetDraft {
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
