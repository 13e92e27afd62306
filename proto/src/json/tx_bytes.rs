//! The wire bytes of a transaction from its JSON: what an encoder has written, if it is a usual one.
//!
//! JSON says less than the wire: neither the order of fields nor whether a default was written. Fields are written in the order of
//! their numbers, as all usual encoders do, and messages without content as [`Empty`] says. Only the hash of a transaction can tell
//! whether the bytes are its own.
//!
//! # Invariants
//! * Each level of JSON is read for itself, so the work grows with the depth: it is at most [`MAX_WORK`] times the length.

use std::cell::Cell;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::encoding::encode_varint;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::descriptor::FieldType;
use crate::json::Registry;
use crate::json::table::{Absent, Enum, Field, Form, Kind, Message, Shape};
use crate::json::time_json::ZERO_TIME;
use crate::json::wire::Wire;

/// How often all of the JSON may be read: usual transactions have some ten levels.
const MAX_WORK: usize = 32;

/// Whether an encoder writes messages without content where Go's types have no way to leave them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// As Go's encoders do.
    Written,
    /// As those of other languages do.
    LeftOut,
}

/// The bytes of the transaction whose JSON [`super::write_tx`] has written. `None` if the JSON does not tell them: a transaction that was
/// written as an opaque one, or a field of a form that no known transaction has.
pub fn tx_bytes(registry: &Registry, json: &str, empty: Empty) -> Option<Vec<u8>> {
    let encoder = Encoder { registry, empty, left: Cell::new(json.len().saturating_mul(MAX_WORK)) };
    let members = encoder.object(json)?;
    let (mut out, mut part) = (Vec::with_capacity(json.len() / 2), Vec::new());
    for (number, name, message) in [(1, "body", registry.body), (2, "auth_info", registry.auth_info)] {
        part.clear();
        encoder.message(message, members.get(name)?.get(), &mut part)?;
        if !part.is_empty() {
            write(number, Wire::Bytes, &part, &mut out);
        }
    }
    for signature in text_of::<Vec<String>>(members.get("signatures")?.get())? {
        write(3, Wire::Bytes, &STANDARD.decode(signature).ok()?, &mut out);
    }
    Some(out)
}

/// The members of an object.
type Members<'a> = BTreeMap<String, &'a RawValue>;

fn text_of<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}

/// Appends a field; `value` is without its length.
fn write(number: u32, wire: Wire, value: &[u8], out: &mut Vec<u8>) {
    let layout = match wire {
        Wire::Varint => 0,
        Wire::Fixed64 => 1,
        Wire::Bytes => 2,
        Wire::Group => 3,
        Wire::Fixed32 => 5,
    };
    encode_varint(u64::from(number) << 3 | layout, out);
    if wire == Wire::Bytes {
        encode_varint(value.len() as u64, out);
    }
    out.extend_from_slice(value);
}

struct Encoder<'r> {
    registry: &'r Registry,
    empty: Empty,
    /// Bytes of JSON that may still be read.
    left: Cell<usize>,
}

impl Encoder<'_> {
    fn object<'j>(&self, json: &'j str) -> Option<Members<'j>> {
        self.left.set(self.left.get().checked_sub(json.len())?);
        serde_json::from_str(json).ok()
    }

    fn message(&self, index: usize, json: &str, out: &mut Vec<u8>) -> Option<()> {
        let message = &self.registry.messages[index];
        match message.form {
            Form::Object | Form::WellKnownObject => self.members(message, &self.object(json)?, out),
            Form::Any => self.any(json, out),
            Form::Timestamp => timestamp(json, out),
            Form::Duration => duration(json, out),
            Form::Transparent | Form::Value | Form::Missing => None,
        }
    }

    fn members(&self, message: &Message, members: &Members<'_>, out: &mut Vec<u8>) -> Option<()> {
        message.by_number.iter().try_for_each(|&(_, position)| {
            let field = &message.fields[position];
            match members.get(field.name()).map(|json| json.get()) {
                None | Some("null") => Some(()),
                Some(json) => self.field(field, json, out),
            }
        })
    }

    fn field(&self, field: &Field, json: &str, out: &mut Vec<u8>) -> Option<()> {
        let (number, wire, mut value) = (field.number, field.kind.wire(), Vec::new());
        match field.shape {
            Shape::Map => return (json == "{}").then_some(()),
            Shape::Many => {
                for item in serde_json::from_str::<Vec<&RawValue>>(json).ok()? {
                    self.value(field.kind, item.get(), &mut value)?;
                    if wire == Wire::Bytes {
                        write(number, wire, &value, out);
                        value.clear();
                    }
                }
                // Numbers are packed.
                if !value.is_empty() {
                    write(number, Wire::Bytes, &value, out);
                }
            }
            Shape::One => {
                let is_default = self.value(field.kind, json, &mut value)?;
                let is_message = matches!(field.kind, Kind::Message(_) | Kind::Time | Kind::Span);
                let is_written = !is_default || (is_message && self.empty == Empty::Written);
                if is_written || field.absent != Absent::Zero {
                    write(number, wire, &value, out);
                }
            }
        }
        Some(())
    }

    /// Appends a value. True if it is what an absent field is printed as.
    fn value(&self, kind: Kind, json: &str, out: &mut Vec<u8>) -> Option<bool> {
        let start = out.len();
        match kind {
            Kind::Message(index) => self.message(index, json, out)?,
            Kind::Number(number) => return write_number(number, json, out),
            Kind::Enum(index) => {
                let number = enum_number(&self.registry.enums[index], json)?;
                encode_varint(i64::from(number).cast_unsigned(), out);
                return Some(number == 0);
            }
            Kind::Text | Kind::Integer => out.extend_from_slice(text_of::<String>(json)?.as_bytes()),
            Kind::Decimal => write_scaled(&text_of::<String>(json)?, out)?,
            Kind::Bytes => {
                // Absent bytes are printed as `null`.
                out.extend_from_slice(&STANDARD.decode(text_of::<String>(json)?).ok()?);
                return Some(false);
            }
            Kind::Hex => out.extend_from_slice(&hex::decode(text_of::<String>(json)?).ok()?),
            Kind::EthereumTx if json == "null" => {}
            Kind::EthereumTx => {
                let text = text_of::<String>(json)?;
                out.extend_from_slice(&hex::decode(text.strip_prefix("0x")?).ok()?);
            }
            Kind::Json => out.extend_from_slice(json.as_bytes()),
            Kind::Time => {
                timestamp(json, out)?;
                return Some(json.as_bytes() == ZERO_TIME);
            }
            Kind::Span => duration(json, out)?,
            Kind::Group => return None,
        }
        Some(out.len() == start)
    }

    fn any(&self, json: &str, out: &mut Vec<u8>) -> Option<()> {
        let members = self.object(json)?;
        let type_url: String = text_of(members.get("@type")?.get())?;
        let mut value = Vec::new();
        match self.registry.resolve(&type_url).map(|index| (index, &self.registry.messages[index])) {
            Some((index, message)) if message.form.is_well_known() => {
                self.message(index, members.get("value")?.get(), &mut value)?;
            }
            Some((_, message)) => self.members(message, &members, &mut value)?,
            // One that could not be printed.
            None => value = STANDARD.decode(text_of::<String>(members.get("value")?.get())?).ok()?,
        }
        write(1, Wire::Bytes, type_url.as_bytes(), out);
        if !value.is_empty() {
            write(2, Wire::Bytes, &value, out);
        }
        Some(())
    }
}

/// Appends a number. True if it is 0.
fn write_number(number: FieldType, json: &str, out: &mut Vec<u8>) -> Option<bool> {
    use FieldType::{
        Bool, Double, Fixed32, Fixed64, Float, Int32, Int64, Sfixed32, Sfixed64, Sint32, Sint64, Uint32,
        Uint64,
    };
    if number == Bool {
        let value: bool = text_of(json)?;
        encode_varint(value.into(), out);
        return Some(!value);
    }
    let digits = json.trim_matches('"');
    let value: i128 = if matches!(number, Double | Float) { 0 } else { digits.parse().ok()? };
    match number {
        Int32 | Int64 => encode_varint(i64::try_from(value).ok()?.cast_unsigned(), out),
        Uint32 | Uint64 => encode_varint(u64::try_from(value).ok()?, out),
        Sint32 | Sint64 => {
            let value = i64::try_from(value).ok()?;
            encode_varint(((value << 1) ^ (value >> 63)).cast_unsigned(), out);
        }
        Fixed32 => out.extend_from_slice(&u32::try_from(value).ok()?.to_le_bytes()),
        Sfixed32 => out.extend_from_slice(&i32::try_from(value).ok()?.to_le_bytes()),
        Fixed64 => out.extend_from_slice(&u64::try_from(value).ok()?.to_le_bytes()),
        Sfixed64 => out.extend_from_slice(&i64::try_from(value).ok()?.to_le_bytes()),
        // No known transaction has fractions.
        _ => return None,
    }
    Some(value == 0)
}

fn enum_number(values: &Enum, json: &str) -> Option<i32> {
    let named = values.names.iter().find(|(_, name)| **name == *json).map(|(number, _)| *number);
    let other = values.other.filter(|other| *other == json).map(|_| 0);
    named.or(other).or_else(|| json.parse().ok())
}

/// Appends the digits of a decimal with 18 digits after the point; none for one that was not set.
fn write_scaled(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let Some((whole, fraction)) = digits.split_once('.') else { return (text == "0").then_some(()) };
    let scaled = [whole, fraction].concat();
    let scaled = scaled.trim_start_matches('0');
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(if scaled.is_empty() { b"0" } else { scaled.as_bytes() });
    Some(())
}

/// Appends the fields of a `google.protobuf.Timestamp`.
fn timestamp(json: &str, out: &mut Vec<u8>) -> Option<()> {
    let time = OffsetDateTime::parse(&text_of::<String>(json)?, &Rfc3339).ok()?;
    write_pair(time.unix_timestamp(), time.nanosecond().into(), out);
    Some(())
}

/// Appends the fields of a `google.protobuf.Duration`.
fn duration(json: &str, out: &mut Vec<u8>) -> Option<()> {
    let text: String = text_of(json)?;
    let text = text.strip_suffix('s')?;
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (seconds, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
    write_pair(sign * seconds.parse::<i64>().ok()?, sign * nanos, out);
    Some(())
}

/// Appends seconds and nanoseconds, those that are not 0.
fn write_pair(seconds: i64, nanos: i64, out: &mut Vec<u8>) {
    for (number, value) in [(1, seconds), (2, nanos)] {
        if value != 0 {
            encode_varint(number << 3, out);
            encode_varint(value.cast_unsigned(), out);
        }
    }
}
