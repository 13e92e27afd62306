//! Native file format of a registry: TOML or JSON, deserialized by serde into [`crate::draft`]; `README.md` documents it.
//!
//! # Invariants
//!
//! * An unknown key, a wrong type or a value out of range is an error with file, line and key.
//! * Two files with the same parts have the same meaning.

mod document;
mod variables;

use std::sync::Arc;

use crate::draft::{ChainDraft, Draft};
use crate::problem::LoadError;
use document::{Document, index, key};
pub(crate) use variables::Environment;
use variables::expand;

/// Parses a file in the native format.
pub(crate) fn read(file: &Arc<str>, text: &str, environment: Environment<'_>) -> Result<Draft, LoadError> {
    let document = Document::parse(file, text)?;
    let mut draft: Draft = document.deserialize()?;
    if let Some(import) = &mut draft.import {
        import.place = document.place(&[key("import")]);
    }
    document.locate(&[], "chain", &mut draft.chain);
    document.locate(&[], "channel", &mut draft.channel);
    document.locate(&[], "bridge", &mut draft.bridge);
    document.locate(&[], "asset", &mut draft.asset);
    document.locate(&[], "oft", &mut draft.oft);
    document.locate(&[], "venue", &mut draft.venue);
    document.locate(&[], "bridge_kind", &mut draft.bridge_kind);
    for (number, chain) in draft.chain.iter_mut().enumerate() {
        expand_variables(&document, number, &mut chain.part, environment)?;
        chain.part.fee_assets.take_if(|list| list.is_empty());
    }
    for bridge in &mut draft.bridge {
        bridge.part.migrated.take_if(|list| list.is_empty());
    }
    for asset in &mut draft.asset {
        let part = &mut asset.part;
        let origins =
            [part.ibc.is_some(), part.bridged.is_some(), part.wrapped.is_some(), part.path.is_some()];
        if origins.into_iter().filter(|given| *given).count() > 1 {
            let what = "an asset has one of `ibc`, `bridged`, `wrapped` and `path` at most";
            return Err(asset.place.error(what).into());
        }
        // An asset that a file names is visible, even if other assets imply it.
        part.hidden.get_or_insert(false);
    }
    for (number, oft) in draft.oft.iter_mut().enumerate() {
        document.locate(&[key("oft"), index(number)], "leg", &mut oft.part.legs);
    }
    Ok(draft)
}

/// Replaces `${NAME}` in the node addresses of a chain; an address with a variable is secret.
fn expand_variables(
    document: &Document<'_>,
    number: usize,
    chain: &mut ChainDraft,
    environment: Environment<'_>,
) -> Result<(), LoadError> {
    let (endpoints, mut secret) = (&mut chain.endpoints, Vec::new());
    for (kind, addresses) in [
        ("rpc", &mut endpoints.rpc),
        ("rest", &mut endpoints.rest),
        ("json_rpc", &mut endpoints.json_rpc),
        ("executor", &mut endpoints.executor),
    ] {
        let place = || document.place(&[key("chain"), index(number), key("endpoints"), key(kind)]);
        for address in addresses.iter_mut().flatten() {
            if address.is_empty() {
                return Err(place().error("must be an array of texts that are not empty").into());
            }
            let expanded = expand(address, environment).map_err(|what| place().error(what))?;
            if address.contains("${") {
                secret.push(expanded.clone());
            }
            *address = expanded;
        }
    }
    endpoints.secret = (!secret.is_empty()).then_some(secret);
    Ok(())
}
