//! The schemas of a document (JSON Schema 2020-12), by name.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::schema::{ERROR_RESPONSE, Field, Kind, Object, Schema};

/// The lead of a reference to a definition.
pub(super) const REFERENCE: &str = "#/components/schemas/";

/// The definitions of answers and of bodies. The serialized form of a type may differ from the deserialized one.
pub(super) struct Definitions {
    pub(super) answers: SchemaGenerator,
    pub(super) bodies: SchemaGenerator,
}

impl Definitions {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let settings = settings.with_transform(RecursiveTransform(normalise));
        let mut answers = settings.clone().for_serialize().into_generator();
        ERROR_RESPONSE.define(&mut answers);
        Self { answers, bodies: settings.for_deserialize().into_generator() }
    }

    pub(super) fn finish(mut self) -> Map<String, Value> {
        let mut all = self.answers.take_definitions(true);
        for (name, body) in self.bodies.take_definitions(true) {
            let name =
                if all.get(&name).is_some_and(|answer| *answer != body) { second(&name) } else { name };
            all.insert(name, body);
        }
        all
    }
}

/// The name of a second definition of the same name, as `schemars` chooses it.
pub(super) fn second(name: &str) -> String {
    format!("{name}2")
}

fn normalise(schema: &mut schemars::Schema) {
    let schema = schema.ensure_object();
    // The value that an absent member is read as; our answers have all of them.
    schema.remove("default");
    // The variants of a flattened enum overlap, because a variant allows the members of the others.
    if let Some(variants) = schema.remove("oneOf") {
        schema.insert("anyOf".into(), variants);
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

impl Object for Schema {
    fn define(&self, definitions: &mut SchemaGenerator) -> schemars::Schema {
        let definition = definition(self);
        let mut name = self.name.to_owned();
        let known = definitions.definitions_mut();
        if known.get(&name).is_some_and(|other| *other != definition) {
            name = second(&name);
        }
        // An object that contains itself is already present.
        if known.insert(name, definition).is_none() {
            for Field { kind, .. } in self.fields {
                let mut kind = kind;
                while let Kind::Array(item) = kind {
                    kind = item;
                }
                if let Kind::Object(inner) = kind {
                    inner.define(definitions);
                }
            }
        }
        json_schema!({ "$ref": format!("{REFERENCE}{}", self.name) })
    }
}

fn definition(schema: &Schema) -> Value {
    let properties: Map<_, _> =
        schema.fields.iter().map(|field| (field.name.to_owned(), property(field))).collect();
    let required: Vec<_> =
        schema.fields.iter().filter(|field| !field.optional).map(|field| field.name).collect();
    let mut value = json!({ "type": "object", "description": schema.doc, "properties": properties });
    if !required.is_empty() {
        value["required"] = required.into();
    }
    value
}

fn property(field: &Field) -> Value {
    let mut value = kind(&field.kind);
    if field.nullable {
        value = match value["type"].take() {
            Value::Null => json!({ "anyOf": [kind(&field.kind), { "type": "null" }] }),
            one => {
                value["type"] = json!([one, "null"]);
                value
            }
        };
    }
    if !field.doc.is_empty() {
        value["description"] = field.doc.into();
    }
    value
}

fn kind(of: &Kind) -> Value {
    match of {
        Kind::String => json!({ "type": "string" }),
        Kind::Pattern(pattern) => json!({ "type": "string", "pattern": pattern }),
        Kind::Time => json!({ "type": "string", "format": "date-time" }),
        Kind::Integer => json!({ "type": "integer", "format": "int64" }),
        Kind::Natural => json!({ "type": "integer", "format": "int64", "minimum": 0 }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Free => json!({ "type": "object" }),
        Kind::Object(schema) => json!({ "$ref": format!("{REFERENCE}{}", schema.name) }),
        Kind::Array(item) => json!({ "type": "array", "items": kind(item) }),
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;
    use crate::schema::of;

    /// A thing.
    #[derive(JsonSchema)]
    #[schemars(rename = "shop.Thing")]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Thing {
        /// On two
        /// lines.
        name: Option<String>,
        maker: Option<Maker>,
        ways: Vec<Way>,
    }

    /// A maker.
    #[derive(JsonSchema)]
    #[schemars(rename = "shop.Maker")]
    struct Maker {}

    #[derive(JsonSchema)]
    #[schemars(inline, rename_all = "snake_case")]
    #[allow(dead_code, reason = "only its schema is used")]
    enum Way {
        ByAir { price: String },
        BySea { days: u8 },
    }

    #[test]
    fn a_type_is_described_with_null_types_and_alternatives() {
        let mut definitions = Definitions::new();
        let reference = of::<Thing>().define(&mut definitions.answers);
        assert_eq!(*reference.as_value(), json!({ "$ref": "#/components/schemas/shop.Thing" }));
        let all = definitions.finish();
        let (thing, properties) = (&all["shop.Thing"], &all["shop.Thing"]["properties"]);
        assert_eq!(thing["required"], json!(["name", "maker", "ways"]));
        assert_eq!(properties["name"], json!({ "type": ["string", "null"], "description": "On two lines." }));
        let maker = json!({ "anyOf": [{ "$ref": "#/components/schemas/shop.Maker" }, { "type": "null" }] });
        assert_eq!(properties["maker"], maker);
        let ways = properties["ways"]["items"]["anyOf"].as_array().unwrap();
        assert_eq!(ways[0]["required"], json!(["by_air"]));
        assert_eq!(ways[1]["properties"]["by_sea"]["properties"]["days"]["maximum"], 255);
    }

    #[test]
    fn a_nullable_member_of_a_table_can_be_null() {
        static MAKER: Schema = Schema { name: "shop.Maker", doc: "A maker.", fields: &[] };
        let name = property(&Field::nullable("name", Kind::Time, "When."));
        assert_eq!(
            name,
            json!({ "type": ["string", "null"], "format": "date-time", "description": "When." })
        );
        let maker = property(&Field::nullable("maker", Kind::Object(&MAKER), ""));
        let reference = json!({ "$ref": "#/components/schemas/shop.Maker" });
        assert_eq!(maker, json!({ "anyOf": [reference, { "type": "null" }] }));
    }

    #[test]
    fn two_objects_of_one_name_are_two_definitions() {
        static ONE: Schema = Schema { name: "shop.Item", doc: "One.", fields: &[] };
        static OTHER: Schema = Schema { name: "shop.Item", doc: "Another.", fields: &[] };
        let mut definitions = Definitions::new();
        for object in [&ONE, &ONE, &OTHER] {
            object.define(&mut definitions.answers);
        }
        let all = definitions.finish();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["common.ErrorResponse", "shop.Item", "shop.Item2"]);
    }
}
