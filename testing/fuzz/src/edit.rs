//! Structure-aware mutation of JSON, driven by the bytes of an input.
//!
//! Most byte-wise mutations of JSON are not JSON, so parsers reject them at once. An edit is a place (two bytes, modulo
//! the number of places), an operation (one byte) and its operand (a length and bytes).

use serde_json::Value;

use crate::input::Input;

/// Maximum number of edits of one input.
const MAX_EDITS: usize = 24;

/// Applies the edits in `input` to `value`.
pub fn apply(value: &mut Value, input: &mut Input<'_>) {
    for _ in 0..MAX_EDITS {
        if input.is_empty() {
            return;
        }
        edit(value, input);
    }
}

fn edit(root: &mut Value, input: &mut Input<'_>) {
    let mut places = Vec::new();
    collect(root, &mut String::new(), &mut places);
    let (place, operation) = (input.one_of(&places).clone(), input.byte());
    let with = input.piece();
    let new = match operation % 12 {
        0 => return remove(root, &place),
        1 => Value::Null,
        2 => String::from_utf8_lossy(with).into_owned().into(),
        3 => Input::new(with).long().cast_signed().into(),
        4 => Input::new(with).long().cast_signed().to_string().into(),
        5 => serde_json::from_slice(with).unwrap_or_default(),
        6 => Value::Array(Vec::new()),
        7 => Value::Object(serde_json::Map::new()),
        8 => {
            let from: &String = Input::new(with).one_of(&places);
            root.pointer(from).cloned().unwrap_or_default()
        }
        9 => return duplicate(root, &place),
        10 => format!("0x{}", hex::encode(with)).into(),
        _ => return splice(root, &place, with),
    };
    if let Some(old) = root.pointer_mut(&place) {
        *old = new;
    }
}

/// Every place in a value, as JSON pointers.
fn collect(value: &Value, at: &mut String, places: &mut Vec<String>) {
    places.push(at.clone());
    let mut below = |name: &str, value: &Value| {
        let length = at.len();
        at.push('/');
        at.push_str(&name.replace('~', "~0").replace('/', "~1"));
        collect(value, at, places);
        at.truncate(length);
    };
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item));
        }
        Value::Object(members) => members.iter().for_each(|(name, member)| below(name, member)),
        _ => {}
    }
}

fn remove(root: &mut Value, place: &str) {
    let Some((parent, name)) = place.rsplit_once('/') else { return };
    let name = name.replace("~1", "/").replace("~0", "~");
    match root.pointer_mut(parent) {
        Some(Value::Array(items)) => drop(name.parse().map(|index: usize| items.remove(index))),
        Some(Value::Object(members)) => drop(members.remove(&name)),
        _ => {}
    }
}

/// Duplicates an item of a list.
fn duplicate(root: &mut Value, place: &str) {
    let Some((parent, name)) = place.rsplit_once('/') else { return };
    if let (Some(Value::Array(items)), Ok(index)) = (root.pointer_mut(parent), name.parse::<usize>()) {
        items.insert(index, items[index].clone());
    }
}

/// Overwrites bytes of a text.
fn splice(root: &mut Value, place: &str, with: &[u8]) {
    let Some(Value::String(text)) = root.pointer_mut(place) else { return };
    let Some((&at, with)) = with.split_first() else { return };
    let mut bytes = text.as_bytes().to_vec();
    let at = usize::from(at) % (bytes.len() + 1);
    let end = (at + with.len()).min(bytes.len());
    bytes.splice(at..end, with.iter().copied());
    *text = String::from_utf8_lossy(&bytes).into_owned();
}
