//! Declarations of tables: name, tag and access pattern.

/// Declaration of a table. Neither name nor tag may ever be used for another table.
#[derive(Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Name of the column family, and of the table in messages.
    pub name: &'static str,
    /// The table's number: prefix of its keys in an engine without column families.
    pub tag: u8,
    /// How rows are written and read.
    pub access: Access,
}

/// How the rows of a table are used; an engine chooses filters, blocks and compression by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looked up by whole key, in no order.
    Point,
    /// Written in key order, with values that the application has compressed.
    Append,
    /// Read by range, many small rows at a time.
    Scan,
}
