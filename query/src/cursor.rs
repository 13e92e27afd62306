//! Pagination cursors: encoding and decoding of `pagination.key`.
//!
//! A cursor of this server is opaque: unpadded base64url of `1 | space | flags | key of a row`, where the key is the
//! row's key in its list ([`store::Key`]), for example a sequence (8 bytes, BE). It identifies a row, not a position,
//! so it stays valid if rows are inserted or deleted, even its own row, and may be used on the same list with another
//! filter or in the other direction. Cursors of the deployed servers are accepted too: base64 (either alphabet,
//! padded or not) of a decimal offset, or of JSON ([`Row::deployed`]).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use store::Key;

/// Version of this encoding; no cursor of a deployed server begins with this byte.
const VERSION: u8 = 1;
/// Flag: the page ends just before the row.
const BACKWARD: u8 = 1;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The row type and order of a list. A cursor is valid only for lists of its own space.
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
    /// Collections, by height.
    Collections,
    /// Tokens, by id.
    TokensById,
    /// Tokens, by the height of their last change.
    TokensByHeight,
    /// Holders of an ERC-20, by amount.
    Holders,
    /// Movements of tokens.
    Transfers,
    /// Balances of an account, by token.
    Balances,
    /// The history of a balance, by height.
    History,
    /// Holders of a token, by amount.
    TokenHolders,
    /// Holders of a token, by account.
    HoldersByAccount,
    /// Tokens, by their number.
    LedgerTokens,
    /// Packets of IBC, by their number.
    Packets,
    /// Channels.
    Channels,
    /// Withdrawals, deposits, outputs, bridges and claims, by their numbers.
    Bridge,
}

impl Space {
    pub(crate) fn tag(self) -> u8 {
        match self {
            Self::Blocks => 1,
            Self::Txs => 2,
            Self::EvmTxs => 3,
            Self::Calls => 4,
            Self::Collections => 5,
            Self::TokensById => 6,
            Self::TokensByHeight => 7,
            Self::Holders => 8,
            Self::Transfers => 9,
            Self::Balances => 10,
            Self::History => 11,
            Self::TokenHolders => 12,
            Self::HoldersByAccount => 13,
            Self::LedgerTokens => 14,
            Self::Packets => 15,
            Self::Channels => 16,
            Self::Bridge => 17,
        }
    }
}

impl Space {
    /// A regular expression (ECMA 262) for cursors of the space: those of this server, offsets (in base64, 3, 6 or 9 digits),
    /// and JSON of the deployed servers. Those of tokens depend on the order and contain texts, so theirs is for offsets only.
    pub const fn pattern(self) -> &'static str {
        // Three bytes are four letters: `AQ`, one for the space, `A` or `B` for the flags. The last letter of the rest has
        // two or four bits that are 0. An account is its length (20 or 32) and its bytes. `eyJoZWlnaHQi` is `{"height"`,
        // `eyJzZXF1ZW5jZSI6` is `{"sequence":`, `fQ` is `}`; their numbers begin with another digit than 0.
        match self {
            Self::Blocks => {
                "^(AQE(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJoZWlnaHQiOj[EIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::Txs => {
                "^(AQI(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJzZXF1ZW5jZSI6(M[Tjz]|N[DTjz])[AEIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::EvmTxs => {
                "^(AQM(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJzZXF1ZW5jZSI6(M[Tjz]|N[DTjz])[AEIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::Calls => {
                "^(AQQ(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJzZXF1ZW5jZSI6(M[Tjz]|N[DTjz])[AEIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::Collections => {
                "^(AQU(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]\
                 (U[A-Za-z0-9_-]{26}[AEIMQUYcgkosw048]|g[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]))|\
                 ([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJoZWlnaHQiOj[EIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::Transfers => {
                "^(AQk(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJzZXF1ZW5jZSI6(M[Tjz]|N[DTjz])[AEIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::LedgerTokens => {
                "^(AQ4(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJzZXF1ZW5jZSI6(M[Tjz]|N[DTjz])[AEIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::Bridge => {
                "^(ARE(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJzZXF1ZW5jZSI6(M[Tjz]|N[DTjz])[AEIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::Packets => {
                "^(AQ8(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJzZXF1ZW5jZSI6(M[Tjz]|N[DTjz])[AEIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::Holders => "^(AQg(B|[AB][A-Za-z0-9_-]{69}[AQgw])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3})$",
            Self::History => {
                "^(AQs(B|[AB][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])|([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}|\
                 eyJzZXF1ZW5jZSI6(M[Tjz]|N[DTjz])[AEIMQUYcgk][wxyz0-5]([MN][DTjz][AEIMQUYcgk][wxyz0-5]){0,4}fQ(==)?)$"
            }
            Self::TokensById
            | Self::TokensByHeight
            | Self::Balances
            | Self::TokenHolders
            | Self::HoldersByAccount
            | Self::Channels => "^([MN][DTjz][AEIMQUYcgk][wxyz0-5]){1,3}$",
        }
    }

    /// Cursors that no expression describes, for example those of the deployed servers for tokens.
    pub const fn recorded(self) -> &'static [&'static str] {
        match self {
            // {"height":115,"token_id":"2"}
            Self::TokensById | Self::TokensByHeight => &["eyJoZWlnaHQiOjExNSwidG9rZW5faWQiOiIyIn0="],
            _ => &[],
        }
    }
}

/// A row that can be the position of a cursor.
pub trait Row: Key + Clone {
    /// Decodes a deployed server's cursor, a non-empty JSON object, for a list of `space`; `None` if it belongs to
    /// another list.
    fn deployed(space: Space, members: &Map<String, Value>) -> Option<Start<Self>>;
}

/// A sequence, or a height.
impl Row for u64 {
    fn deployed(space: Space, members: &Map<String, Value>) -> Option<Start<Self>> {
        let member = if space == Space::Blocks { "height" } else { "sequence" };
        Some(Start::Row(Cursor::After(members.get(member)?.as_u64()?)))
    }
}

/// The position at which a page begins or ends, in the direction of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor<R> {
    /// The page begins just after this row.
    After(R),
    /// The page ends just before this row.
    Before(R),
    /// The page ends with the last row.
    End,
}

/// The position of the requested page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start<R> {
    /// The page at this row.
    Row(Cursor<R>),
    /// The page that begins just after all rows from `from` on and before `to`, in either direction. Deployed servers'
    /// cursors need it, because they contain only a part of the row.
    Beyond {
        /// The first candidate row.
        from: R,
        /// The first row after the candidates.
        to: R,
    },
    /// The page that begins after this many rows.
    Offset(u64),
}

/// The reason why a key is not a cursor. The texts are those of the deployed server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCursor {
    /// Not base64.
    #[error("pagination.key must be a valid base64 encoded string")]
    NotBase64,
    /// Neither a cursor of this server nor a number nor JSON.
    #[error("pagination.key must decode to a nonnegative integer")]
    NotANumber,
    /// Malformed, or of another list.
    #[error("invalid pagination.key format")]
    Format,
}

/// Encodes `cursor` for a list of `space`.
pub fn encode<R: Key>(space: Space, cursor: Cursor<R>) -> String {
    let (flags, row) = match cursor {
        Cursor::After(row) => (0, Some(row)),
        Cursor::Before(row) => (BACKWARD, Some(row)),
        Cursor::End => (BACKWARD, None),
    };
    let mut bytes = vec![VERSION, space.tag(), flags];
    if let Some(row) = row {
        row.put(&mut bytes);
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes `key` for a list of `space`; `None` for an empty JSON object, which the deployed server treats as an
/// absent key.
pub fn decode<R: Row>(space: Space, key: &str) -> Result<Option<Start<R>>, BadCursor> {
    // A `+` that a client did not percent-encode arrives as a space.
    let key = key.replace(' ', "+");
    let bytes = STANDARD.decode(&key).or_else(|_| URL_SAFE.decode(&key)).map_err(|_| BadCursor::NotBase64)?;
    match bytes.first() {
        Some(&VERSION) => own(space, &bytes).map(|cursor| Some(Start::Row(cursor))),
        Some(b'{') => deployed(space, &bytes),
        _ => {
            let text = std::str::from_utf8(&bytes).map_err(|_| BadCursor::NotANumber)?;
            text.parse().map(|offset| Some(Start::Offset(offset))).map_err(|_| BadCursor::NotANumber)
        }
    }
}

fn own<R: Key>(space: Space, bytes: &[u8]) -> Result<Cursor<R>, BadCursor> {
    let &[_, tag, flags, ref row @ ..] = bytes else { return Err(BadCursor::Format) };
    let named = || R::from_bytes(row).ok_or(BadCursor::Format);
    match flags {
        _ if tag != space.tag() => Err(BadCursor::Format),
        0 => Ok(Cursor::After(named()?)),
        BACKWARD if row.is_empty() => Ok(Cursor::End),
        BACKWARD => Ok(Cursor::Before(named()?)),
        _ => Err(BadCursor::Format),
    }
}

fn deployed<R: Row>(space: Space, json: &[u8]) -> Result<Option<Start<R>>, BadCursor> {
    let members: Map<_, _> = serde_json::from_slice(json).map_err(|_| BadCursor::Format)?;
    if members.is_empty() {
        return Ok(None);
    }
    R::deployed(space, &members).map(Some).ok_or(BadCursor::Format)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD as PADDED;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn our_cursors_round_trip(seq: u64, backward: bool) {
            let cursor = if backward { Cursor::Before(seq) } else { Cursor::After(seq) };
            for space in [Space::Blocks, Space::Txs, Space::EvmTxs, Space::Calls] {
                let key = encode(space, cursor);
                prop_assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
                prop_assert_eq!(decode(space, &key), Ok(Some(Start::Row(cursor))));
            }
        }

        #[test]
        fn any_text_is_a_cursor_or_an_error(key: String, bytes: Vec<u8>) {
            let _: (_, _) = (decode::<u64>(Space::Txs, &key), decode::<u64>(Space::Blocks, &PADDED.encode(bytes)));
        }
    }

    #[test]
    fn cursors_of_the_deployed_servers_are_read() {
        for (space, text, start) in [
            (Space::Txs, r#"{"sequence":90210}"#, Start::Row(Cursor::After(90_210))),
            (Space::Calls, r#"{"sequence":1}"#, Start::Row(Cursor::After(1))),
            (Space::Blocks, r#"{"height":48209}"#, Start::Row(Cursor::After(48_209))),
            (Space::Blocks, "200", Start::Offset(200)),
            (Space::Txs, "0", Start::Offset(0)),
        ] {
            let padded = PADDED.encode(text);
            for key in [
                padded.as_str(),
                padded.trim_end_matches('='),
                &padded.replace('+', "-").replace('/', "_"),
                &padded.replace('+', " "),
            ] {
                assert_eq!(decode(space, key), Ok(Some(start)), "{text}");
            }
        }
    }

    #[test]
    fn the_bytes_of_a_key_do_not_change() {
        for (space, cursor, key) in [
            (Space::Blocks, Cursor::After(7), "AQEAAAAAAAAAAAc"),
            (Space::Txs, Cursor::Before(258), "AQIBAAAAAAAAAQI"),
            (Space::Calls, Cursor::End, "AQQB"),
        ] {
            assert_eq!(encode::<u64>(space, cursor), key);
            assert_eq!(decode(space, key), Ok(Some(Start::Row(cursor))));
        }
    }

    #[test]
    fn an_empty_object_is_not_a_key() {
        assert_eq!(decode::<u64>(Space::Txs, "e30="), Ok(None));
    }

    #[test]
    fn an_invalid_cursor_is_refused_with_the_reason() {
        for (key, reason) in [
            ("%%", BadCursor::NotBase64),
            ("YWJj", BadCursor::NotANumber),
            ("LTU=", BadCursor::NotANumber),
            ("e2E=", BadCursor::Format),
            (&PADDED.encode(r#"{"height":1}"#), BadCursor::Format),
            (&PADDED.encode(r#"{"sequence":"1"}"#), BadCursor::Format),
            (&encode(Space::EvmTxs, Cursor::After(1_u64)), BadCursor::Format),
            (&PADDED.encode([1, 2, 0, 1]), BadCursor::Format),
            (&PADDED.encode([1, 2, 9, 0, 0, 0, 0, 0, 0, 0, 1]), BadCursor::Format),
        ] {
            assert_eq!(decode::<u64>(Space::Txs, key), Err(reason), "{key}");
        }
    }
}
