//! The protobuf wire format: one field after the other out of a byte slice.
//!
//! Accepts the same bytes as gogoproto's generated decoders: varints of up to ten bytes whose excess bits are dropped,
//! groups skipped whole, field number 0 and a stray end of a group rejected.

/// The reason why bytes are malformed; the caller adds the place.
pub(crate) type WireError = &'static str;

/// Wire type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Varint,
    Fixed64,
    Bytes,
    Group,
    Fixed32,
}

/// A value on the wire: `number` for the numeric layouts, `bytes` for the length-delimited one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) wire: Wire,
    pub(crate) number: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// The value of an absent field: zero or empty.
    pub(crate) const ABSENT: Value<'static> = Value { wire: Wire::Group, number: 0, bytes: &[] };

    pub(crate) fn number(wire: Wire, number: u64) -> Self {
        Self { wire, number, bytes: &[] }
    }

    fn bytes(bytes: &'a [u8]) -> Self {
        Self { wire: Wire::Bytes, number: 0, bytes }
    }
}

/// A reading position in wire bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and value; `None` at the end. A group's content is skipped.
    pub(crate) fn field(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, layout) = self.tag()?;
        let value = match layout {
            3 => self.skip_group()?,
            4 => return Err("the end of a group that never began"),
            _ => self.value(layout)?,
        };
        Ok(Some((number, value)))
    }

    /// One bare number, as in a packed list.
    pub(crate) fn packed(&mut self, wire: Wire) -> Result<u64, WireError> {
        match wire {
            Wire::Varint => self.varint(),
            Wire::Fixed32 => self.fixed::<4>(),
            Wire::Fixed64 => self.fixed::<8>(),
            Wire::Bytes | Wire::Group => Err("a list of this type cannot be packed"),
        }
    }

    fn tag(&mut self) -> Result<(u32, u64), WireError> {
        let tag = self.varint()?;
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..=0x1fff_ffff) => Ok((number, tag & 7)),
            _ => Err("a field number out of range"),
        }
    }

    fn value(&mut self, layout: u64) -> Result<Value<'a>, WireError> {
        match layout {
            0 => Ok(Value::number(Wire::Varint, self.varint()?)),
            1 => Ok(Value::number(Wire::Fixed64, self.fixed::<8>()?)),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                Ok(Value::bytes(self.take(length)?))
            }
            5 => Ok(Value::number(Wire::Fixed32, self.fixed::<4>()?)),
            _ => Err("an unknown wire type"),
        }
    }

    fn skip_group(&mut self) -> Result<Value<'a>, WireError> {
        let mut open = 1usize;
        while open > 0 {
            match self.tag()?.1 {
                3 => open += 1,
                4 => open -= 1,
                layout => {
                    self.value(layout)?;
                }
            }
        }
        Ok(Value::number(Wire::Group, 0))
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { "cut off inside a number" } else { "a number of more than ten bytes" })
    }

    fn fixed<const N: usize>(&mut self) -> Result<u64, WireError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or("cut off inside a fixed-size number")?;
        self.rest = rest;
        let mut number = [0; 8];
        number[..N].copy_from_slice(head);
        Ok(u64::from_le_bytes(number))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or("a length beyond the end")?;
        self.rest = rest;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Wire};

    #[test]
    fn a_nested_group_is_skipped_whole() {
        // group 1 { group 2 { 3: 1 } 4: "x" } then 5: 7
        let bytes = [0x0b, 0x13, 0x18, 1, 0x14, 0x22, 1, b'x', 0x0c, 0x28, 7];
        let mut cursor = Cursor::new(&bytes);
        assert_eq!(cursor.field().unwrap().unwrap().1.wire, Wire::Group);
        let (number, value) = cursor.field().unwrap().unwrap();
        assert_eq!((number, value.number), (5, 7));
        assert!(cursor.field().unwrap().is_none());
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let refused: [&[u8]; 8] = [
            &[0x0b],          // a group that does not end
            &[0x0c],          // an end without a group
            &[0x00, 1],       // field number 0
            &[0x0a, 5, 1],    // a length beyond the end
            &[0x08, 0xff],    // a varint cut off
            &[0x0d, 1, 2, 3], // a fixed32 cut off
            &[0x0f, 1],       // wire type 7
            &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
        ];
        for bytes in refused {
            assert!(Cursor::new(bytes).field().is_err(), "{bytes:?}");
        }
    }
}
