//! The schemas of a document (JSON Schema 2020-12), by name.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value};

use crate::openapi::schema::{self, ErrorResponse};

/// The lead of a reference to a definition.
pub(super) const REFERENCE: &str = "#/components/schemas/";

/// The definitions of responses and of bodies. The serialized form of a type may differ from the deserialized one.
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
        schema::of::<ErrorResponse>().define(&mut answers);
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
    // OpenAPI has no format of unsigned numbers; they have a minimum.
    if matches!(schema.get("format"), Some(Value::String(format)) if ["uint32", "uint64"].contains(&format.as_str()))
    {
        schema.insert("format".into(), "int64".into());
    }
    // The variants of a flattened enum overlap, because a variant allows the members of the others.
    if let Some(variants) = schema.remove("oneOf") {
        schema.insert("anyOf".into(), variants);
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;
    use crate::openapi::schema::of;

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
}
