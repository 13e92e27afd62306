//! Map fields: objects whose keys are strings, sorted by value: numbers as numbers, text by its bytes.
//!
//! Of two entries with the same key the last counts.

use super::fields::Slot;
use super::{Emitter, Scratch, malformed, malformed_field};
use crate::json::Error;
use crate::json::scalar::{integer, is_wide, write_number};
use crate::json::table::{Absent, Field, Kind, Message};
use crate::json::text::write_string;
use crate::json::wire::{Cursor, Value};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Number(i128),
    Text(&'a [u8]),
}

struct Entry<'a> {
    key: Value<'a>,
    value: Option<Value<'a>>,
}

impl<'e> Emitter<'e> {
    pub(super) fn map<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        field: &'e Field,
        entry: &'e Message,
        slot: Slot,
    ) -> Result<(), Error> {
        let of = |number| entry.fields.iter().find(|field| field.number == number);
        let (Some(key), Some(value)) = (of(1), of(2)) else {
            return Err(malformed(entry, "a map entry without key or value"));
        };
        let mut entries = Vec::new();
        for found in scratch.values(slot) {
            entries.push(self.entry(entry, [key, value], found.bytes)?);
        }
        // The sort is stable; of equal keys the last counts.
        entries.sort_by_key(|entry| sort_key(key.kind, entry.key));
        self.out.push(b'{');
        let start = self.out.len();
        for (index, current) in entries.iter().enumerate() {
            let this = sort_key(key.kind, current.key);
            if entries.get(index + 1).is_some_and(|next| sort_key(key.kind, next.key) == this) {
                continue;
            }
            self.separate(start)?;
            self.key(key.kind, current.key);
            self.entry_value(scratch, field, entry, value, current.value)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn entry<'a>(
        &self,
        entry: &Message,
        [key, value]: [&Field; 2],
        bytes: &'a [u8],
    ) -> Result<Entry<'a>, Error> {
        let mut found = Entry { key: Value::ABSENT, value: None };
        let mut cursor = Cursor::new(bytes);
        while let Some((number, part)) = cursor.field().map_err(|flaw| malformed(entry, flaw))? {
            let field = match number {
                1 => key,
                2 => value,
                _ => {
                    self.unknown(&entry.name, number)?;
                    continue;
                }
            };
            if part.wire != field.kind.wire() {
                return Err(malformed_field(entry, field, "another wire type than the descriptor says"));
            }
            if number == 1 {
                found.key = part;
            } else {
                found.value = Some(part);
            }
        }
        Ok(found)
    }

    fn key(&mut self, kind: Kind, key: Value<'_>) {
        match kind {
            Kind::Number(number) if !is_wide(number) => {
                self.out.push(b'"');
                write_number(number, key.number, self.out);
                self.out.push(b'"');
            }
            Kind::Number(number) => write_number(number, key.number, self.out),
            _ => write_string(key.bytes, self.out),
        }
        self.out.push(b':');
    }

    /// An absent value is the zero value; for a message, the map field's options decide.
    fn entry_value<'a>(
        &mut self,
        scratch: &mut Scratch<'a>,
        field: &'e Field,
        entry: &'e Message,
        value: &'e Field,
        found: Option<Value<'a>>,
    ) -> Result<(), Error> {
        if found.is_none() && matches!(value.kind, Kind::Message(_)) && field.absent == Absent::Null {
            self.out.extend_from_slice(b"null");
            return Ok(());
        }
        self.value(scratch, entry, value, found.unwrap_or(Value::ABSENT))
    }
}

fn sort_key(kind: Kind, key: Value<'_>) -> Key<'_> {
    match kind {
        Kind::Number(number) => Key::Number(integer(number, key.number)),
        _ => Key::Text(key.bytes),
    }
}
