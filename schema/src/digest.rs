//! A SHA-256 digest over all logical rows of a database.
//!
//! # Invariants
//!
//! Two databases have equal digests exactly if they hold the same records and indexes, apart from the EVM's block hashes
//! ([`evm_tx::blank_block_hashes`]). The digest does not depend on the storage engine, on compression, or on how often
//! the ingest was killed or rewound.

use std::fmt;

use sha2::{Digest as _, Sha256};
use store::{Bounds, Snapshot, Table, TableSpec};

use crate::meta;
use crate::payload::Codec;
use crate::{Error, INDEXES, RECORDS, TABLES, balances, descriptors, evm_tx, nft, payload, rich, undo};

/// Tables that depend on the history of the database (dictionaries, change order, undo logs), not on its contents; and the tokens of
/// accounts, which follow from balances and which a database of an earlier version lacks.
pub const EXCLUDED: [&TableSpec; 7] = [
    rich::AccountTokens::SPEC,
    balances::AskedAccounts::SPEC,
    payload::Dictionary::SPEC,
    descriptors::Descriptors::SPEC,
    nft::NameChanges::SPEC,
    undo::UndoRecords::SPEC,
    rich::RichUndo::SPEC,
];

/// The digest of one table.
#[derive(Clone, PartialEq, Eq)]
pub struct TableDigest {
    /// The table's name.
    pub table: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 over the rows.
    pub sha256: [u8; 32],
}

impl fmt::Debug for TableDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} rows, {}", self.table, self.rows, hex::encode(&self.sha256[..4]))
    }
}

/// The digests of all tables except [`EXCLUDED`], those of optional indexes that are not stored, and those with replies of a
/// node, in the order of [`TABLES`].
pub fn tables(snapshot: &dyn Snapshot) -> Result<Vec<TableDigest>, Error> {
    let codec = Codec::load(snapshot)?;
    let mut left_out = EXCLUDED.to_vec();
    for index in INDEXES {
        let is_stored = index.state(snapshot)?.is_some();
        left_out.extend(if is_stored { index.replies } else { index.tables });
    }
    TABLES.iter().filter(|spec| !left_out.contains(spec)).map(|spec| table(snapshot, spec, &codec)).collect()
}

/// One hash over [`tables`].
pub fn total(tables: &[TableDigest]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for table in tables {
        update(&mut hash, table.table.as_bytes());
        hash.update(table.rows.to_be_bytes());
        hash.update(table.sha256);
    }
    hash.finalize().into()
}

fn table(snapshot: &dyn Snapshot, spec: &'static TableSpec, codec: &Codec) -> Result<TableDigest, Error> {
    // The digest covers the decompressed records.
    let compressed = RECORDS.contains(&spec);
    let excluded = meta::excluded_rows();
    let mut hash = Sha256::new();
    let mut rows = 0;
    let mut record = Vec::new();
    store::for_each_row(snapshot, spec, Bounds::all(), |key, value| -> Result<(), Error> {
        if excluded.iter().any(|(table, excluded)| table.tag == spec.tag && excluded == key) {
            return Ok(());
        }
        update(&mut hash, key);
        if compressed {
            record.clear();
            let seq = <[u8; 8]>::try_from(key).map_or(0, u64::from_be_bytes);
            codec.decode_into(spec, seq, value, &mut record)?;
            if spec == evm_tx::EvmTxs::SPEC {
                evm_tx::blank_block_hashes(&mut record);
            }
            update(&mut hash, &record);
        } else {
            update(&mut hash, value);
        }
        rows += 1;
        Ok(())
    })?;
    Ok(TableDigest { table: spec.name, rows, sha256: hash.finalize().into() })
}

/// Length-prefixed, so that moving bytes between a key and a value changes the hash.
fn update(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}
