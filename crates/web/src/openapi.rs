//! The OpenAPI 3.1 document of a list of endpoints.
//!
//! Paths, parameters and schemas come from the same values that routing and responses use. [`crate::openapi::swagger2`] converts
//! the document for clients of Swagger 2.0.

pub mod api_page;
mod definitions;
mod probes;
pub mod schema;
pub mod swagger2;

use schemars::JsonSchema as _;
use serde_json::{Map, Value, json};

use self::definitions::{Definitions, REFERENCE, second};
use crate::endpoint::{Endpoint, Handler, Method, Param, QueryParam, Type};
use crate::openapi::schema::ErrorResponse;
use crate::reply::JSON;

/// The texts of a document.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Name of the API.
    pub title: &'a str,
    /// One or two sentences.
    pub description: &'a str,
    /// Version of the program.
    pub version: &'a str,
    /// Names of operations (`GET /path/{name}`), where they have better ones than the method and the words of the path.
    pub names: &'a [(&'a str, &'a str)],
    /// Recorded requests with their responses: an array of objects with `operation` (`GET /path/{name}`), `parameters` (an
    /// object by name), `body` (of a `POST`) and `response`. Their values become the document's examples.
    pub examples: &'a Value,
}

/// A text that is not a decimal integer, or empty: Go's `strconv` refuses it, so such a parameter counts as absent.
const NOT_A_NUMBER: &str = r"^([^0-9+-][\s\S]*|[+-]?[0-9]+[^0-9][\s\S]*|[+-]([^0-9][\s\S]*)?)?$";

/// Where the document has the streams: a client made from `paths` waits for the end of a response, and theirs have none.
const STREAMS: &str = "x-streams";

/// The document of all endpoints whose path `keep` accepts, and of the health probes, which every server has. Paths are
/// written in full, from the root of the server that sends the document. Streams are under
/// `x-streams`, in the form of `paths`.
pub fn document<A>(about: &About<'_>, groups: &[&[Endpoint<A>]], keep: impl Fn(&str) -> bool) -> Value {
    let mut definitions = Definitions::new();
    let mut tags: Vec<&str> = Vec::new();
    let (mut paths, mut streams) = (Map::new(), Map::new());
    for endpoint in groups.iter().copied().flatten().filter(|endpoint| keep(endpoint.path)) {
        if !tags.contains(&endpoint.tag) {
            tags.push(endpoint.tag);
        }
        let part = if is_stream(endpoint) { &mut streams } else { &mut paths };
        part.entry(endpoint.path).or_insert_with(|| json!({}))[method(endpoint.method)] =
            operation(endpoint, &mut definitions, about);
    }
    paths.extend(probes::paths());
    if !tags.contains(&probes::TAG) {
        tags.push(probes::TAG);
    }
    let mut document = json!({
        "openapi": "3.1.1",
        "info": { "title": about.title, "description": about.description, "version": about.version },
        "servers": [{ "url": "/", "description": "The server that sent this document." }],
        "tags": tags.into_iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        "paths": paths,
        "components": { "responses": refusals(), "schemas": definitions.finish() },
    });
    if !streams.is_empty() {
        document[STREAMS] = streams.into();
    }
    document
}

fn is_stream<A>(endpoint: &Endpoint<A>) -> bool {
    matches!(endpoint.handler, Handler::Stream(_))
}

/// The names that two different objects of the endpoints share; a valid API has none.
pub fn name_conflicts<A>(groups: &[&[Endpoint<A>]]) -> Vec<String> {
    let mut definitions = Definitions::new();
    let nothing = About { title: "", description: "", version: "", names: &[], examples: &Value::Null };
    for endpoint in groups.iter().copied().flatten() {
        operation(endpoint, &mut definitions, &nothing);
    }
    let all = definitions.finish();
    all.keys().filter(|name| all.contains_key(&second(name))).cloned().collect()
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
    }
}

/// The refusals that several operations share, by name.
fn refusals() -> Value {
    const REFUSALS: [(&str, &str); 9] = [
        ("BadRequest", "A parameter or the body is malformed; the message names it."),
        ("NotFound", "There is no such thing."),
        ("MethodNotAllowed", "The path has other methods: those in `Allow`."),
        ("TooLarge", "The body is too large."),
        ("TooManyRequests", "Over a limit of requests; `Retry-After` has the seconds to wait."),
        ("Internal", "A fault of the server; its log has the details."),
        ("Unavailable", "The server is starting or overloaded; `Retry-After` has the seconds to wait."),
        ("Timeout", "Another machine did not answer in time."),
        ("Other", "Any other refusal."),
    ];
    let header = |description: &str, schema: Value| json!({ "description": description, "schema": schema });
    let mut all = Map::new();
    for (name, description) in REFUSALS {
        let schema = json!({ "$ref": format!("{REFERENCE}{}", ErrorResponse::schema_name()) });
        let mut value = json!({ "description": description, "content": { JSON: { "schema": schema } } });
        if matches!(name, "TooManyRequests" | "Unavailable") {
            value["headers"]["Retry-After"] = header("Seconds.", json!({ "type": "integer", "minimum": 0 }));
        }
        if name == "MethodNotAllowed" {
            value["headers"]["Allow"] = header("Methods.", json!({ "type": "string" }));
        }
        all.insert(name.to_owned(), value);
    }
    all.into()
}

fn operation<A>(endpoint: &Endpoint<A>, definitions: &mut Definitions, about: &About<'_>) -> Value {
    let method = method(endpoint.method);
    let wanted = format!("{} {}", method.to_uppercase(), endpoint.path);
    let examples = about.examples.as_array().map_or(&[][..], Vec::as_slice);
    let example =
        examples.iter().find(|example| example["operation"] == wanted.as_str()).unwrap_or(&Value::Null);

    let mut content = json!({ "schema": endpoint.response.define(&mut definitions.answers) });
    if !example["response"].is_null() {
        content["example"] = example["response"].clone();
    }
    let (content_type, description) = if is_stream(endpoint) {
        ("text/event-stream", "Server-sent events without an end; the data of each is this object.")
    } else {
        (endpoint.response.content_type(), "OK")
    };
    let mut contents = Map::from_iter([(content_type.to_owned(), content)]);
    if let Some(other) = endpoint.response.other_form() {
        let schema = other.define(&mut definitions.answers);
        contents.insert(other.content_type().to_owned(), json!({ "schema": schema }));
    }
    let mut responses = Map::new();
    responses.insert("200".into(), json!({ "description": description, "content": contents }));
    let mut refused = |status: &str, name: &str| {
        responses.insert(status.into(), json!({ "$ref": format!("#/components/responses/{name}") }));
    };
    refused("400", "BadRequest");
    if !endpoint.params.is_empty() {
        refused("404", "NotFound");
    }
    refused("405", "MethodNotAllowed");
    if endpoint.method == Method::Post {
        refused("413", "TooLarge");
    }
    refused("429", "TooManyRequests");
    refused("500", "Internal");
    refused("503", "Unavailable");
    if matches!(endpoint.handler, Handler::Async(_)) {
        refused("504", "Timeout");
    }
    refused("default", "Other");

    let name = about.names.iter().find(|(operation, _)| *operation == wanted);
    let mut value = json!({
        "operationId": name.map_or_else(|| operation_id(method, endpoint.path), |(_, name)| (*name).to_owned()),
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "responses": responses,
    });
    let parameters: Vec<_> = endpoint.params.iter().flat_map(|param| parameters(param, example)).collect();
    if !parameters.is_empty() {
        value["parameters"] = parameters.into();
    }
    for param in endpoint.params {
        let Param::Body(object) = param else { continue };
        let schema = object.define(&mut definitions.bodies);
        // An absent body is an empty object.
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix(REFERENCE));
        let defined = name.and_then(|name| definitions.bodies.definitions().get(name));
        let required = defined.is_none_or(|schema| schema.get("required").is_some());
        let mut content = json!({ "schema": schema });
        if !example["body"].is_null() {
            content["example"] = example["body"].clone();
        }
        value["requestBody"] = json!({ "required": required, "content": { JSON: content } });
    }
    value
}

/// The method and the words of the path: unique, because two operations differ in them.
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words).collect::<Vec<_>>().join("_")
}

fn parameters(param: &Param, example: &Value) -> Vec<Value> {
    let mut all = match param {
        Param::Path(path) => {
            let mut schema = schema(path.ty);
            if schema["type"] == "string" {
                schema["minLength"] = 1.into();
            }
            vec![json!({
                "name": path.name, "in": "path", "required": true, "description": path.doc, "schema": schema,
            })]
        }
        Param::Body(_) | Param::OldName(_) => Vec::new(),
        Param::Query(_) | Param::Required(_) | Param::Group(_) => {
            let required = matches!(param, Param::Required(_));
            param.queries().iter().map(|query| query_parameter(query, required)).collect()
        }
    };
    for parameter in &mut all {
        let recorded = parameter["name"].as_str().map_or(&Value::Null, |name| &example["parameters"][name]);
        if !recorded.is_null() {
            parameter["example"] = recorded.clone();
        }
    }
    all
}

fn query_parameter(param: &QueryParam, required: bool) -> Value {
    let mut schema = schema(param.ty);
    if required && schema["type"] == "string" {
        schema["minLength"] = 1.into();
    }
    if let Some(default) = param.default {
        let is_text =
            matches!(param.ty, Type::String | Type::Pattern(_) | Type::PatternOr(..) | Type::OneOf(_));
        // `100` and `true` are JSON literals; texts are not.
        let literal = (!is_text).then(|| serde_json::from_str(default).ok()).flatten();
        schema["default"] = literal.unwrap_or_else(|| default.into());
    }
    let mut value = json!({
        "name": param.name, "in": "query", "required": required, "description": param.doc, "schema": schema,
    });
    // See `Call::first`. The schemas of the other types accept an empty text.
    let refuses_empty = matches!(
        param.ty,
        Type::Pattern(_)
            | Type::PatternOr(..)
            | Type::Integer
            | Type::Between(..)
            | Type::Flag
            | Type::OneOf(_)
    );
    if !required && refuses_empty {
        value["allowEmptyValue"] = true.into();
    }
    value
}

fn schema(ty: Type) -> Value {
    match ty {
        Type::String => json!({ "type": "string" }),
        Type::Pattern(pattern) => json!({ "type": "string", "pattern": pattern }),
        Type::PatternOr(pattern, recorded) => json!({
            "type": "string",
            "anyOf": [
                { "type": "string", "pattern": pattern },
                {
                    "type": "string",
                    "enum": recorded,
                    "description": "Recorded values of a form that JSON Schema cannot describe; others are accepted too.",
                },
            ],
        }),
        Type::Integer => json!({ "type": "integer", "format": "int64" }),
        Type::Between(min, max) => {
            json!({ "type": "integer", "format": "int64", "minimum": min, "maximum": max })
        }
        Type::BetweenOrAbsent(min, max) => {
            let mut number = json!({ "type": "integer", "minimum": min });
            // The format is a bound too.
            if max < i64::MAX {
                number["maximum"] = max.into();
                number["format"] = "int64".into();
            }
            let absent =
                json!({ "type": "string", "pattern": NOT_A_NUMBER, "description": "Counts as absent." });
            json!({ "anyOf": [number, absent] })
        }
        Type::Boolean => json!({
            "anyOf": [
                { "type": "boolean" },
                {
                    "type": "string",
                    "description": "`1`, `t`, `T`, `TRUE` and `True` are true; `0`, `f`, `F`, `FALSE` and `False` are \
                                    false; another text counts as absent.",
                },
            ],
        }),
        Type::Flag => json!({ "type": "boolean" }),
        Type::OneOf(words) => json!({ "type": "string", "enum": words }),
        Type::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Type::TextsOf(pattern) => {
            json!({ "type": "array", "items": { "type": "string", "pattern": pattern } })
        }
    }
}
