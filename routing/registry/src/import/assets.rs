//! Parser of `assetlist.json`, common to both public registries.

use serde_json::Value;

use super::Imported;
use super::chains::logo;
use super::layout::{Json, list, text};
use super::names::Names;
use super::traces;
use crate::draft::{AssetDraft, Located, Source};
use crate::problem::Place;

impl Imported<'_> {
    /// Adds the assets of a chain.
    pub(super) fn assets(&mut self, json: &Json, chain: &str, source: Source, names: &Names) {
        for asset in list(&json.value["assets"]) {
            let name =
                text(&asset["base"]).or_else(|| text(&asset["symbol"])).unwrap_or_else(|| "assets".into());
            let place = Place::new(&json.file, name);
            match draft(asset, chain) {
                Ok(part) => {
                    let placed = Located { source, place, part };
                    let traced = traces::follow(placed, list(&asset["traces"]), names, &mut self.words);
                    self.draft.append(traced);
                }
                Err(what) => self.skip(&place, what),
            }
        }
    }
}

/// An asset without its origin.
pub(super) fn draft(json: &Value, chain: &str) -> Result<AssetDraft, &'static str> {
    let base = text(&json["base"]).ok_or("`base` is not text")?;
    let contract = text(&json["address"]).filter(|address| address.starts_with("0x"));
    Ok(AssetDraft {
        chain: chain.to_owned(),
        decimals: Some(decimals(json).ok_or("no unit of `denom_units` is the one of `display`")?),
        symbol: Some(text(&json["symbol"]).ok_or("`symbol` is not text")?),
        name: text(&json["name"]),
        contract,
        logo_uri: logo(json),
        description: text(&json["description"]),
        coingecko_id: text(&json["coingecko_id"]),
        denom: Some(base),
        // Unlisted assets are hidden, and listed ones that are not to be used any more.
        hidden: Some(json["deprecated"] == true),
        ..AssetDraft::default()
    })
}

/// The exponent of the display unit, which `display` names by its denomination or by an alias.
fn decimals(json: &Value) -> Option<u8> {
    let (display, units) = (&json["display"], list(&json["denom_units"]));
    let named = units.iter().find(|unit| unit["denom"] == *display);
    let unit = named.or_else(|| units.iter().find(|unit| list(&unit["aliases"]).contains(display)))?;
    u8::try_from(unit["exponent"].as_u64()?).ok()
}
