//! The Swagger 2.0 document of a list of endpoints.
//!
//! Paths, parameters and definitions come from the same values that routing and responses use.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, RemoveRefSiblings};
use schemars::{SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::endpoint::{Endpoint, Handler, Method, Param, QueryParam, Type};
use crate::event::EVENT_STREAM;
use crate::reply::JSON;
use crate::schema::{ERROR_RESPONSE, Field, Kind, Object, Schema};

/// The document of all endpoints whose path `keep` accepts. Paths are written in full; there is no host and no
/// base path, because the server works wherever it is mounted.
pub fn document<A>(
    title: &str,
    description: &str,
    version: &str,
    groups: &[&[Endpoint<A>]],
    keep: impl Fn(&str) -> bool,
) -> Value {
    let mut definitions = Definitions::new();
    let mut tags: Vec<&str> = Vec::new();
    let mut paths = Map::new();
    for endpoint in groups.iter().copied().flatten().filter(|endpoint| keep(endpoint.path)) {
        if !tags.contains(&endpoint.tag) {
            tags.push(endpoint.tag);
        }
        paths.entry(endpoint.path).or_insert_with(|| json!({}))[method(endpoint.method)] =
            operation(endpoint, &mut definitions);
    }
    json!({
        "swagger": "2.0",
        "info": { "title": title, "description": description, "version": version },
        "produces": [JSON],
        "tags": tags.into_iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        "paths": paths,
        "definitions": definitions.finish(),
    })
}

/// The names that two different objects of the endpoints share; a valid API has none.
pub fn name_conflicts<A>(groups: &[&[Endpoint<A>]]) -> Vec<String> {
    let mut definitions = Definitions::new();
    for endpoint in groups.iter().copied().flatten() {
        operation(endpoint, &mut definitions);
    }
    let all = definitions.finish();
    all.keys().filter(|name| all.contains_key(&second(name))).cloned().collect()
}

/// The name of a second definition of the same name, as `schemars` chooses it.
fn second(name: &str) -> String {
    format!("{name}2")
}

/// The definitions of answers and of bodies. The serialized form of a type may differ from the deserialized one.
struct Definitions {
    answers: SchemaGenerator,
    bodies: SchemaGenerator,
}

impl Definitions {
    fn new() -> Self {
        let settings = SchemaSettings::draft07().with(|settings| settings.transforms.clear());
        let settings =
            settings.with_transform(RecursiveTransform(swagger)).with_transform(RemoveRefSiblings::default());
        let mut answers = settings.clone().for_serialize().into_generator();
        ERROR_RESPONSE.define(&mut answers);
        Self { answers, bodies: settings.for_deserialize().into_generator() }
    }

    fn finish(mut self) -> Map<String, Value> {
        let mut all = self.answers.take_definitions(true);
        for (name, body) in self.bodies.take_definitions(true) {
            let name =
                if all.get(&name).is_some_and(|answer| *answer != body) { second(&name) } else { name };
            all.insert(name, body);
        }
        all
    }
}

/// Rewrites JSON Schema to Swagger 2.0, which has no null type and no alternatives.
fn swagger(schema: &mut schemars::Schema) {
    let schema = schema.ensure_object();
    // The value that an absent member is read as; our answers have all of them.
    schema.remove("default");
    for alternative in [schema.remove("anyOf"), schema.remove("oneOf")].into_iter().flatten() {
        for mut variant in alternative.as_array().cloned().unwrap_or_default() {
            let Some(variant) = variant.as_object_mut() else { continue };
            if variant.get("type").is_some_and(|kind| kind == "null") {
                schema.insert("x-nullable".into(), true.into());
                continue;
            }
            // The members of all variants, none of them required.
            variant.remove("required");
            if let (Some(Value::Object(all)), Some(Value::Object(more))) =
                (schema.get_mut("properties"), variant.get_mut("properties"))
            {
                all.append(more);
            }
            variant.append(schema);
            schema.append(variant);
        }
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        let kind = kinds.pop().unwrap_or_default();
        schema.insert("type".into(), kind);
        schema.insert("x-nullable".into(), true.into());
    }
    if schema.get("type").is_some_and(|kind| kind == "integer") {
        schema.insert("format".into(), "int64".into());
    }
    if schema.get("additionalProperties").is_some_and(Value::is_boolean) {
        schema.remove("additionalProperties");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
    }
}

fn operation<A>(endpoint: &Endpoint<A>, definitions: &mut Definitions) -> Value {
    let parameters: Vec<_> =
        endpoint.params.iter().flat_map(|param| parameters(param, &mut definitions.bodies)).collect();
    let error =
        |description: &str| json!({ "description": description, "schema": reference(ERROR_RESPONSE.name) });
    let answer = endpoint.response.define(&mut definitions.answers);
    let mut responses = Map::new();
    responses.insert("200".into(), json!({ "description": "OK", "schema": answer }));
    if !endpoint.params.is_empty() {
        responses.insert("400".into(), error("A parameter is malformed; the message names it."));
    }
    if endpoint.params.iter().any(|param| matches!(param, Param::Path(_))) {
        responses.insert("404".into(), error("There is no such thing."));
    }
    responses.insert("default".into(), error("Any other refusal."));
    json!({
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "produces": [if matches!(endpoint.handler, Handler::Stream(_)) { EVENT_STREAM } else { JSON }],
        "parameters": parameters,
        "responses": responses,
    })
}

fn parameters(param: &Param, bodies: &mut SchemaGenerator) -> Vec<Value> {
    match param {
        Param::Path(path) => vec![json!({
            "name": path.name, "in": "path", "required": true, "type": "string", "description": path.doc,
        })],
        Param::Body(object) => {
            let schema = object.define(bodies);
            let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
            let definition = name.and_then(|name| bodies.definitions().get(name));
            let doc =
                definition.and_then(|definition| definition["description"].as_str()).unwrap_or_default();
            let doc = doc.replace('\n', " ");
            vec![
                json!({ "name": "body", "in": "body", "required": true, "schema": schema, "description": doc }),
            ]
        }
        Param::Query(_) | Param::Group(_) => param.queries().iter().map(query_parameter).collect(),
    }
}

fn query_parameter(param: &QueryParam) -> Value {
    let mut value = json!({ "name": param.name, "in": "query", "required": false, "description": param.doc });
    match param.ty {
        Type::String => value["type"] = "string".into(),
        Type::Integer => {
            value["type"] = "integer".into();
            value["format"] = "int64".into();
        }
        Type::Boolean => value["type"] = "boolean".into(),
        Type::OneOf(words) => {
            value["type"] = "string".into();
            value["enum"] = words.into();
        }
        Type::Texts => {
            value["type"] = "array".into();
            value["items"] = json!({ "type": "string" });
            value["collectionFormat"] = "multi".into();
        }
    }
    if let Some(default) = param.default {
        // `100` and `true` are JSON literals; texts are not.
        let literal =
            matches!(param.ty, Type::Integer | Type::Boolean).then(|| serde_json::from_str(default));
        value["default"] = literal.and_then(Result::ok).unwrap_or_else(|| default.into());
    }
    value
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
        json_schema!({ "$ref": format!("#/definitions/{}", self.name) })
    }
}

fn definition(schema: &Schema) -> Value {
    let properties: Map<_, _> =
        schema.fields.iter().map(|field| (field.name.to_owned(), property(field))).collect();
    let required: Vec<_> =
        schema.fields.iter().filter(|field| !field.optional).map(|field| field.name).collect();
    let mut value = json!({ "type": "object", "description": schema.doc, "properties": properties });
    // An empty list is not allowed here (JSON Schema validation, draft 4, §5.4.3).
    if !required.is_empty() {
        value["required"] = required.into();
    }
    value
}

fn property(field: &Field) -> Value {
    let mut value = kind(&field.kind);
    if !field.doc.is_empty() {
        value["description"] = field.doc.into();
    }
    if field.nullable {
        value["x-nullable"] = true.into();
    }
    value
}

fn kind(of: &Kind) -> Value {
    match of {
        Kind::String => json!({ "type": "string" }),
        Kind::Integer => json!({ "type": "integer", "format": "int64" }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Free => json!({ "type": "object" }),
        Kind::Object(schema) => reference(schema.name),
        Kind::Array(item) => json!({ "type": "array", "items": kind(item) }),
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
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
        count: u8,
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
    fn a_type_is_described_without_null_types_and_alternatives() {
        let mut definitions = Definitions::new();
        let reference = of::<Thing>().define(&mut definitions.answers);
        assert_eq!(*reference.as_value(), json!({ "$ref": "#/definitions/shop.Thing" }));
        let all = definitions.finish();
        let (thing, properties) = (&all["shop.Thing"], &all["shop.Thing"]["properties"]);
        assert_eq!(thing["required"], json!(["name", "count", "maker", "ways"]));
        assert_eq!(
            properties["name"],
            json!({ "type": "string", "x-nullable": true, "description": "On two lines." })
        );
        assert_eq!(properties["count"]["format"], "int64");
        let maker = json!({ "allOf": [{ "$ref": "#/definitions/shop.Maker" }], "x-nullable": true });
        assert_eq!(properties["maker"], maker);
        let way = properties["ways"]["items"].as_object().unwrap();
        assert_eq!(way["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["by_air", "by_sea"]);
        assert!(!way.contains_key("oneOf") && !way.contains_key("required"));
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
