//! Conversion of an OpenAPI 3.1 document to Swagger 2.0, which deployed clients read.
//!
//! Swagger 2.0 has no null type, no alternatives and one media type a response, so the result is coarser: a value that the
//! original accepts may not be described, and examples are left out.

use schemars::transform::{RecursiveTransform, RemoveRefSiblings, Transform as _};
use serde_json::{Map, Value, json};

use crate::reply::JSON;

/// The Swagger 2.0 form of `document`, a document of [`crate::openapi::document`].
pub fn document(document: &Value) -> Value {
    let mut paths = Map::new();
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(methods) {
            paths.entry(path).or_insert_with(|| json!({}))[method] = convert(document, operation);
        }
    }
    let definitions: Map<_, _> = members(&document["components"]["schemas"])
        .map(|(name, definition)| (name.clone(), schema(definition)))
        .collect();
    json!({
        "swagger": "2.0",
        "info": document["info"],
        "produces": [JSON],
        "tags": document["tags"],
        "paths": paths,
        "definitions": definitions,
    })
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn convert(document: &Value, operation: &Value) -> Value {
    let mut parameters: Vec<_> =
        operation["parameters"].as_array().into_iter().flatten().map(parameter).collect();
    let body = &operation["requestBody"]["content"][JSON]["schema"];
    if !body.is_null() {
        let definition = body["$ref"].as_str().and_then(|path| document.pointer(path.strip_prefix('#')?));
        let doc = definition.map_or(&Value::Null, |definition| &definition["description"]);
        parameters.push(json!({
            "name": "body", "in": "body", "required": true, "schema": schema(body), "description": doc,
        }));
    }
    let mut produces = Value::from(JSON);
    let mut responses = Map::new();
    for (status, response) in members(&operation["responses"]) {
        let shared = response["$ref"].as_str().and_then(|path| document.pointer(path.strip_prefix('#')?));
        let response = shared.unwrap_or(response);
        let mut converted = json!({ "description": response["description"] });
        if let Some((content_type, content)) = members(&response["content"]).next() {
            converted["schema"] = schema(&content["schema"]);
            if status == "200" {
                produces = content_type.as_str().into();
            }
        }
        responses.insert(status.clone(), converted);
    }
    json!({
        "operationId": operation["operationId"],
        "tags": operation["tags"],
        "summary": operation["summary"],
        "produces": [produces],
        "parameters": parameters,
        "responses": responses,
    })
}

/// A parameter has the keywords of its schema itself.
fn parameter(parameter: &Value) -> Value {
    let mut converted = parameter.as_object().cloned().unwrap_or_default();
    converted.remove("example");
    let Value::Object(mut schema) = schema(&converted.remove("schema").unwrap_or_default()) else {
        return converted.into();
    };
    if schema.get("type").is_some_and(|kind| kind == "array") {
        schema.insert("collectionFormat".into(), "multi".into());
    }
    if let Some(default) = parameter.pointer("/schema/default") {
        schema.insert("default".into(), default.clone());
    }
    // The description is the parameter's.
    schema.remove("description");
    converted.append(&mut schema);
    converted.into()
}

fn schema(original: &Value) -> Value {
    let Ok(mut schema) = schemars::Schema::try_from(original.clone()) else { return original.clone() };
    RecursiveTransform(coarsen).transform(&mut schema);
    RemoveRefSiblings::default().transform(&mut schema);
    schema.to_value()
}

/// Rewrites one schema, without those in it.
fn coarsen(schema: &mut schemars::Schema) {
    let schema = schema.ensure_object();
    schema.remove("default");
    if let Some(constant) = schema.remove("const") {
        schema.insert("enum".into(), json!([constant]));
    }
    for mut variant in schema.remove("anyOf").map(variants).unwrap_or_default() {
        if variant.get("type").is_some_and(|kind| kind == "null") {
            schema.insert("x-nullable".into(), true.into());
            continue;
        }
        // Of scalars, the first describes all; of objects, the members of all count, and none is required.
        let (scalar, first) = (!variant.contains_key("properties"), !schema.contains_key("type"));
        if scalar && !first {
            continue;
        }
        variant.remove("required");
        if let (Some(Value::Object(all)), Some(Value::Object(more))) =
            (schema.get_mut("properties"), variant.get_mut("properties"))
        {
            all.append(more);
        }
        variant.append(schema);
        schema.append(&mut variant);
    }
    // Also the reference of an alternative.
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        let all = kinds.len();
        kinds.retain(|kind| kind != "null");
        let nullable = kinds.len() < all;
        let kind = kinds.first().cloned().unwrap_or_default();
        schema.insert("type".into(), kind);
        if nullable {
            schema.insert("x-nullable".into(), true.into());
        }
    }
    if schema.get("type").is_some_and(|kind| kind == "integer") {
        schema.insert("format".into(), "int64".into());
    }
    if schema.get("additionalProperties").is_some_and(Value::is_boolean) {
        schema.remove("additionalProperties");
    }
}

fn variants(alternatives: Value) -> Vec<Map<String, Value>> {
    let Value::Array(alternatives) = alternatives else { return Vec::new() };
    alternatives.into_iter().filter_map(|variant| variant.as_object().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_types_and_alternatives_become_what_swagger_has() {
        let name = json!({ "type": ["string", "null"], "description": "A name." });
        assert_eq!(schema(&name), json!({ "type": "string", "x-nullable": true, "description": "A name." }));
        let maker = json!({ "anyOf": [{ "$ref": "#/components/schemas/shop.Maker" }, { "type": "null" }] });
        let reference = json!({ "$ref": "#/definitions/shop.Maker" });
        assert_eq!(schema(&maker), json!({ "allOf": [reference], "x-nullable": true }));
        let object = |name: &str| json!({ "type": "object", "properties": { name: {} }, "required": [name] });
        let way = schema(&json!({ "anyOf": [object("by_air"), object("by_sea")] }));
        assert_eq!(way["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["by_air", "by_sea"]);
        assert!(way.get("anyOf").is_none() && way.get("required").is_none(), "{way}");
    }

    #[test]
    fn the_first_scalar_alternative_describes_a_parameter() {
        let number = json!({ "type": "integer", "minimum": 1, "maximum": 1000 });
        let text = json!({ "type": "string", "pattern": "^[^0-9]", "description": "Counts as absent." });
        let original = json!({
            "name": "limit", "in": "query", "required": false, "description": "Rows.", "example": 3,
            "schema": { "anyOf": [number, text], "default": 100 },
        });
        assert_eq!(
            parameter(&original),
            json!({
                "name": "limit", "in": "query", "required": false, "description": "Rows.", "type": "integer",
                "format": "int64", "minimum": 1, "maximum": 1000, "default": 100,
            })
        );
        let address =
            json!({ "type": "string", "anyOf": [{ "type": "string", "pattern": "^0x" }, { "enum": ["a"] }] });
        assert_eq!(schema(&address), json!({ "type": "string" }));
    }
}
