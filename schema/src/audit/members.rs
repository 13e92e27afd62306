//! Two values of a row as text: only the members in which they differ, so that a reader sees what is wrong.

use serde_json::{Map, Value as Json};
use store::{List, Table, TableSpec, Value as _};

use crate::RECORDS;
use crate::payload::{Chunk, Codec};

/// Members that are shown of one row.
const SHOWN_MEMBERS: usize = 4;
/// Characters of a member's value that are shown.
const SHOWN_CHARS: usize = 120;
/// Bytes of a value without members that are shown.
const SHOWN_BYTES: usize = 60;

/// A value of a row, with the codec of its database.
pub type Coded<'a> = (&'a Codec, Option<&'a [u8]>);

/// The stored and the expected value of the row `key`, readable: a few of the members that differ, with their
/// values, or all of a row that is on one side only.
pub fn difference(
    spec: &'static TableSpec,
    key: &[u8],
    (stored, expected): (Coded<'_>, Coded<'_>),
) -> (String, String) {
    let tree = |(codec, value): Coded<'_>| value.and_then(|value| tree(spec, key, codec, value));
    let mut differing = Vec::new();
    match (tree(stored), tree(expected)) {
        (Some(one), Some(other)) => compare("", &one, &other, &mut differing),
        (Some(one), None) if expected.1.is_none() => return (shown(&one), value_or_nothing(None)),
        (None, Some(other)) if stored.1.is_none() => return (value_or_nothing(None), shown(&other)),
        _ => {}
    }
    if differing.is_empty() {
        return (value_or_nothing(stored.1), value_or_nothing(expected.1));
    }
    let more = differing.len().saturating_sub(SHOWN_MEMBERS);
    let side = |value: fn(&Differing) -> &str| {
        let members = differing.iter().take(SHOWN_MEMBERS);
        let members: Vec<_> =
            members
                .map(|it| {
                    if it.path.is_empty() {
                        value(it).to_owned()
                    } else {
                        format!("{} {}", it.path, value(it))
                    }
                })
                .collect();
        let rest = if more > 0 { format!(" and {more} more members") } else { String::new() };
        members.join(", ") + &rest
    };
    (side(|it| &it.stored), side(|it| &it.expected))
}

/// A member that differs.
struct Differing {
    path: String,
    stored: String,
    expected: String,
}

/// Collects the members in which `one` and `other` differ.
fn compare(path: &str, one: &Json, other: &Json, differing: &mut Vec<Differing>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
    match (one, other) {
        _ if one == other => {}
        (Json::Object(one), Json::Object(other)) => {
            let added = other.keys().filter(|name| !one.contains_key(*name));
            for name in one.keys().chain(added) {
                let member = |of: &Map<String, Json>| of.get(name).cloned().unwrap_or(Json::Null);
                compare(&below(name), &member(one), &member(other), differing);
            }
        }
        (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
            for (place, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&below(&place.to_string()), one, other, differing);
            }
        }
        _ => differing.push(Differing { path: path.to_owned(), stored: shown(one), expected: shown(other) }),
    }
}

fn shown(value: &Json) -> String {
    let text = match value {
        Json::Null => "nothing".to_owned(),
        Json::String(text) if text.is_empty() => "an empty value".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

/// A value by its members; `None` if it does not decode.
fn tree(spec: &'static TableSpec, key: &[u8], codec: &Codec, value: &[u8]) -> Option<Json> {
    if RECORDS.contains(&spec) {
        return records(spec, key, codec, value);
    }
    let mut decoded = Decoded { spec, value, json: None };
    crate::visit(&mut decoded);
    // The value of a row whose key says everything.
    decoded.json.map(|json| if json.is_null() { String::new().into() } else { json })
}

/// The records of a chunk by their sequences.
fn records(spec: &'static TableSpec, key: &[u8], codec: &Codec, value: &[u8]) -> Option<Json> {
    let first = u64::from_be_bytes(key.try_into().ok()?);
    let mut chunk = Vec::new();
    codec.decode_into(spec, first, value, &mut chunk).ok()?;
    let mut records = Map::new();
    for (place, record) in (first..).zip(Chunk::ranges(&chunk)?) {
        records.insert(format!("record {place}"), serde_json::from_slice(&chunk[record]).ok()?);
    }
    Some(Json::Object(records))
}

/// A value of the table `spec`, as JSON.
struct Decoded<'a> {
    spec: &'static TableSpec,
    value: &'a [u8],
    json: Option<Json>,
}

impl crate::Visitor for Decoded<'_> {
    fn table<T: Table>(&mut self) {
        if T::SPEC == self.spec {
            self.json = T::Value::decode(self.value).map(|value| value.json());
        }
    }

    // Entries of a list are sequences, which have no members.
    fn list<L: List>(&mut self) {}
}

/// [`bytes`] of a value, or a text for an absent one.
pub(super) fn value_or_nothing(value: Option<&[u8]>) -> String {
    value.map_or_else(|| "nothing".to_owned(), bytes)
}

/// A readable value: text or hexadecimal, truncated if it is long.
pub(super) fn bytes(value: &[u8]) -> String {
    // A short binary number may be valid text.
    const SHORT: usize = 8;
    let text = match std::str::from_utf8(value) {
        _ if value.is_empty() => return "an empty value".to_owned(),
        Ok(text) if value.len() > SHORT && !text.contains(char::is_control) => format!("`{text}`"),
        Ok(_) | Err(_) => hex::encode(value),
    };
    match text.char_indices().nth(2 * SHOWN_BYTES) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], value.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use store::{Key as _, MemStore, Message, Store as _};

    use super::*;
    use crate::block::{Block, Blocks};
    use crate::nft::{Collection, Collections};
    use crate::rich::Balances;

    fn differences<T: Table>(key: &T::Key, stored: &T::Value, expected: &T::Value) -> (String, String) {
        let codec = Codec::load(&*MemStore::new().snapshot().unwrap()).unwrap();
        let (stored, expected) = (stored.encoded(), expected.encoded());
        difference(T::SPEC, &key.to_bytes(), ((&codec, Some(&stored)), (&codec, Some(&expected))))
    }

    #[test]
    fn only_members_that_differ_are_shown_with_both_values() {
        let block = |txs, json: &str| {
            Message(Block { first_tx: 7, txs, json: json.as_bytes().to_vec(), ..Block::default() })
        };
        let (stored, expected) = differences::<Blocks>(
            &9,
            &block(1, r#"{"hash":"AB","proposer":{"moniker":"a, {b}"},"gas":[1,2]}"#),
            &block(2, r#"{"hash":"AB","proposer":{"moniker":"c"},"gas":[1,3]}"#),
        );
        assert_eq!(stored, "json/gas/1 2, json/proposer/moniker a, {b}, txs 1");
        assert_eq!(expected, "json/gas/1 3, json/proposer/moniker c, txs 2");
    }

    #[test]
    fn bytes_are_shown_in_hex_and_long_values_are_cut() {
        let (stored, expected) = differences::<Balances>(&([1; 20], [2; 20]), &vec![5], &vec![1, 0]);
        assert_eq!((stored.as_str(), expected.as_str()), ("05", "0100"));
        let collection = |name: String| Message(Collection { name, ..Collection::default() });
        let key = crate::keys::AccountKey(chain::Account::from([1; 20]));
        let (stored, expected) = differences::<Collections>(
            &key,
            &collection("x".repeat(5000)),
            &collection("[1, \"2".to_owned()),
        );
        assert!(stored.starts_with("name xxx") && stored.len() < 200, "{stored}");
        assert_eq!(expected, r#"name [1, "2"#);
    }
}
