//! `google.protobuf.Any`: the message inside, flattened, with its type URL first.
//!
//! Well-known types are under `"value"`. A message that cannot be printed is an error, or in an opaque run it becomes
//! the type URL and the bytes in base64.

use super::{Emitter, Scratch};
use crate::json::Error;
use crate::json::text::{write_base64, write_string};
use crate::json::wire::{Cursor, Wire};

const NAME: &str = "google.protobuf.Any";

/// Maximum length of an unknown type URL in an error.
const SHOWN: usize = 200;

#[derive(Default, Clone, Copy)]
struct Parts<'a> {
    type_url: &'a [u8],
    value: &'a [u8],
}

impl Emitter<'_> {
    pub(super) fn any<'a>(&mut self, scratch: &mut Scratch<'a>, bytes: &'a [u8]) -> Result<(), Error> {
        let parts = self.parts(bytes)?;
        let written = self.out.len();
        let mark = scratch.mark();
        match self.resolved(scratch, parts) {
            Err(_) if self.opaque => {
                self.out.truncate(written);
                scratch.release(mark);
                self.typed(parts.type_url);
                self.out.extend_from_slice(b",\"value\":");
                write_base64(parts.value, self.out);
                self.out.push(b'}');
                Ok(())
            }
            result => result,
        }
    }

    fn resolved<'a>(&mut self, scratch: &mut Scratch<'a>, parts: Parts<'a>) -> Result<(), Error> {
        let registry = self.registry;
        let index = std::str::from_utf8(parts.type_url).ok().and_then(|url| registry.resolve(url));
        let index = index.ok_or_else(|| {
            let shown = &parts.type_url[..parts.type_url.len().min(SHOWN)];
            Error::UnknownType { type_url: String::from_utf8_lossy(shown).into_owned() }
        })?;
        let message = &registry.messages[index];
        self.typed(parts.type_url);
        if message.form.is_well_known() {
            self.out.extend_from_slice(b",\"value\":");
            self.message(scratch, index, parts.value)?;
        } else {
            self.members(scratch, message, parts.value, true)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn typed(&mut self, type_url: &[u8]) {
        self.out.extend_from_slice(b"{\"@type\":");
        write_string(type_url, self.out);
    }

    fn parts<'a>(&self, bytes: &'a [u8]) -> Result<Parts<'a>, Error> {
        let malformed = |reason| Error::Malformed { place: NAME.to_owned(), reason };
        let mut parts = Parts::default();
        let mut cursor = Cursor::new(bytes);
        while let Some((number, value)) = cursor.field().map_err(malformed)? {
            match (number, value.wire) {
                (1, Wire::Bytes) => parts.type_url = value.bytes,
                (2, Wire::Bytes) => parts.value = value.bytes,
                (1 | 2, _) => return Err(malformed("another wire type than the descriptor says")),
                _ => self.unknown(NAME, number)?,
            }
        }
        Ok(parts)
    }
}
