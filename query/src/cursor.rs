//! `pagination.key`: what a client hands back to go on from a page.
//!
//! Ours is opaque: unpadded base64url of `1 | space | flags | seq (8, BE)`. It names a row by its sequence, not a place,
//! so it stays right while rows arrive, and one list's cursor may be used on the same list with another filter or in
//! the other direction. Cursors of the deployed servers are read too: base64 (either alphabet, padded or not) of a
//! decimal offset, of `{"sequence":N}` or of `{"height":N}`.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};

/// Version of our form; no deployed cursor begins with this byte.
const VERSION: u8 = 1;
/// The cursor means the page that ends just before its row.
const BACKWARD: u8 = 1;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// What the sequences of a cursor count. A cursor is good for lists of its own space only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Blocks, by height.
    Blocks,
    /// Cosmos transactions.
    Txs,
    /// EVM transactions.
    EvmTxs,
    /// Call frames.
    Calls,
}

impl Space {
    fn tag(self) -> u8 {
        match self {
            Self::Blocks => 1,
            Self::Txs => 2,
            Self::EvmTxs => 3,
            Self::Calls => 4,
        }
    }

    /// The member that names a row in a deployed cursor of this space.
    fn deployed_member(self) -> &'static str {
        match self {
            Self::Blocks => "height",
            Self::Txs | Self::EvmTxs | Self::Calls => "sequence",
        }
    }
}

/// Where a page begins or ends, in the direction of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// The page begins just after the row of this sequence.
    After(u64),
    /// The page ends just before the row of this sequence.
    Before(u64),
    /// The page begins after this many rows.
    Offset(u64),
}

/// Why a key is not a cursor. The texts are the deployed server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCursor {
    /// Not base64.
    #[error("pagination.key must be a valid base64 encoded string")]
    NotBase64,
    /// Neither ours nor a number nor JSON.
    #[error("pagination.key must decode to a nonnegative integer")]
    NotANumber,
    /// Malformed, or of another list.
    #[error("invalid pagination.key format")]
    Format,
}

/// The key for `cursor` on a list of `space`.
pub fn encode(space: Space, cursor: Cursor) -> String {
    let (flags, seq) = match cursor {
        Cursor::After(seq) => (0, seq),
        Cursor::Before(seq) => (BACKWARD, seq),
        // Never emitted; the deployed form says it.
        Cursor::Offset(offset) => return URL_SAFE_NO_PAD.encode(offset.to_string()),
    };
    let mut bytes = [VERSION, space.tag(), flags, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[3..].copy_from_slice(&seq.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The cursor that `key` is on a list of `space`; `None` for an empty JSON object, which the deployed server takes for no
/// key at all.
pub fn decode(space: Space, key: &str) -> Result<Option<Cursor>, BadCursor> {
    // A `+` that was pasted raw into a URL arrives as a blank.
    let key = key.replace(' ', "+");
    let bytes = STANDARD.decode(&key).or_else(|_| URL_SAFE.decode(&key)).map_err(|_| BadCursor::NotBase64)?;
    match bytes.first() {
        Some(&VERSION) => own(space, &bytes).map(Some),
        Some(b'{') => deployed(space, &bytes),
        _ => {
            let text = std::str::from_utf8(&bytes).map_err(|_| BadCursor::NotANumber)?;
            text.parse().map(|offset| Some(Cursor::Offset(offset))).map_err(|_| BadCursor::NotANumber)
        }
    }
}

fn own(space: Space, bytes: &[u8]) -> Result<Cursor, BadCursor> {
    let &[_, tag, flags, ref seq @ ..] = bytes else { return Err(BadCursor::Format) };
    let seq = u64::from_be_bytes(seq.try_into().map_err(|_| BadCursor::Format)?);
    match flags {
        _ if tag != space.tag() => Err(BadCursor::Format),
        0 => Ok(Cursor::After(seq)),
        BACKWARD => Ok(Cursor::Before(seq)),
        _ => Err(BadCursor::Format),
    }
}

fn deployed(space: Space, json: &[u8]) -> Result<Option<Cursor>, BadCursor> {
    let value: serde_json::Map<_, _> = serde_json::from_slice(json).map_err(|_| BadCursor::Format)?;
    if value.is_empty() {
        return Ok(None);
    }
    let row = value.get(space.deployed_member()).and_then(serde_json::Value::as_u64);
    row.map(|row| Some(Cursor::After(row))).ok_or(BadCursor::Format)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD as PADDED;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn our_cursors_come_back(seq: u64, backward: bool) {
            let cursor = if backward { Cursor::Before(seq) } else { Cursor::After(seq) };
            for space in [Space::Blocks, Space::Txs, Space::EvmTxs, Space::Calls] {
                let key = encode(space, cursor);
                prop_assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
                prop_assert_eq!(decode(space, &key), Ok(Some(cursor)));
            }
        }

        #[test]
        fn any_text_is_a_cursor_or_an_error(key: String, bytes: Vec<u8>) {
            let _: (_, _) = (decode(Space::Txs, &key), decode(Space::Blocks, &PADDED.encode(bytes)));
        }
    }

    #[test]
    fn cursors_of_the_deployed_servers_are_read() {
        for (space, text, cursor) in [
            (Space::Txs, r#"{"sequence":90210}"#, Cursor::After(90_210)),
            (Space::Calls, r#"{"sequence":1}"#, Cursor::After(1)),
            (Space::Blocks, r#"{"height":48209}"#, Cursor::After(48_209)),
            (Space::Blocks, "200", Cursor::Offset(200)),
            (Space::Txs, "0", Cursor::Offset(0)),
        ] {
            let padded = PADDED.encode(text);
            for key in [
                padded.as_str(),
                padded.trim_end_matches('='),
                &padded.replace('+', "-").replace('/', "_"),
                &padded.replace('+', " "),
            ] {
                assert_eq!(decode(space, key), Ok(Some(cursor)), "{text}");
            }
        }
    }

    #[test]
    fn an_empty_object_is_no_key() {
        assert_eq!(decode(Space::Txs, "e30="), Ok(None));
    }

    #[test]
    fn what_is_no_cursor_is_refused_with_the_reason() {
        for (key, reason) in [
            ("%%", BadCursor::NotBase64),
            ("YWJj", BadCursor::NotANumber),
            ("LTU=", BadCursor::NotANumber),
            ("e2E=", BadCursor::Format),
            (&PADDED.encode(r#"{"height":1}"#), BadCursor::Format),
            (&PADDED.encode(r#"{"sequence":"1"}"#), BadCursor::Format),
            (&encode(Space::EvmTxs, Cursor::After(1)), BadCursor::Format),
            (&PADDED.encode([1, 2, 0, 1]), BadCursor::Format),
            (&PADDED.encode([1, 2, 9, 0, 0, 0, 0, 0, 0, 0, 1]), BadCursor::Format),
        ] {
            assert_eq!(decode(Space::Txs, key), Err(reason), "{key}");
        }
    }
}
