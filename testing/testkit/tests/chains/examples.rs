//! Examples of the OpenAPI document that the recorded chain of the demo does not have.

use query::Indexer;
use serde_json::{Map, Value, json};
use web::app::App;

use crate::transfers::get;

/// The example of a path, with parameters as in a query string.
pub(crate) fn of(app: &App<Indexer>, path: &str, parameters: &str) -> Value {
    let (mut target, mut query, mut named) = (path.to_owned(), Vec::new(), Map::new());
    for (name, value) in parameters.split('&').filter_map(|pair| pair.split_once('=')) {
        if target.contains(&format!("{{{name}}}")) {
            target = target.replace(&format!("{{{name}}}"), value);
        } else {
            query.push(format!("{name}={value}"));
        }
        let value = value.parse::<u64>().map_or_else(|_| json!(value), |number| json!(number));
        named.insert(name.to_owned(), value);
    }
    let response = get(app, &format!("{target}?{}", query.join("&")));
    json!({ "operation": format!("GET {path}"), "parameters": named, "response": response })
}

/// Compares the examples with those of a file of the crate `query`.
pub(crate) fn compare(file: &str, expected: &[Value]) {
    let file = format!("{}/../../query/src/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, serde_json::to_string_pretty(expected).unwrap() + "\n").unwrap();
    }
    let examples: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(examples, expected, "run with UPDATE_GOLDEN=1");
}
