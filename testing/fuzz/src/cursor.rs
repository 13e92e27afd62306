//! `pagination.key`: one of our cursors decodes to the same position, on its own lists only; any other text decodes to
//! a position or is rejected.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use query::cursor::{BadCursor, Cursor, Row, Space, Start, decode, encode};
use schema::keys::AccountKey;
use store::Key;
use store::key::Text;

use crate::input::Input;

const SPACES: [Space; 8] = [
    Space::Blocks,
    Space::Txs,
    Space::EvmTxs,
    Space::Calls,
    Space::Collections,
    Space::TokensById,
    Space::TokensByHeight,
    Space::Holders,
];

/// Names and values in cursors of the deployed servers.
pub const WORDS: &[&str] =
    &["{\"sequence\":", "{\"height\":", "\"token_id\":", "18446744073709551615", "==", "{}", "AQ", "+", "-"];

/// Input: a byte that selects a list's rows, then the key of a row, or a text.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let which = input.byte();
    match which % 5 {
        0 => of_rows::<u64>(which, input),
        1 => of_rows::<(u64, AccountKey)>(which, input),
        2 => of_rows::<(Text, u64, AccountKey)>(which, input),
        3 => of_rows::<(u64, Text, AccountKey)>(which, input),
        _ => of_rows::<([u8; 32], [u8; 20])>(which, input),
    }
}

fn of_rows<R: Row + PartialEq + std::fmt::Debug>(which: u8, input: Input<'_>) -> bool {
    let space = SPACES[usize::from(which / 5) % SPACES.len()];
    let bytes = input.rest();
    let row = R::from_bytes(bytes);
    let is_row = row.is_some();
    if let Some(row) = row {
        for cursor in [Cursor::After(row.clone()), Cursor::Before(row), Cursor::End] {
            ours(space, &cursor);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let keys = [text.as_ref(), &STANDARD.encode(bytes), &URL_SAFE_NO_PAD.encode(bytes)];
    keys.map(|key| any::<R>(space, key)).contains(&true) || is_row
}

/// Checks one of our cursors.
fn ours<R: Row + PartialEq + std::fmt::Debug>(space: Space, cursor: &Cursor<R>) {
    let key = encode(space, cursor.clone());
    assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'), "{key}");
    for other in SPACES {
        let read = decode::<R>(other, &key);
        if other == space {
            assert_eq!(read, Ok(Some(Start::Row(cursor.clone()))), "{key}");
        } else {
            assert_eq!(read, Err(BadCursor::Format), "{key} of {space:?} on {other:?}");
        }
    }
}

/// Checks any text as a cursor.
fn any<R: Row + PartialEq + std::fmt::Debug>(space: Space, key: &str) -> bool {
    let read = decode::<R>(space, key);
    let is_cursor = read.is_ok();
    match read {
        // A position given by a whole row is one that we can encode.
        Ok(Some(Start::Row(cursor))) => ours(space, &cursor),
        Ok(Some(Start::Beyond { from, to })) => {
            assert!(from.to_bytes() <= to.to_bytes(), "{from:?} to {to:?}");
        }
        Ok(Some(Start::Offset(_)) | None) => {}
        Err(error) => assert!(error.to_string().contains("pagination.key")),
    }
    is_cursor
}

/// Rows of every kind, and cursors as clients send them.
pub fn seeds() -> Vec<Vec<u8>> {
    let owner = AccountKey(chain::Account::from([7; 20]));
    let id = Text("token 1".to_owned());
    let rows = [
        7_u64.to_bytes(),
        (7_u64, owner).to_bytes(),
        (id.clone(), 7_u64, owner).to_bytes(),
        (7_u64, id, owner).to_bytes(),
        ([1; 32], [2; 20]).to_bytes(),
    ];
    let mut seeds = Vec::new();
    for space in 0_u8..8 {
        for (kind, row) in (0_u8..).zip(&rows) {
            seeds.push([&[space * 5 + kind], row.as_slice()].concat());
        }
        for text in
            ["AQEAAAAAAAAAAAc", "MjAw", "{\"sequence\":7}", "{\"height\":7,\"token_id\":\"1\"}", "{}", "12"]
        {
            seeds.push([&[space * 5], text.as_bytes()].concat());
        }
    }
    seeds
}
