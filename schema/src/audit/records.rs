//! Check of transaction records against the hash index.

use serde::Deserialize;
use store::{Bounds, Table, TableSpec};

use super::{Ground, Remedy, Report};
use crate::Error;
use crate::evm_tx::{EvmTxByHash, EvmTxs};
use crate::keys::{HashPrefix, hash_prefix};
use crate::payload::Payload;
use crate::tx::{TxByHash, Txs};

/// The member of a record that contains its hash.
#[derive(Deserialize)]
struct Record {
    #[serde(alias = "transactionHash")]
    txhash: String,
}

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    pair::<Txs, TxByHash>(ground, &|seq| ground.heights.of_tx(seq), report)?;
    pair::<EvmTxs, EvmTxByHash>(ground, &|seq| ground.heights.of_evm_tx(seq), report)
}

fn pair<R: Table<Key = u64, Value = Payload>, H: Table<Key = (HashPrefix, u64)>>(
    ground: &Ground<'_>,
    height: &dyn Fn(u64) -> u64,
    report: &mut Report,
) -> Result<(), Error> {
    let (mut found, mut n) = (0, 0);
    store::for_each_row(ground.snapshot, R::SPEC, Bounds::all(), |key, value| {
        let Some(seq) = <u64 as store::Key>::from_bytes(key) else { return Ok(()) };
        n += 1;
        match hash(ground, R::SPEC, seq, value) {
            Err(reason) => {
                report.row("record", (R::SPEC, key, Some(value)), reason, Remedy::Index(height(seq)));
            }
            Ok(prefix) => {
                let by_hash = store::Key::to_bytes(&(prefix, seq));
                if ground.snapshot.get(H::SPEC, &by_hash)?.is_some() {
                    found += 1;
                } else {
                    report.suspect(height(seq));
                    let row = (H::SPEC, by_hash.as_slice(), None);
                    report.row("missing hash", row, "an empty value", Remedy::Row(Some(Vec::new())));
                }
            }
        }
        Ok::<(), Error>(())
    })?;
    report.checked("records", n);
    let mut rows = 0;
    store::for_each_row(ground.snapshot, H::SPEC, Bounds::all(), |_, _| {
        rows += 1;
        Ok::<(), Error>(())
    })?;
    // Every record has an entry, so there are stray entries only if there are more of them.
    if rows > found { strays::<R, H>(ground, height, report) } else { Ok(()) }
}

/// Finds entries whose record has another hash.
fn strays<R: Table<Key = u64>, H: Table<Key = (HashPrefix, u64)>>(
    ground: &Ground<'_>,
    height: &dyn Fn(u64) -> u64,
    report: &mut Report,
) -> Result<(), Error> {
    store::for_each_row(ground.snapshot, H::SPEC, Bounds::all(), |key, value| {
        let Some((prefix, seq)) = <(HashPrefix, u64) as store::Key>::from_bytes(key) else { return Ok(()) };
        let record = ground.snapshot.get(R::SPEC, &seq.to_be_bytes())?;
        let belongs = match record.as_deref().map(|record| hash(ground, R::SPEC, seq, record)) {
            Some(Ok(found)) => found == prefix,
            // What cannot be read may well be it.
            Some(Err(_)) => true,
            None => false,
        };
        if !belongs {
            report.suspect(height(seq));
            let expected = format!("nothing: record {seq} has another hash");
            report.row("stray hash", (H::SPEC, key, Some(value)), expected, Remedy::Row(None));
        }
        Ok(())
    })
}

fn hash(
    ground: &Ground<'_>,
    table: &'static TableSpec,
    seq: u64,
    payload: &[u8],
) -> Result<HashPrefix, String> {
    let mut json = Vec::new();
    ground.codec.decode_into(table, seq, payload, &mut json).map_err(|error| error.to_string())?;
    hash_in(&json)
}

/// The hash in a record's JSON.
pub(crate) fn hash_in(json: &[u8]) -> Result<HashPrefix, String> {
    let record: Record = serde_json::from_slice(json).map_err(|error| format!("a record: {error}"))?;
    let digits = record.txhash.strip_prefix("0x").unwrap_or(&record.txhash);
    let hash = hex::decode(digits).ok().and_then(|hash| <[u8; 32]>::try_from(hash).ok());
    hash.map(|hash| hash_prefix(&hash)).ok_or_else(|| "a record that begins with its hash".to_owned())
}
