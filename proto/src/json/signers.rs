//! The signers of a message, from its `cosmos.msg.v1.signer` option.
//!
//! The option contains names of text fields, or of message fields whose types have the option themselves (cosmos-sdk
//! `proto/cosmos/msg/v1/msg.proto`).

use crate::json::Registry;
use crate::json::table::{Field, Kind, Shape};
use crate::json::wire::{Cursor, Value};

/// Maximum nesting of signer options. Known messages have one level (`MsgMultiSend`).
const MAX_LEVELS: usize = 8;

/// The addresses in the signer fields of a message, in the option's order and with repetitions.
///
/// Empty for an unknown type or one without the option. Fields that are empty, not UTF-8 or truncated are left out:
/// this is a heuristic for transactions without other information about their signers.
pub fn signers_named_by_message(registry: &Registry, type_url: &str, value: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(index) = registry.resolve(type_url) {
        collect(registry, index, value, MAX_LEVELS, &mut found);
    }
    found
}

fn collect(registry: &Registry, index: usize, bytes: &[u8], levels: usize, found: &mut Vec<String>) {
    let message = &registry.messages[index];
    let signers =
        message.signers.iter().filter_map(|name| message.fields.iter().find(|field| field.name() == name));
    for field in signers {
        for value in values(field, bytes) {
            match (field.kind, std::str::from_utf8(value.bytes)) {
                (Kind::Message(nested), _) if levels > 0 => {
                    collect(registry, nested, value.bytes, levels - 1, found);
                }
                (Kind::Text, Ok(text)) if !text.is_empty() => found.push(text.to_owned()),
                _ => {}
            }
        }
    }
}

/// The values of one field, up to the first malformed byte; of a singular field the last.
fn values<'a>(field: &Field, bytes: &'a [u8]) -> Vec<Value<'a>> {
    let mut cursor = Cursor::new(bytes);
    let mut values = Vec::new();
    while let Ok(Some((number, value))) = cursor.field() {
        if number == field.number && value.wire == field.kind.wire() {
            if field.shape == Shape::One {
                values.clear();
            }
            values.push(value);
        }
    }
    values
}
