//! The JSON objects of an API, for the OpenAPI document: serde types with `#[derive(JsonSchema)]`, and tables for
//! objects without a type, because their bytes are stored.
//!
//! An object refers to another by reference, so that every used definition exists.

use std::fmt::Debug;
use std::marker::PhantomData;

use schemars::{JsonSchema, SchemaGenerator, json_schema};

use crate::reply::JSON;

/// A body that the document defines, nearly always a JSON object.
pub trait Object: Debug + Sync {
    /// Adds the definitions of the object and of all objects in it; returns a reference to it.
    fn define(&self, definitions: &mut SchemaGenerator) -> schemars::Schema;

    /// The media type of the body.
    fn content_type(&self) -> &'static str {
        JSON
    }
}

/// A body that is a text of another media type, for example a stream of events.
#[derive(Debug)]
pub struct Text {
    /// Without parameters.
    pub content_type: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

impl Object for Text {
    fn define(&self, _: &mut SchemaGenerator) -> schemars::Schema {
        json_schema!({ "type": "string", "description": self.doc })
    }

    fn content_type(&self) -> &'static str {
        self.content_type
    }
}

impl<T: JsonSchema + Sync> Object for PhantomData<T> {
    fn define(&self, definitions: &mut SchemaGenerator) -> schemars::Schema {
        definitions.subschema_for::<T>()
    }
}

/// The object that `T` is on the wire; its definition has the name of `#[schemars(rename = "…")]`.
pub const fn of<T: JsonSchema + Sync + 'static>() -> &'static dyn Object {
    &PhantomData::<T>
}

/// A named JSON object as a table.
#[derive(Debug)]
pub struct Schema {
    /// Its name among the definitions, for example `tx.TxsResponse`; one name, one definition.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Its members in the order of the wire.
    pub fields: &'static [Field],
}

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// As on the wire.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// One sentence; empty if the name is self-explanatory.
    pub doc: &'static str,
    /// True if it can be `null`.
    pub nullable: bool,
    /// True if it can be missing.
    pub optional: bool,
}

/// The type of a member's value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    String,
    /// A text that matches a regular expression (ECMA 262).
    Pattern(&'static str),
    /// A time: RFC 3339.
    Time,
    /// A whole number as a JSON number.
    Integer,
    /// A whole number that is not negative, as a JSON number.
    Natural,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An object whose members this API does not fix.
    Free,
    /// A named object.
    Object(&'static Schema),
    /// A list.
    Array(&'static Kind),
}

/// A whole number that is not negative, in decimal digits.
pub const DECIMAL: Kind = Kind::Pattern("^[0-9]+$");

impl Field {
    /// A member that is never `null`.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, doc, nullable: false, optional: false }
    }

    /// A member that can be `null`.
    pub const fn nullable(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, doc, nullable: true, optional: false }
    }

    /// A member that can be missing, but is never `null`.
    pub const fn maybe(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, doc, nullable: false, optional: true }
    }

    /// A member that can be missing, and `null` as well.
    pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, doc, nullable: true, optional: true }
    }
}

/// The `pagination` member of every list.
pub static PAGINATION_RESPONSE: Schema = Schema {
    name: "common.PaginationResponse",
    doc: "Where a page stands in its list.",
    fields: &[
        Field::nullable("previous_key", Kind::String, "The key of the page before; null on the first."),
        Field::nullable("next_key", Kind::String, "The key of the page after; null on the last."),
        Field::new("total", DECIMAL, "How many rows the whole list has, in decimal; \"0\" if not asked for."),
    ],
};

/// The body of every answer that is not a success.
pub static ERROR_RESPONSE: Schema = Schema {
    name: "common.ErrorResponse",
    doc: "Why a request was refused.",
    fields: &[
        Field::new("code", Kind::Natural, "The gRPC status code."),
        Field::new("message", Kind::String, "The input at fault, and the allowed values."),
        Field::new("details", Kind::Array(&Kind::Free), "Entries with an @type (google.rpc); usually none."),
        Field::maybe("info", Kind::String, "One sentence of advice for the user."),
    ],
};
