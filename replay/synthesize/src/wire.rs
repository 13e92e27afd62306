//! Protobuf's wire format, as far as a transaction needs it: fields of numbers and bytes.

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in order; `None` if the bytes are not a message of numbers and bytes.
pub(crate) fn fields(mut message: &[u8]) -> Option<Vec<(u32, Value<'_>)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = number(&mut message)?;
        let value = match tag & 7 {
            0 => Value::Number(number(&mut message)?),
            2 => {
                let len = usize::try_from(number(&mut message)?).ok()?;
                Value::Bytes(message.split_off(..len)?)
            }
            _ => return None,
        };
        fields.push((u32::try_from(tag >> 3).ok()?, value));
    }
    Some(fields)
}

/// The first bytes with this number; empty if there are none.
pub(crate) fn bytes<'a>(fields: &[(u32, Value<'a>)], number: u32) -> &'a [u8] {
    let found = fields.iter().find_map(|field| match *field {
        (n, Value::Bytes(bytes)) if n == number => Some(bytes),
        _ => None,
    });
    found.unwrap_or_default()
}

fn number(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *message.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

pub(crate) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// A field of a number; nothing for 0.
pub(crate) fn push_number(out: &mut Vec<u8>, field: u8, number: u64) {
    if number != 0 {
        out.push(field << 3);
        push_varint(out, number);
    }
}

/// A field of bytes, even if they are empty.
pub(crate) fn push_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The message with each `from` replaced by `to`, and the lengths of all fields around it corrected. Fields are messages
/// down to `depth` levels, and bytes below.
pub(crate) fn replaced(message: &[u8], from: &[u8], to: &[u8], depth: u32) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (field, value) in fields(message)? {
        let field = u8::try_from(field).ok().filter(|field| *field < 16)?;
        match value {
            // A zero that was written explicitly would disappear, and with it the identity of the rest.
            Value::Number(0) => return None,
            Value::Number(number) => push_number(&mut out, field, number),
            Value::Bytes(bytes) if memchr::memmem::find(bytes, from).is_none() => {
                push_bytes(&mut out, field, bytes);
            }
            Value::Bytes(bytes) if depth > 0 => {
                push_bytes(&mut out, field, &replaced(bytes, from, to, depth - 1)?);
            }
            Value::Bytes(bytes) => push_bytes(&mut out, field, &replaced_bytes(bytes, from, to)),
        }
    }
    Some(out)
}

pub(crate) fn replaced_bytes(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), 0);
    for at in memchr::memmem::find_iter(bytes, from) {
        out.extend_from_slice(&bytes[rest..at]);
        out.extend_from_slice(to);
        rest = at + from.len();
    }
    out.extend_from_slice(&bytes[rest..]);
    out
}
