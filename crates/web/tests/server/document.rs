//! The OpenAPI document of the shop, and its Swagger form.

use serde_json::{Value, json};
use web::openapi::About;

fn openapi(examples: &Value) -> Value {
    let about = About {
        title: "Shop",
        description: "Sells.",
        version: "1.2.3",
        names: &[("POST /till", "Pay")],
        examples,
    };
    web::openapi::document(&about, crate::shop::ENDPOINTS, |path| !path.starts_with("/slow"))
}

/// The Swagger form.
fn document() -> Value {
    web::openapi::swagger2::document(&openapi(&Value::Null))
}

#[test]
fn a_parameter_has_the_values_that_the_server_accepts() {
    let examples = json!([{
        "operation": "GET /shop/v1/items",
        "parameters": { "pagination.limit": 3 },
        "response": { "items": [] },
    }]);
    let document = openapi(&examples);
    assert_eq!(document["openapi"], "3.1.1");
    let operation = &document["paths"]["/shop/v1/items"]["get"];
    assert_eq!(operation["operationId"], "get_shop_v1_items");
    let parameters = operation["parameters"].as_array().unwrap();
    let limit = parameters.iter().find(|parameter| parameter["name"] == "pagination.limit").unwrap();
    assert_eq!((&limit["example"], &limit["schema"]["default"]), (&json!(3), &json!(100)));
    let [number, absent] = &limit["schema"]["anyOf"].as_array().unwrap()[..] else { panic!("{limit}") };
    assert_eq!((&number["minimum"], &number["maximum"]), (&json!(1), &json!(1000)));
    assert_eq!(absent["type"], "string");
    let offset = parameters.iter().find(|parameter| parameter["name"] == "pagination.offset").unwrap();
    assert_eq!(offset["schema"]["anyOf"][0].get("maximum"), None);
    let empty =
        |name| parameters.iter().find(|parameter| parameter["name"] == name).unwrap().get("allowEmptyValue");
    assert_eq!(
        (empty("order_by"), empty("kinds"), empty("pagination.reverse")),
        (Some(&json!(true)), None, None)
    );
    let answer = &operation["responses"]["200"]["content"]["application/json"];
    assert_eq!(answer["example"], json!({ "items": [] }));
    let path = &document["paths"]["/shop/v1/items/{name}"]["get"]["parameters"][0];
    assert_eq!(path["schema"], json!({ "type": "string", "minLength": 1 }));
}

#[test]
fn the_document_has_streams_apart_and_the_probes_and_names_of_operations() {
    let document = openapi(&Value::Null);
    assert_eq!(document["servers"][0]["url"], "/");
    assert_eq!(document["x-streams"].as_object().unwrap().keys().collect::<Vec<_>>(), ["/news/{count}"]);
    let news = &document["x-streams"]["/news/{count}"]["get"]["responses"]["200"]["content"];
    assert_eq!(news.as_object().unwrap().keys().collect::<Vec<_>>(), ["text/event-stream"]);
    let of = |path: &str, method: &str| document["paths"][path][method]["operationId"].clone();
    assert_eq!((of("/till", "post"), of("/till", "get")), (json!("Pay"), json!("get_till")));
    for (path, statuses) in [("/healthz", vec!["200", "405"]), ("/readyz", vec!["200", "405", "503"])] {
        let responses = document["paths"][path]["get"]["responses"].as_object().unwrap();
        assert_eq!(responses.keys().collect::<Vec<_>>(), statuses, "{path}");
        let (app, _) = crate::shop::app();
        let body = std::str::from_utf8(app.get(path).body()).unwrap().to_owned();
        assert_eq!(responses["200"]["content"]["text/plain"]["schema"]["const"], body);
    }
}

#[test]
fn every_refusal_is_documented() {
    let document = openapi(&Value::Null);
    let responses = &document["paths"]["/shop/v1/items/{name}"]["get"]["responses"];
    for status in ["400", "404", "405", "429", "500", "503", "default"] {
        let shared = responses[status]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
        let schema = &document.pointer(shared).unwrap()["content"]["application/json"]["schema"];
        assert_eq!(schema["$ref"], "#/components/schemas/common.ErrorResponse");
    }
    assert!(document["paths"]["/till"]["post"]["responses"].get("413").is_some());
}

#[test]
fn every_kept_path_is_written_in_full() {
    let document = document();
    assert_eq!(document["swagger"], "2.0");
    assert_eq!(document["info"], json!({ "title": "Shop", "description": "Sells.", "version": "1.2.3" }));
    let paths = document["paths"].as_object().unwrap();
    let mut expected: Vec<_> =
        crate::shop::ENDPOINTS.iter().copied().flatten().map(|endpoint| endpoint.path).collect();
    // Clients wait for the end of a response, and a stream has none.
    expected.retain(|path| !["/slow", "/news/{count}"].contains(path));
    expected.extend(["/healthz", "/readyz"]);
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(paths.keys().collect::<Vec<_>>(), expected);
    assert_eq!(paths["/till"].as_object().unwrap().keys().collect::<Vec<_>>(), ["get", "post"]);
    assert_eq!(
        document["tags"],
        json!([{ "name": "Shop" }, { "name": "Warehouse" }, { "name": "Till" }, { "name": "Courier" }, { "name": "App" }])
    );
}

#[test]
fn parameters_have_their_type_and_default() {
    let document = document();
    let parameters = document["paths"]["/shop/v1/items"]["get"]["parameters"].as_array().unwrap().clone();
    let named = |name: &str| parameters.iter().find(|parameter| parameter["name"] == name).unwrap();
    assert_eq!(parameters.len(), 7);
    assert_eq!(named("pagination.limit")["default"], 100);
    assert_eq!(named("pagination.limit")["type"], "integer");
    assert_eq!(named("pagination.reverse")["default"], true);
    assert_eq!(named("pagination.key").get("default"), None);
    assert_eq!(named("kinds")["type"], "array");
    assert_eq!(named("kinds")["collectionFormat"], "multi");
    assert_eq!(named("order_by")["enum"], json!(["name", "price"]));
    assert_eq!(named("order_by")["default"], "name");
    let path = &document["paths"]["/shop/v1/items/{name}"]["get"]["parameters"][0];
    assert_eq!((&path["in"], &path["required"]), (&json!("path"), &json!(true)));
}

#[test]
fn every_reference_has_its_definition() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 10);
    for reference in found {
        let name = reference.strip_prefix("#/definitions/").unwrap();
        assert!(document["definitions"].get(name).is_some(), "{name}");
    }
    assert_eq!(web::openapi::name_conflicts(crate::shop::ENDPOINTS), [""; 0]);
}

#[test]
fn cursors_can_be_null_and_errors_are_documented() {
    let document = document();
    let page = &document["definitions"]["common.PaginationResponse"]["properties"];
    assert_eq!(page["next_key"]["x-nullable"], true);
    assert_eq!(page["total"].get("x-nullable"), None);
    let item = &document["definitions"]["shop.Item"]["properties"];
    assert_eq!(item["maker"]["allOf"][0]["$ref"], "#/definitions/shop.Maker");
    assert_eq!(item["maker"]["x-nullable"], true);
    let responses = &document["paths"]["/shop/v1/items/{name}"]["get"]["responses"];
    for status in ["400", "404", "default"] {
        assert_eq!(responses[status]["schema"]["$ref"], "#/definitions/common.ErrorResponse");
    }
}
