//! The few parts of protobuf's wire format that are read and written by hand.
//!
//! A message whose shape is fixed for ever (a raw transaction, a public key) is cheaper and stricter to read by its
//! fields than through a generated type. Input may be anything: a broken message ends in `None`, never in a panic.

/// The value of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A fixed-size number, which none of the messages read here has.
    Fixed,
}

/// The fields of a message in the order in which they stand; `None` if the bytes are no message.
pub(crate) fn fields(mut message: &[u8]) -> Option<Vec<(u64, Value<'_>)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut message)?),
            1 => fixed(&mut message, 8)?,
            2 => {
                let len = usize::try_from(varint(&mut message)?).ok()?;
                Value::Bytes(message.split_off(..len)?)
            }
            5 => fixed(&mut message, 4)?,
            _ => return None,
        };
        fields.push((key >> 3, value));
    }
    Some(fields)
}

/// The last length-delimited field with this number, as protobuf takes a repeated single field.
pub(crate) fn bytes_field<'a>(fields: &[(u64, Value<'a>)], number: u64) -> Option<&'a [u8]> {
    fields.iter().rev().find_map(|field| match *field {
        (n, Value::Bytes(bytes)) if n == number => Some(bytes),
        _ => None,
    })
}

/// Appends a varint field, nothing for 0.
pub(crate) fn push_varint_field(out: &mut Vec<u8>, number: u8, value: u64) {
    if value != 0 {
        out.push(number << 3);
        push_varint(out, value);
    }
}

/// Appends a length-delimited field, nothing if it is empty.
pub(crate) fn push_bytes_field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    if !bytes.is_empty() {
        out.push(number << 3 | 2);
        push_len_prefixed(out, bytes);
    }
}

/// Appends a field of type `sfixed64`, nothing for 0.
pub(crate) fn push_fixed64_field(out: &mut Vec<u8>, number: u8, value: i64) {
    if value != 0 {
        out.push(number << 3 | 1);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Appends a message that protobuf writes even when it is empty: gogoproto's fields that are not nullable.
pub(crate) fn push_message_field(out: &mut Vec<u8>, number: u8, message: &[u8]) {
    out.push(number << 3 | 2);
    push_len_prefixed(out, message);
}

/// Appends the length as a varint and then the bytes: also how BCS writes a string.
pub(crate) fn push_len_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *from.split_off_first()?;
        // The tenth byte holds the one bit that is left.
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn fixed<'a>(from: &mut &'a [u8], len: usize) -> Option<Value<'a>> {
    from.split_off(..len).map(|_| Value::Fixed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(number in 1..16_u8, n in 1..=u64::MAX, bytes in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            push_varint_field(&mut out, number, n);
            push_bytes_field(&mut out, number, &bytes);
            let read = fields(&out).unwrap();
            prop_assert_eq!(read[0], (u64::from(number), Value::Varint(n)));
            let found = bytes_field(&read, u64::from(number));
            prop_assert_eq!(found.unwrap_or_default(), &bytes[..]);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
            fields(&bytes);
        }
    }

    #[test]
    fn a_length_beyond_the_end_or_an_endless_varint_is_no_message() {
        assert_eq!(fields(&[0x0a, 5, 1, 2]), None);
        assert_eq!(fields(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), None);
        assert_eq!(fields(&[0xff; 11]), None);
        assert_eq!(fields(&[0x0b]), None);
    }
}
