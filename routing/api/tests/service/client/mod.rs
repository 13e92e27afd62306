//! A client of a routing service in the same process: it calls the server's handler directly, without a socket.

#![allow(dead_code, reason = "each test takes what it needs of it")]

pub(crate) mod fixture;
pub(crate) mod recorded;
pub(crate) mod signing;
pub(crate) mod socket;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use registry::{Endpoints, Registry};
use routing_api::{Config, Service};
use serde_json::{Value, json};
use tempfile::TempDir;
use web::app::App;

/// An account on the chains of the worked examples, in the format of each kind of chain.
pub(crate) const USER: &str = "init1fvl35tzadelcpydzk0zdtehhpqgjyv6y7wrwu0";
pub(crate) const USER_HEX: &str = "0x4b3f1a2c5d6e7f8091a2b3c4d5e6f70811223344";

/// Timeout of a node query in these tests.
pub(crate) const ASK: Duration = Duration::from_secs(2);

/// A service with a client.
pub(crate) struct Client {
    pub(crate) app: Arc<App<Service>>,
    _data: TempDir,
}

/// A response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    /// A service over a registry and its nodes.
    pub(crate) fn over(registry: Registry) -> Self {
        Self::with(registry, Config { query_timeout: ASK, ..Config::default() })
    }

    /// A service with other settings.
    pub(crate) fn with(registry: Registry, config: Config) -> Self {
        let data = tempfile::tempdir().unwrap();
        let service = Service::open(registry, data.path(), config, "0.0.0").unwrap();
        Self { app: Arc::new(App::new(service, routing_api::ENDPOINTS).unwrap()), _data: data }
    }

    /// A service over the chains of the worked examples, whose nodes are unreachable.
    pub(crate) fn mainnet() -> Self {
        Self::over(mainnet().with_endpoints(|_| Some(Endpoints::default())))
    }

    /// The same, which rejects unknown members.
    pub(crate) fn strict() -> Self {
        let config = Config { query_timeout: ASK, strict: true, ..Config::default() };
        Self::with(mainnet().with_endpoints(|_| Some(Endpoints::default())), config)
    }

    pub(crate) fn service(&self) -> &Service {
        self.app.state()
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.send(Method::GET, target, &[], b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: &str) -> Answer {
        self.send(Method::POST, path, &[("content-type", "application/json")], body.as_bytes()).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let response = self.app.respond_later(&parts, body).await;
        let (parts, body) = response.into_parts();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}

impl Answer {
    /// The body of a success.
    pub(crate) fn ok(&self) -> Value {
        let body = self.json();
        assert_eq!(self.status, 200, "{body}");
        body
    }

    pub(crate) fn json(&self) -> Value {
        let kind = self.headers.get("content-type").map(|kind| kind.to_str().unwrap());
        assert!(kind.is_some_and(|kind| kind.contains("application/json")), "{kind:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Status, code and message of a refusal, whose only other members are `details` and possibly `info`.
    pub(crate) fn refusal(&self) -> (u16, u64, String) {
        let body = self.json();
        let members: Vec<_> = body.as_object().unwrap().keys().filter(|name| *name != "info").collect();
        assert_eq!(members, ["code", "details", "message"], "{body}");
        assert!(self.status >= 400 && body["details"].is_array(), "{} {body}", self.status);
        let message = body["message"].as_str().unwrap();
        assert!(!message.is_empty());
        (self.status, body["code"].as_u64().unwrap(), message.to_owned())
    }
}

pub(crate) fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The chains of the worked examples, from their file.
pub(crate) fn mainnet() -> Registry {
    let loaded = registry::load(&here("tests/mainnet")).unwrap();
    assert_eq!(loaded.problems, []);
    loaded.registry
}

/// A valid body for every endpoint whose body does not depend on another response.
pub(crate) fn questions() -> Vec<(&'static str, Value)> {
    let wish = json!({ "source_asset_denom": "uinit", "source_asset_chain_id": "interwoven-1", "dest_chain_id": "yominet-1" });
    vec![
        ("/op-hook", example("op-hook-request")),
        ("/v2/info/balances", example("balances-request")),
        ("/v2/tx/track", example("track-request")),
        ("/v2/fungible/assets_from_source", example("assets-from-source-request")),
        (
            "/v2/fungible/assets_between_chains",
            json!({ "source_chain_id": "interwoven-1", "dest_chain_id": "1" }),
        ),
        (
            "/v2/fungible/ibc_origin_assets",
            json!({ "assets": [{ "denom": "uinit", "chain_id": "interwoven-1" }] }),
        ),
        ("/v2/fungible/recommend_assets", json!({ "requests": [wish] })),
    ]
}

/// A worked example of `examples/`.
pub(crate) fn example(name: &str) -> Value {
    let text = std::fs::read_to_string(here(&format!("tests/examples/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}
