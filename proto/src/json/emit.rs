//! Writes a message from its wire bytes, field by field in declaration order.
//!
//! A message's bytes are indexed first (`fields`): the values of each field. Of several values of a singular field the
//! last counts, messages are merged, and in a oneof the last member counts. Depth and size are bounded here, because a
//! few bytes of input can produce deep or large output.

mod any;
mod fields;
mod map;

pub(crate) use fields::Scratch;

use crate::descriptor::FieldType;
use crate::json::amount::{write_decimal, write_integer};
use crate::json::inline_json::write_compact;
use crate::json::scalar::{as_i32, write_number};
use crate::json::table::{Absent, Field, Form, Kind, Message, Shape};
use crate::json::text::{write_base64, write_hex, write_string};
use crate::json::time_json::{ZERO_TIME, write_duration, write_span, write_timestamp};
use crate::json::wire::{Cursor, Value, WireError};
use crate::json::{Error, Registry};
use fields::Slot;

/// Maximum depth of objects and arrays. General JSON readers stop at 128; the remaining levels are for the record
/// around a transaction.
pub const MAX_DEPTH: usize = 100;

/// Maximum output of one call: 64 MiB. The largest transaction of a default chain gives about 6 MiB.
pub const MAX_JSON: usize = 64 << 20;

/// Number bit of unknown fields that may be ignored (cosmos-sdk ADR-020, `codec/unknownproto`).
const NON_CRITICAL: u32 = 1 << 10;

/// One run over one message or transaction.
pub(crate) struct Emitter<'e> {
    pub(crate) registry: &'e Registry,
    pub(crate) out: &'e mut Vec<u8>,
    /// Maximum length of `out`.
    limit: usize,
    depth: usize,
    /// An Any that cannot be printed becomes its type URL and base64 instead of an error.
    opaque: bool,
    /// Unknown fields are rejected even if they are not critical.
    pub(crate) strict: bool,
}

impl<'e> Emitter<'e> {
    pub(crate) fn new(registry: &'e Registry, out: &'e mut Vec<u8>, opaque: bool) -> Self {
        let limit = out.len().saturating_add(MAX_JSON);
        Self { registry, out, limit, depth: 0, opaque, strict: false }
    }

    /// A message in the JSON form of its type.
    pub(crate) fn message<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        index: usize,
        bytes: &'a [u8],
    ) -> Result<(), Error> {
        let message = &self.registry.messages[index];
        self.descend(|emitter| match message.form {
            Form::Object | Form::WellKnownObject => {
                emitter.out.push(b'{');
                emitter.members(scratch, message, bytes, false)?;
                emitter.out.push(b'}');
                Ok(())
            }
            Form::Any => emitter.any(scratch, bytes),
            Form::Timestamp => write_timestamp(bytes, emitter.out).map_err(|flaw| malformed(message, flaw)),
            Form::Duration => write_duration(bytes, emitter.out).map_err(|flaw| malformed(message, flaw)),
            Form::Transparent | Form::Value => emitter.only_field(scratch, message, bytes),
            Form::Missing => Err(Error::UnknownType { type_url: format!("/{}", message.name) }),
        })
    }

    /// The members of an object, without its braces; with `comma`, members precede them.
    fn members<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        message: &'e Message,
        bytes: &'a [u8],
        mut comma: bool,
    ) -> Result<(), Error> {
        let mark = scratch.mark();
        self.index(scratch, message, bytes)?;
        for (position, field) in message.fields.iter().enumerate() {
            let slot = scratch.slot(mark, position);
            if slot.is_empty() && field.absent == Absent::Omit {
                continue;
            }
            if comma {
                self.out.push(b',');
            }
            comma = true;
            self.out.extend_from_slice(field.key.as_bytes());
            self.field(scratch, message, field, slot)?;
        }
        scratch.release(mark);
        Ok(())
    }

    /// The only value of a wrapper, Struct, ListValue (set or not) or Value (which must be set).
    fn only_field<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        message: &'e Message,
        bytes: &'a [u8],
    ) -> Result<(), Error> {
        let mark = scratch.mark();
        self.index(scratch, message, bytes)?;
        let set = (0..message.fields.len()).find(|&position| !scratch.slot(mark, position).is_empty());
        let position = match (set, message.form) {
            (None, Form::Value) => return Err(malformed(message, "no value")),
            (set, _) => set.unwrap_or_default(),
        };
        let field = message.fields.get(position).ok_or_else(|| malformed(message, "no fields"))?;
        self.field(scratch, message, field, scratch.slot(mark, position))?;
        scratch.release(mark);
        Ok(())
    }

    /// Sorts a message's fields into the scratch, one slot per field.
    fn index<'a>(&self, scratch: &mut Scratch<'a>, message: &Message, bytes: &'a [u8]) -> Result<(), Error> {
        let mark = scratch.reserve(message.fields.len());
        let mut cursor = Cursor::new(bytes);
        let mut expected = 0;
        while let Some((number, value)) = cursor.field().map_err(|flaw| malformed(message, flaw))? {
            let Some(position) = message.find(number, expected) else {
                self.unknown(&message.name, number)?;
                continue;
            };
            let field = &message.fields[position];
            if !field.accepts(value.wire) {
                return Err(malformed_field(message, field, "another wire type than the descriptor says"));
            }
            if let Some(oneof) = field.oneof {
                scratch.clear(mark, message.fields.iter().map(|other| other.oneof == Some(oneof)));
            }
            scratch.push(mark, position, value);
            expected = if field.shape == Shape::One { position + 1 } else { position };
        }
        Ok(())
    }

    /// An error for an unknown field, unless it may be ignored.
    fn unknown(&self, message: &str, number: u32) -> Result<(), Error> {
        if number & NON_CRITICAL != 0 && !self.strict {
            return Ok(());
        }
        Err(Error::UnknownField { message: message.to_owned(), number })
    }

    fn field<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        message: &'e Message,
        field: &'e Field,
        slot: Slot,
    ) -> Result<(), Error> {
        match (field.shape, field.kind) {
            (Shape::Map, Kind::Message(entry)) => {
                let entry = &self.registry.messages[entry];
                self.descend(|emitter| emitter.map(scratch, field, entry, slot))
            }
            (Shape::Many | Shape::Map, _) => {
                self.descend(|emitter| emitter.list(scratch, message, field, slot))
            }
            (Shape::One, Kind::Message(index)) if slot.has_several() => {
                let whole: Vec<u8> = scratch.values(slot).flat_map(|value| value.bytes).copied().collect();
                self.message(&mut Scratch::default(), index, &whole)
            }
            (Shape::One, _) => match scratch.last(slot) {
                Some(value) => self.value(scratch, message, field, value),
                None => self.absent(scratch, message, field),
            },
        }
    }

    fn list<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        message: &'e Message,
        field: &'e Field,
        slot: Slot,
    ) -> Result<(), Error> {
        self.out.push(b'[');
        let start = self.out.len();
        let mut next = slot;
        while let Some(value) = scratch.step(&mut next) {
            let wire = field.kind.wire();
            if value.wire == wire {
                self.separate(start)?;
                self.value(scratch, message, field, value)?;
                continue;
            }
            let mut packed = Cursor::new(value.bytes);
            while !packed.is_empty() {
                let number = packed.packed(wire).map_err(|flaw| malformed_field(message, field, flaw))?;
                self.separate(start)?;
                self.value(scratch, message, field, Value::number(wire, number))?;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    /// A comma, unless the output has not grown since `start`.
    fn separate(&mut self, start: usize) -> Result<(), Error> {
        if self.out.len() > start {
            self.out.push(b',');
        }
        self.within_limit()
    }

    fn absent<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        message: &'e Message,
        field: &'e Field,
    ) -> Result<(), Error> {
        match (field.absent, field.kind) {
            (Absent::Null | Absent::Omit, _) | (_, Kind::Bytes | Kind::Json | Kind::Group) => {
                self.out.extend_from_slice(b"null");
                Ok(())
            }
            (Absent::Zero, Kind::Time) => {
                self.out.extend_from_slice(ZERO_TIME);
                Ok(())
            }
            (Absent::Zero, _) => self.value(scratch, message, field, Value::ABSENT),
        }
    }

    fn value<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        message: &Message,
        field: &Field,
        value: Value<'a>,
    ) -> Result<(), Error> {
        let out = &mut *self.out;
        let written: Result<(), WireError> = match field.kind {
            Kind::Message(index) => return self.message(scratch, index, value.bytes),
            Kind::Number(number) => {
                write_number(number, value.number, out);
                Ok(())
            }
            Kind::Enum(index) => {
                match self.registry.enums[index].json(as_i32(value)) {
                    Some(json) => out.extend_from_slice(json.as_bytes()),
                    None => write_number(FieldType::Int32, value.number, out),
                }
                Ok(())
            }
            Kind::Text => {
                write_string(value.bytes, out);
                Ok(())
            }
            Kind::Bytes => {
                write_base64(value.bytes, out);
                Ok(())
            }
            Kind::Hex => {
                write_hex(value.bytes, out);
                Ok(())
            }
            Kind::EthereumTx if value.bytes.is_empty() => {
                out.extend_from_slice(b"null");
                Ok(())
            }
            Kind::EthereumTx => {
                out.extend_from_slice(b"\"0x");
                out.extend(value.bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit));
                out.push(b'"');
                Ok(())
            }
            Kind::Group => Err("groups are not printed"),
            Kind::Json => write_compact(value.bytes, MAX_DEPTH - self.depth, out),
            Kind::Integer => write_integer(value.bytes, out),
            Kind::Decimal => write_decimal(value.bytes, out),
            Kind::Time => write_timestamp(value.bytes, out),
            Kind::Span => write_span(value.bytes, out),
        };
        written.map_err(|flaw| malformed_field(message, field, flaw))
    }

    /// Runs `write` one level deeper.
    fn descend(&mut self, write: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::TooDeep { limit: MAX_DEPTH });
        }
        self.within_limit()?;
        self.depth += 1;
        let result = write(self);
        self.depth -= 1;
        result
    }

    /// An error if the output exceeds its maximum length.
    pub(crate) fn within_limit(&self) -> Result<(), Error> {
        if self.out.len() > self.limit { Err(Error::TooLarge { limit: MAX_JSON }) } else { Ok(()) }
    }
}

fn hex_digit(nibble: u8) -> u8 {
    b"0123456789abcdef"[usize::from(nibble & 15)]
}

fn malformed(message: &Message, reason: WireError) -> Error {
    Error::Malformed { place: message.name.to_string(), reason }
}

fn malformed_field(message: &Message, field: &Field, reason: WireError) -> Error {
    Error::Malformed { place: format!("{}.{}", message.name, field.name()), reason }
}
