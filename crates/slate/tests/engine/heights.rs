//! Blocks whose rows all name their height, so that a request that mixes heights is noticed.

use std::sync::atomic::{AtomicBool, Ordering};

use store::{Access, Batch, Bounds, Order, Snapshot, TableSpec};

pub(crate) const HEAD: &TableSpec = &TableSpec { name: "head", tag: 0x10, access: Access::Point };
pub(crate) const ROWS: &TableSpec = &TableSpec { name: "rows", tag: 0x11, access: Access::Scan };

/// Rows that each block replaces.
pub(crate) const REPLACED: u32 = 40;

/// The batch of a block: the head, and rows that all have its height as their value.
pub(crate) fn block(height: u64) -> Batch {
    let mut batch = Batch::new();
    for row in 0..REPLACED {
        batch.put(ROWS, row.to_be_bytes().to_vec(), height.to_be_bytes().to_vec());
    }
    batch.put(HEAD, Vec::new(), height.to_be_bytes().to_vec());
    batch
}

/// Sets the flag when it is dropped, also by a failed assertion: the threads that it ends would be awaited for ever.
pub(crate) struct Done<'a>(pub(crate) &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().unwrap())
}

pub(crate) fn head(snapshot: &dyn Snapshot) -> u64 {
    snapshot.get(HEAD, &[]).unwrap().map_or(0, |value| number(&value))
}

/// The heights that a request sees: of the head, of each row, of all of them at once and of a scan, and the head again.
pub(crate) fn request(snapshot: &dyn Snapshot) -> Vec<u64> {
    let keys: Vec<_> = (0..REPLACED).map(|row| row.to_be_bytes().to_vec()).collect();
    let mut seen = vec![head(snapshot)];
    for key in &keys {
        seen.extend(snapshot.get(ROWS, key).unwrap().map(|value| number(&value)));
    }
    seen.extend(snapshot.multi_get(ROWS, &keys).unwrap().iter().flatten().map(|value| number(value)));
    let rows = snapshot.scan(ROWS, Bounds::all(), Order::Desc, usize::MAX).unwrap();
    assert!(rows.is_empty() || rows.len() == keys.len(), "a block is there in part");
    seen.extend(rows.iter().map(|(_, value)| number(value)));
    seen.push(head(snapshot));
    seen
}

pub(crate) fn is_mixed(seen: &[u64]) -> bool {
    seen.iter().any(|height| *height != seen[0])
}
