//! The committed OpenAPI document describes the endpoints, and its Swagger form too.

use std::path::Path;

use routing_api::ENDPOINTS;
use serde_json::Value;
use web::endpoint::Method;

#[test]
fn the_committed_document_is_the_one_that_is_served() {
    let document = routing_api::document(env!("CARGO_PKG_VERSION"));
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi/route.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(file, text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap();
    assert!(committed == text, "openapi/route.json is stale: run `UPDATE_GOLDEN=1 make test`");
}

#[test]
fn every_endpoint_that_does_something_is_described() {
    let document = routing_api::document("0");
    // A stream has no end, so clients of the paths would wait for it.
    let described = |path: &str| document["paths"].get(path).or_else(|| document["x-streams"].get(path));
    let endpoints: Vec<_> = ENDPOINTS.iter().copied().flatten().collect();
    for endpoint in &endpoints {
        let method = match endpoint.method {
            Method::Get => "get",
            Method::Post => "post",
        };
        let described = described(endpoint.path).is_some_and(|path| path.get(method).is_some());
        assert_eq!(described, !web::openapi::api_page::has(endpoint.path), "{method} {}", endpoint.path);
    }
}

#[test]
fn no_two_objects_share_a_name() {
    assert_eq!(web::openapi::name_conflicts(ENDPOINTS), [""; 0]);
}

#[test]
fn the_document_is_swagger_2_without_null_types_and_alternatives() {
    fn check(value: &Value, definitions: &Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    assert!(!["anyOf", "oneOf", "const", "$defs"].contains(&name.as_str()), "{value}");
                    if name == "$ref" {
                        let definition = member.as_str().unwrap().strip_prefix("#/definitions/").unwrap();
                        assert!(definitions.get(definition).is_some(), "{definition}");
                    }
                    assert!(name != "type" || !member.is_array(), "{value}");
                    check(member, definitions);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| check(item, definitions)),
            _ => {}
        }
    }
    let document = routing_api::swagger_document("0");
    assert!(document["paths"]["/v2/tx/submit"]["post"].is_object());
    check(&document, &document["definitions"]);
}
