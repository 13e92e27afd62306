//! The JSON objects of an API, for the OpenAPI document: serde types with `#[derive(JsonSchema)]`.

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

    /// The body in another form, which a parameter asks for.
    fn other_form(&self) -> Option<&dyn Object> {
        None
    }
}

/// A JSON object, or a text if a parameter asks for it.
#[derive(Debug)]
pub struct ObjectOrText(pub &'static dyn Object, pub Text);

impl Object for ObjectOrText {
    fn define(&self, definitions: &mut SchemaGenerator) -> schemars::Schema {
        self.0.define(definitions)
    }

    fn other_form(&self) -> Option<&dyn Object> {
        Some(&self.1)
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

/// A body that is a document of a public format, which this API does not describe.
#[derive(Debug)]
pub struct Document(pub &'static str);

impl Object for Document {
    fn define(&self, _: &mut SchemaGenerator) -> schemars::Schema {
        json_schema!({ "type": "object", "description": self.0 })
    }
}

/// The reason why a request was refused: the body of every response that is not a success.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "common.ErrorResponse")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct ErrorResponse {
    /// The gRPC status code.
    code: u32,
    /// The input at fault, and the allowed values.
    message: String,
    /// Entries with an @type (google.rpc); usually none.
    details: Vec<serde_json::Map<String, serde_json::Value>>,
    /// One sentence of advice for the user.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<String>,
}
