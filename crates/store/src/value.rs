//! Value encodings: varints, raw bytes, UTF-8, protobuf.
//!
//! # Invariants
//!
//! `decode` consumes all bytes or returns `None`, never panics, and inverts `encode`.

use serde::Serialize;
use serde_json::Value as Json;

/// The value of a row. Its debug text shows a reader what is in the row.
pub trait Value: Sized + std::fmt::Debug {
    /// Appends the encoding to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// The encoding.
    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// The value whose encoding is all of `bytes`.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// The value for other programs: bytes as hexadecimal digits.
    fn json(&self) -> Json;
}

/// Empty: the key holds all information.
impl Value for () {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }

    fn json(&self) -> Json {
        Json::Null
    }
}

/// A varint: see [`put_varint`].
impl Value for u64 {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(*self, out);
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let value = take_varint(&mut bytes)?;
        bytes.is_empty().then_some(value)
    }

    fn json(&self) -> Json {
        (*self).into()
    }
}

/// Raw bytes.
impl Value for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }

    fn json(&self) -> Json {
        hex::encode(self).into()
    }
}

/// UTF-8.
impl Value for String {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).map_or(None, |text| Some(text.to_owned()))
    }

    fn json(&self) -> Json {
        self.as_str().into()
    }
}

/// A protobuf message (a wrapper, because `prost` implements `Message` for `u64` and `String` too).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message<T>(pub T);

impl<T: prost::Message + Default + Serialize + std::fmt::Debug> Value for Message<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode_raw(out);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        T::decode(bytes).map_or(None, |message| Some(Self(message)))
    }

    /// Never null: only maps with other keys than texts have no JSON, and protobuf messages of rows have none.
    fn json(&self) -> Json {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}

/// Appends `value` as an LEB128 varint (protobuf's encoding): 300 is `ac 02`.
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Decodes a varint from the front of `input`; `None` if it is truncated, padded or over 64 bits.
pub fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        value |= bits << shift;
        if byte < 0x80 {
            let fits = bits << shift >> shift == bits;
            let shortest = byte != 0 || shift == 0;
            return (fits && shortest).then_some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_takes_seven_bits_a_byte() {
        for (value, bytes) in [(0, &[0][..]), (127, &[0x7f]), (128, &[0x80, 1]), (300, &[0xac, 2])] {
            assert_eq!(value.encoded(), bytes);
            assert_eq!(u64::decode(bytes), Some(value));
        }
        let largest = u64::MAX.encoded();
        assert_eq!((largest.len(), u64::decode(&largest)), (10, Some(u64::MAX)));
    }

    #[test]
    fn a_varint_that_is_cut_or_padded_or_too_large_is_refused() {
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        for bytes in [&[][..], &[0x80], &[0x80, 0], &[1, 0], &too_large, &[0x80; 11]] {
            assert_eq!(u64::decode(bytes), None, "{bytes:02x?}");
        }
    }

    #[test]
    fn the_empty_value_rejects_all_bytes() {
        assert_eq!(<() as Value>::decode(&[]), Some(()));
        assert_eq!(<() as Value>::decode(&[0]), None);
    }

    #[test]
    fn text_that_is_not_utf8_is_refused() {
        assert_eq!(<String as Value>::decode(b"caf\xc3\xa9"), Some("café".to_owned()));
        assert_eq!(<String as Value>::decode(&[0xff]), None);
    }

    #[test]
    fn a_protobuf_message_round_trips_and_damage_is_refused() {
        let message = Message("text".to_owned()); // `String` is the message `{ string value = 1; }`.
        assert_eq!(message.encoded(), b"\x0a\x04text");
        assert_eq!(Message::decode(&message.encoded()), Some(message));
        assert_eq!(Message::<String>::decode(b"\x0a\x05text"), None);
    }
}
