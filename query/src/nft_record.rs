//! JSON records of collections, tokens and holders, serialized per request because their rows change.

use std::collections::HashMap;

use chain::{Account, Timestamp, U256};
use schema::keys::AccountKey;
use schema::nft::{self, Collection, Collections, Outcome, Token, Tokens};
use serde::Serialize;
use store::key::Text;
use store::{Key, Message, Snapshot, Table as _, TableSpec, ranked};
use web::http_error::HttpError;

use crate::indexer::Indexer;
use crate::page_writer::PageWriter;
use crate::token_list::TokenRow;
use crate::v1;

/// Rows that are read at once: strangers choose the lengths of names and URIs.
const AT_ONCE: usize = 32;

/// Appends the collections at `addresses`, as many as the page takes.
pub(crate) fn collections(
    page: &mut PageWriter,
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    addresses: &[AccountKey],
) -> Result<(), HttpError> {
    let mut record = Vec::new();
    for addresses in addresses.chunks(AT_ONCE) {
        let rows =
            store::table::read_many::<Collections>(snapshot, addresses).map_err(HttpError::internal)?;
        for (address, row) in addresses.iter().zip(rows) {
            let Message(row) = row.ok_or_else(|| missing(Collections::SPEC, address))?;
            record.clear();
            collection(&mut record, indexer, snapshot, *address, &row)?;
            if page.record(&record)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Appends one collection.
pub(crate) fn collection(
    out: &mut Vec<u8>,
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    address: AccountKey,
    row: &Collection,
) -> Result<(), HttpError> {
    let length = ranked::len::<Tokens>(snapshot, &address).map_err(HttpError::internal)?;
    let detail = v1::CollectionDetail {
        creator: bech32(indexer, Collections::SPEC, &row.creator)?,
        name: row.name.clone(),
        name_truncated: row.name_too_long,
        origin_name: row.origin_name.clone(),
        nfts: Some(v1::NftHandle { handle: String::new(), length }),
    };
    let record = v1::Collection {
        object_addr: address.0.to_hex(),
        collection: Some(detail),
        height: row.height,
        timestamp: micros(row.time),
    };
    json(out, &record)
}

/// Appends the tokens `rows`, as many as the page takes.
pub(crate) fn tokens<R: TokenRow>(
    page: &mut PageWriter,
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    rows: &[R],
) -> Result<(), HttpError> {
    let mut record = Vec::new();
    for rows in rows.chunks(AT_ONCE) {
        let keys: Vec<(AccountKey, Text)> = rows.iter().map(TokenRow::token).collect();
        let tokens = store::table::read_many::<Tokens>(snapshot, &keys).map_err(HttpError::internal)?;
        let found = |(key, token): (_, Option<Message<Token>>)| match token {
            Some(Message(token)) => Ok((key, token)),
            None => Err(missing(Tokens::SPEC, key)),
        };
        let tokens: Vec<(_, Token)> = keys.iter().zip(tokens).map(found).collect::<Result<_, _>>()?;
        let collections = collections_of(snapshot, &keys)?;
        let of_tokens: Vec<&Token> = tokens.iter().map(|(_, token)| token).collect();
        let uris = nft::uris(snapshot, &of_tokens).map_err(HttpError::internal)?;
        for ((key, token), uri) in tokens.iter().zip(&uris) {
            let collection = collections.get(&key.0).ok_or_else(|| missing(Collections::SPEC, &key.0))?;
            record.clear();
            json(&mut record, &token_record(indexer, key, (token, uri), collection)?)?;
            if page.record(&record)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The collections of `tokens`, each read once.
fn collections_of(
    snapshot: &dyn Snapshot,
    tokens: &[(AccountKey, Text)],
) -> Result<HashMap<AccountKey, Collection>, HttpError> {
    let mut addresses: Vec<AccountKey> = Vec::new();
    for (collection, _) in tokens {
        // Neighbours usually belong to the same collection.
        if addresses.last() != Some(collection) {
            addresses.push(*collection);
        }
    }
    addresses.sort_unstable_by_key(|address| address.0);
    addresses.dedup();
    let rows = store::table::read_many::<Collections>(snapshot, &addresses).map_err(HttpError::internal)?;
    let found = addresses.into_iter().zip(rows);
    Ok(found.filter_map(|(address, row)| row.map(|Message(row)| (address, row))).collect())
}

fn token_record(
    indexer: &Indexer,
    (address, id): &(AccountKey, Text),
    (token, uri): (&Token, &str),
    collection: &Collection,
) -> Result<v1::Nft, HttpError> {
    let object = address_of(Tokens::SPEC, &token.object)?;
    Ok(v1::Nft {
        collection_addr: address.0.to_hex(),
        collection_name: collection.name.clone(),
        collection_origin_name: collection.origin_name.clone(),
        object_addr: object.map_or_else(String::new, |object| object.to_hex()),
        owner: bech32(indexer, Tokens::SPEC, &token.owner)?,
        nft: Some(v1::NftDetails {
            token_id: id.0.clone(),
            uri: uri.to_owned(),
            uri_truncated: token.outcome() == Outcome::TooLong,
        }),
        height: token.height,
        timestamp: micros(token.time),
    })
}

/// Appends the holders `rows`, amounts big-endian, as many as the page takes.
pub(crate) fn holders(page: &mut PageWriter, rows: &[([u8; 32], [u8; 20])]) -> Result<(), HttpError> {
    let mut record = Vec::new();
    for (amount, account) in rows {
        let amount = U256::from_be_bytes(*amount).to_string();
        record.clear();
        json(&mut record, &v1::TokenHolder { account: Account::from(*account).to_hex(), amount })?;
        if page.record(&record)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// RFC 3339 in UTC, truncated to microseconds, without trailing zeros: `2026-03-14T09:26:53.5Z`.
fn micros(nanos: i64) -> String {
    Timestamp::from_unix_nanos(nanos.div_euclid(1000).saturating_mul(1000)).nanos()
}

/// Bech32 of an address in a row of `table`; empty if there is none.
fn bech32(indexer: &Indexer, table: &TableSpec, bytes: &[u8]) -> Result<String, HttpError> {
    let address = address_of(table, bytes)?;
    Ok(address.map_or_else(String::new, |address| address.to_bech32(&indexer.identity.prefix)))
}

/// An address in a row of `table`, if there is one.
pub(crate) fn address_of(table: &TableSpec, bytes: &[u8]) -> Result<Option<Account>, HttpError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let length = bytes.len();
    let malformed = || HttpError::internal(format!("table `{}`: an address has {length} bytes", table.name));
    Account::from_bytes(bytes).map(Some).ok_or_else(malformed)
}

fn json(out: &mut Vec<u8>, record: &impl Serialize) -> Result<(), HttpError> {
    serde_json::to_writer(out, record).map_err(HttpError::internal)
}

fn missing(table: &'static TableSpec, key: &impl Key) -> HttpError {
    HttpError::internal(store::table::corrupt(table, &key.to_bytes(), "the row that a list names is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_to_microseconds_without_trailing_zeros() {
        for (text, micros_text) in [
            ("2026-11-21T07:07:25.505620999Z", "2026-11-21T07:07:25.50562Z"),
            ("2026-02-01T18:04:05.271828182Z", "2026-02-01T18:04:05.271828Z"),
            ("2026-03-14T11:40:00.000001Z", "2026-03-14T11:40:00.000001Z"),
            ("2026-03-14T11:40:00.000000999Z", "2026-03-14T11:40:00Z"),
            ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(micros(Timestamp::parse(text).unwrap().unix_nanos()), micros_text);
        }
        assert_eq!(micros(i64::MIN), Timestamp::from_unix_nanos(i64::MIN).nanos());
    }
}
