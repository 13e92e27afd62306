//! Typed tables: a [`TableSpec`] with its key and value types, and typed reads.
//!
//! # Invariants
//!
//! A row that does not decode is an error with table and key; it is never skipped.

use crate::{
    engine::{Bounds, Order, Snapshot, prefix_end},
    error::Error,
    key::{Key, PrefixOf, successor},
    spec::TableSpec,
    value::Value,
};

/// A table with typed rows.
pub trait Table: 'static {
    /// Its declaration.
    const SPEC: &'static TableSpec;
    /// Type of the keys.
    type Key: Key;
    /// Type of the values.
    type Value: Value;
}

/// Declares tables with their documentation: their marker types, and what says how their rows are stored.
///
/// | declaration | declares |
/// |---|---|
/// | `table Name("name", tag, Access): Key => Value;` | a [`Table`] |
/// | `list Name("name", tag): Owner;` | a [`List`](crate::List) |
/// | `set Name("name", tag): Owner, Item => Value;` | a ranked set ([`Ranked`](crate::Ranked)) |
#[macro_export]
macro_rules! tables {
    () => {};
    ($(#[$doc:meta])* $vis:vis table $name:ident($text:literal, $tag:literal, $access:ident): $key:ty => $value:ty;
        $($rest:tt)*) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $name;

        impl $crate::Table for $name {
            const SPEC: &'static $crate::TableSpec =
                &$crate::TableSpec { name: $text, tag: $tag, access: $crate::Access::$access };
            type Key = $key;
            type Value = $value;
        }
        $crate::tables! { $($rest)* }
    };
    ($(#[$doc:meta])* $vis:vis list $name:ident($text:literal, $tag:literal): $owner:ty; $($rest:tt)*) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $name;

        impl $crate::List for $name {
            const SPEC: &'static $crate::TableSpec =
                &$crate::TableSpec { name: $text, tag: $tag, access: $crate::Access::Scan };
            type Owner = $owner;
        }
        $crate::tables! { $($rest)* }
    };
    ($(#[$doc:meta])* $vis:vis set $name:ident($text:literal, $tag:literal): $owner:ty, $item:ty => $value:ty;
        $($rest:tt)*) => {
        $crate::tables! { $(#[$doc])* $vis table $name($text, $tag, Ranked): ($owner, $item) => $value; }

        impl $crate::Ranked for $name {
            type Owner = $owner;
            type Item = $item;
        }
        $crate::tables! { $($rest)* }
    };
}

/// Key and value of a row.
pub type RowOf<T> = (<T as Table>::Key, <T as Table>::Value);

/// The value of `key`.
pub fn read<T: Table>(snapshot: &dyn Snapshot, key: &T::Key) -> Result<Option<T::Value>, Error> {
    read_raw::<T>(snapshot, &key.to_bytes())
}

/// The value of the key whose encoding is `key`.
pub(crate) fn read_raw<T: Table>(snapshot: &dyn Snapshot, key: &[u8]) -> Result<Option<T::Value>, Error> {
    let mut found = None;
    snapshot.get_with(T::SPEC, key, &mut |value| found = Some(decode_value::<T>(key, value)))?;
    found.transpose()
}

/// The values of `keys`, in their order.
pub fn read_many<T: Table>(snapshot: &dyn Snapshot, keys: &[T::Key]) -> Result<Vec<Option<T::Value>>, Error> {
    let keys: Vec<_> = keys.iter().map(Key::to_bytes).collect();
    let values = snapshot.multi_get(T::SPEC, &keys)?;
    let decode = |(key, value): (&Vec<u8>, Option<Vec<u8>>)| {
        value.map(|value| decode_value::<T>(key, &value)).transpose()
    };
    keys.iter().zip(values).map(decode).collect()
}

/// The first `limit` rows under `prefix`, in `order`.
pub fn rows<T: Table>(
    snapshot: &dyn Snapshot,
    prefix: &impl PrefixOf<T::Key>,
    order: Order,
    limit: usize,
) -> Result<Vec<RowOf<T>>, Error> {
    let start = prefix.prefix();
    let end = prefix_end(&start);
    scan::<T>(snapshot, Bounds { start: &start, end: end.as_deref() }, order, limit)
}

/// The first `limit` rows under `prefix` after the key `after` in `order`; `after` need not exist. If `after` lies
/// outside `prefix`, the result covers all rows of the prefix or none.
pub fn rows_after<T: Table>(
    snapshot: &dyn Snapshot,
    prefix: &impl PrefixOf<T::Key>,
    after: &T::Key,
    order: Order,
    limit: usize,
) -> Result<Vec<RowOf<T>>, Error> {
    let mut start = prefix.prefix();
    let mut end = prefix_end(&start);
    let after = after.to_bytes();
    match order {
        Order::Asc => {
            start = start.max(successor(&after));
        }
        Order::Desc => {
            end = Some(match end {
                Some(end) => end.min(after),
                None => after,
            });
        }
    }
    scan::<T>(snapshot, Bounds { start: &start, end: end.as_deref() }, order, limit)
}

fn scan<T: Table>(
    snapshot: &dyn Snapshot,
    bounds: Bounds<'_>,
    order: Order,
    limit: usize,
) -> Result<Vec<RowOf<T>>, Error> {
    let rows = snapshot.scan(T::SPEC, bounds, order, limit)?;
    rows.iter().map(|(key, value)| decode_row::<T>(key, value)).collect()
}

/// Decodes a stored row.
pub fn decode_row<T: Table>(key: &[u8], value: &[u8]) -> Result<RowOf<T>, Error> {
    let decoded = T::Key::from_bytes(key).ok_or_else(|| corrupt(T::SPEC, key, "the key does not decode"))?;
    Ok((decoded, decode_value::<T>(key, value)?))
}

pub(crate) fn decode_value<T: Table>(key: &[u8], value: &[u8]) -> Result<T::Value, Error> {
    T::Value::decode(value).ok_or_else(|| corrupt(T::SPEC, key, "the value does not decode"))
}

/// An [`Error::Corrupt`] with the broken expectation `reason`, for values that decode but contradict other data.
pub fn corrupt(table: &'static TableSpec, key: &[u8], reason: &'static str) -> Error {
    Error::Corrupt { table: table.name, key: key.to_vec(), reason }
}
