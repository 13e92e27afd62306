//! Table declarations: name, tag and access pattern.

/// Declaration of a table. A name or tag must never be reused for another table.
#[derive(Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Name of the column family, and of the table in messages.
    pub name: &'static str,
    /// Unique number of the table: the key prefix in an engine without column families.
    pub tag: u8,
    /// Access pattern of the rows.
    pub access: Access,
}

/// Access pattern of a table. The engine chooses filters, block size and compression by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Point lookups by whole key, in no order.
    Point,
    /// Like [`Access::Point`], of keys that are mostly there.
    Hash,
    /// Writes in key order; the application compresses the values.
    Append,
    /// Range scans over many small rows.
    Scan,
    /// Like [`Access::Scan`], of a ranked set: short scans, and few bytes compared with those of the other tables.
    Ranked,
}
