//! Protobuf messages as lists of fields, without a type for each message.
//!
//! A message whose shape never changes (a raw transaction, a public key) is cheaper and stricter to read by its fields
//! than through a generated type. Input is untrusted: a malformed message is `None`, never a panic.

use cosmrs::proto::prost::encoding::{WireType, decode_key, decode_varint, encode_varint};

/// The value of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A fixed-size number, which the messages read here do not use.
    Fixed,
}

/// The fields of a message in wire order; `None` if the bytes are not a message.
pub(crate) fn fields(mut message: &[u8]) -> Option<Vec<(u32, Value<'_>)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let (number, wire) = decode_key(&mut message).ok()?;
        let value = match wire {
            WireType::Varint => Value::Varint(decode_varint(&mut message).ok()?),
            WireType::LengthDelimited => {
                let len = usize::try_from(decode_varint(&mut message).ok()?).ok()?;
                Value::Bytes(message.split_off(..len)?)
            }
            WireType::SixtyFourBit => message.split_off(..8).map(|_| Value::Fixed)?,
            WireType::ThirtyTwoBit => message.split_off(..4).map(|_| Value::Fixed)?,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        fields.push((number, value));
    }
    Some(fields)
}

/// The value of the last length-delimited field with this number, as protobuf decodes a repeated singular field.
pub(crate) fn bytes_field<'a>(fields: &[(u32, Value<'a>)], number: u32) -> Option<&'a [u8]> {
    fields.iter().rev().find_map(|field| match *field {
        (n, Value::Bytes(bytes)) if n == number => Some(bytes),
        _ => None,
    })
}

/// Appends the length as a varint and then the bytes: also how BCS writes a string.
pub(crate) fn push_len_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use cosmrs::proto::prost::encoding::encode_key;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fields_read_back_in_order(number in 1..16_u32, n in any::<u64>(), bytes in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            encode_key(number, WireType::Varint, &mut out);
            encode_varint(n, &mut out);
            encode_key(number, WireType::LengthDelimited, &mut out);
            push_len_prefixed(&mut out, &bytes);
            let read = fields(&out).unwrap();
            prop_assert_eq!(&read[..], [(number, Value::Varint(n)), (number, Value::Bytes(&bytes))]);
            prop_assert_eq!(bytes_field(&read, number), Some(&bytes[..]));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
            fields(&bytes);
        }
    }

    #[test]
    fn a_length_beyond_the_end_or_an_endless_varint_is_not_a_message() {
        assert_eq!(fields(&[0x0a, 5, 1, 2]), None);
        assert_eq!(fields(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), None);
        assert_eq!(fields(&[0xff; 11]), None);
        assert_eq!(fields(&[0x0b]), None);
    }
}
