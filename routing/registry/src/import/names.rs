//! Names of the chains of one registry.

use std::collections::BTreeMap;

use serde_json::Value;

use super::layout::text;
use crate::problem::{Place, Problem};

/// Chain ids by name; `None` for a name of several chains, which names none of them.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, Option<String>>);

impl Names {
    /// The names of chains, each with its place. A dead chain gives its name up to a living one.
    pub(super) fn from_chains<'j>(
        chains: impl Iterator<Item = (&'j Value, &'j Place)>,
    ) -> (Self, Vec<Problem>) {
        let (mut names, mut problems) = (Self::default(), Vec::new());
        let is_dead = |json: &Value| {
            json["status"].as_str().is_some_and(|status| status.eq_ignore_ascii_case("killed"))
        };
        let mut chains: Vec<_> = chains.collect();
        chains.sort_by_key(|(json, _)| is_dead(json));
        for (json, place) in chains {
            let Some(id) = text(&json["chain_id"]) else { continue };
            let name = text(&json["chain_name"]).unwrap_or_else(|| id.clone());
            match names.0.get_mut(&name) {
                None => drop(names.0.insert(name, Some(id))),
                Some(other) if !is_dead(json) && other.as_deref() != Some(&id) => {
                    let what =
                        format!("the name `{name}` is that of two chains: no trace or pair can mean it");
                    problems.push(place.warning(what));
                    *other = None;
                }
                Some(_) => {}
            }
        }
        (names, problems)
    }

    /// The chain that an object means: by `chain_id`, else by `chain_name`.
    pub(super) fn meant(&self, json: &Value) -> Option<String> {
        let by_name = || self.0.get(json["chain_name"].as_str()?)?.clone();
        text(&json["chain_id"]).or_else(by_name)
    }
}
