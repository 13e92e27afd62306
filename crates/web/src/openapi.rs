//! The Swagger 2.0 document of a list of endpoints.
//!
//! Paths, parameters and definitions come from the same values that routing and responses use.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::endpoint::{Endpoint, Method, Param, QueryParam, Type};
use crate::reply::JSON;
use crate::schema::{ERROR_RESPONSE, Field, Kind, Schema};

/// The document of all endpoints whose path `keep` accepts. Paths are written in full; there is no host and no
/// base path, because the server works wherever it is mounted.
pub fn document<A>(
    title: &str,
    description: &str,
    version: &str,
    groups: &[&[Endpoint<A>]],
    keep: impl Fn(&str) -> bool,
) -> Value {
    let kept: Vec<_> = groups.iter().copied().flatten().filter(|endpoint| keep(endpoint.path)).collect();
    let mut tags: Vec<&str> = Vec::new();
    let mut paths = Map::new();
    for endpoint in &kept {
        if !tags.contains(&endpoint.tag) {
            tags.push(endpoint.tag);
        }
        paths.entry(endpoint.path).or_insert_with(|| json!({}))[method(endpoint.method)] =
            operation(endpoint);
    }
    let definitions: Map<_, _> =
        definitions(&kept).into_iter().map(|(name, schema)| (name.to_owned(), definition(schema))).collect();
    json!({
        "swagger": "2.0",
        "info": { "title": title, "description": description, "version": version },
        "produces": [JSON],
        "tags": tags.into_iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        "paths": paths,
        "definitions": definitions,
    })
}

/// The names that two different objects of the endpoints have; a sound API has none.
pub fn name_conflicts<A>(groups: &[&[Endpoint<A>]]) -> Vec<&'static str> {
    let endpoints: Vec<_> = groups.iter().copied().flatten().collect();
    let known = definitions(&endpoints);
    let mut conflicts = Vec::new();
    for endpoint in endpoints {
        each_of(endpoint, &mut |schema| {
            if definition(schema) != definition(known[schema.name]) && !conflicts.contains(&schema.name) {
                conflicts.push(schema.name);
            }
        });
    }
    conflicts
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
    }
}

fn operation<A>(endpoint: &Endpoint<A>) -> Value {
    let parameters: Vec<_> = endpoint.params.iter().flat_map(parameters).collect();
    let refusal =
        |description: &str| json!({ "description": description, "schema": reference(&ERROR_RESPONSE) });
    let mut responses = Map::new();
    responses.insert("200".into(), json!({ "description": "OK", "schema": reference(endpoint.response) }));
    if !endpoint.params.is_empty() {
        responses.insert("400".into(), refusal("A parameter is malformed; the message names it."));
    }
    if endpoint.params.iter().any(|param| matches!(param, Param::Path(_))) {
        responses.insert("404".into(), refusal("There is no such thing."));
    }
    responses.insert("default".into(), refusal("Any other refusal."));
    json!({
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "produces": [JSON],
        "parameters": parameters,
        "responses": responses,
    })
}

fn parameters(param: &Param) -> Vec<Value> {
    match param {
        Param::Path(path) => vec![json!({
            "name": path.name, "in": "path", "required": true, "type": "string", "description": path.doc,
        })],
        Param::Body(schema) => vec![json!({
            "name": "body", "in": "body", "required": true, "schema": reference(schema), "description": schema.doc,
        })],
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

fn definitions<A>(endpoints: &[&Endpoint<A>]) -> BTreeMap<&'static str, &'static Schema> {
    let mut found = BTreeMap::from([(ERROR_RESPONSE.name, &ERROR_RESPONSE)]);
    for endpoint in endpoints {
        each_of(endpoint, &mut |schema| {
            found.entry(schema.name).or_insert(schema);
        });
    }
    found
}

/// Visits every object of an endpoint: those of its answer, and of its body.
fn each_of<A>(endpoint: &Endpoint<A>, visit: &mut impl FnMut(&'static Schema)) {
    each_schema(endpoint.response, &mut Vec::new(), visit);
    for param in endpoint.params {
        if let Param::Body(schema) = param {
            each_schema(schema, &mut Vec::new(), visit);
        }
    }
}

/// Visits an object and all it refers to. `above` keeps an object that holds itself from being visited for ever.
fn each_schema(
    schema: &'static Schema,
    above: &mut Vec<&'static Schema>,
    visit: &mut impl FnMut(&'static Schema),
) {
    if above.iter().any(|other| std::ptr::eq(*other, schema)) {
        return;
    }
    visit(schema);
    above.push(schema);
    for Field { kind, .. } in schema.fields {
        let mut kind = kind;
        while let Kind::Array(item) = kind {
            kind = item;
        }
        if let Kind::Object(inner) = kind {
            each_schema(inner, above, visit);
        }
    }
    above.pop();
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
    // Siblings of `$ref` are ignored (JSON Reference §3), so `allOf` wraps the reference.
    if value.get("$ref").is_some() && (field.nullable || !field.doc.is_empty()) {
        value = json!({ "allOf": [value] });
    }
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
        Kind::Object(schema) => reference(schema),
        Kind::Array(item) => json!({ "type": "array", "items": kind(item) }),
    }
}

fn reference(schema: &Schema) -> Value {
    json!({ "$ref": format!("#/definitions/{}", schema.name) })
}
