//! The health probes, which every server answers without an endpoint (see [`crate::health`]).

use serde_json::{Map, Value, json};

/// Their group.
pub(super) const TAG: &str = "App";

/// The paths.
pub(super) fn paths() -> Map<String, Value> {
    let refused = |name: &str| json!({ "$ref": format!("#/components/responses/{name}") });
    let ok = json!({
        "description": "OK",
        "content": { "text/plain": { "schema": { "type": "string", "const": "ok" } } },
    });
    let probe = |name: &str, summary: &str, responses: Value| json!({ "get": { "operationId": name, "tags": [TAG], "summary": summary, "responses": responses } });
    let method = refused("MethodNotAllowed");
    let live = json!({ "200": ok, "405": method });
    let ready = json!({ "200": ok, "405": method, "503": refused("Unavailable") });
    let mut paths = Map::new();
    paths.insert("/healthz".into(), probe("CheckLiveness", "Whether the process answers.", live));
    paths.insert(
        "/readyz".into(),
        probe("CheckReadiness", "Whether requests can be sent to it: else the reason.", ready),
    );
    paths
}
