//! Otterscan's files from a folder, and the methods as it calls them.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use evm_rpc::{Dialect, EvmRpc, Otterscan, Unusable};
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use web::app::App;

/// A folder as the build makes it.
fn build() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("assets")).unwrap();
    for (name, content) in [
        ("index.html", "<!doctype html><title>pages</title>"),
        ("config.json", r#"{"erigonURL":"http://elsewhere"}"#),
        ("assets/index-1a2b.js", "export {};"),
        ("assets/index-1a2b.js.br", "not served"),
        ("assets/font-3c.woff2", "wOF2"),
        ("robots.txt", "User-agent: *"),
    ] {
        fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

async fn app(folder: &Path) -> App<EvmRpc> {
    static INDEX: OnceCell<evm_rpc::Index> = OnceCell::const_new();
    let open = || async {
        let indexer = super::index("evm-scenario").await;
        Arc::new(OnceLock::from(Arc::new(App::new(indexer, query::ENDPOINTS).unwrap())))
    };
    let index = Arc::clone(INDEX.get_or_init(open).await);
    let pages = Otterscan::read(folder, Some("GAS".to_owned())).unwrap();
    let rpc = EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0.0.0").with_otterscan(Some(pages));
    rpc.app().unwrap()
}

/// The response to `GET path`, from a script or from the address bar.
fn get(app: &App<EvmRpc>, path: &str, accept: &str) -> Response<Bytes> {
    let request = Request::builder().uri(path).header("accept", accept).header("host", "ots.example:8546");
    app.respond(&request.body(()).unwrap().into_parts().0, b"")
}

fn header<'r>(response: &'r Response<Bytes>, name: &str) -> &'r str {
    response.headers()[name].to_str().unwrap()
}

const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

#[tokio::test(flavor = "multi_thread")]
async fn files_have_their_types_and_routes_are_the_first_page() {
    let dir = build();
    let app = app(dir.path()).await;
    for (path, content_type, age) in [
        ("/", "text/html; charset=utf-8", "1"),
        ("/index.html", "text/html; charset=utf-8", "1"),
        ("/assets/index-1a2b.js", "text/javascript; charset=utf-8", "31536000"),
        ("/assets/font-3c.woff2", "font/woff2", "31536000"),
        ("/robots.txt", "text/plain; charset=utf-8", "1"),
    ] {
        let response = get(&app, path, "*/*");
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(header(&response, "content-type"), content_type, "{path}");
        assert_eq!(header(&response, "cache-control"), format!("public, max-age={age}"), "{path}");
    }
    let policy = header(&get(&app, "/", BROWSER), "content-security-policy").to_owned();
    assert!(policy.starts_with("default-src 'self'") && !policy.contains("http"), "{policy}");
    let first = get(&app, "/", "*/*").into_body();
    for route in ["/block/20", "/tx/0x12/logs", "/address/0xab/txs/prev", "/block/20/tx/1"] {
        assert_eq!(get(&app, route, BROWSER).into_body(), first, "{route}");
        // A script takes any text for what it has asked for.
        assert_eq!(get(&app, route, "*/*").status(), StatusCode::NOT_FOUND, "{route}");
    }
    for missing in
        ["/assets/gone.js", "/favicon.ico", "/assets/index-1a2b.js.br", "/a/b/c/d/e", "/signatures/x.y"]
    {
        assert_eq!(get(&app, missing, BROWSER).status(), StatusCode::NOT_FOUND, "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_out_of_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let dir = build();
    let app = app(dir.path()).await;
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    for path in [
        format!("/../{name}/secret"),
        format!("/%2e%2e/{name}/secret"),
        format!("/..%2f{name}%2fsecret"),
        format!("/assets/..%5c..%5c{name}"),
        "/assets/../index.html".to_owned(),
        format!("/%2f{}", outside.path().join("secret").display()),
        "/etc/passwd".to_owned(),
        "/assets/%00".to_owned(),
        "/assets/".to_owned(),
    ] {
        let response = get(&app, &path, "*/*");
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
    std::os::unix::fs::symlink(outside.path().join("secret"), dir.path().join("assets/link")).unwrap();
    assert!(
        matches!(Otterscan::read(dir.path(), None), Err(Unusable::NotPlain(path)) if path.ends_with("assets/link"))
    );
    fs::remove_file(dir.path().join("assets/link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("more")).unwrap();
    assert!(
        matches!(Otterscan::read(dir.path(), None), Err(Unusable::NotPlain(path)) if path.ends_with("more"))
    );
}

#[test]
fn a_folder_that_is_no_build_or_too_large_is_refused() {
    let dir = build();
    assert!(matches!(Otterscan::read(&dir.path().join("none"), None), Err(Unusable::Unreadable(..))));
    assert!(matches!(Otterscan::read(&dir.path().join("assets"), None), Err(Unusable::NoIndex(_))));
    let deep = dir.path().join("1/2/3/4");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file"), "").unwrap();
    assert!(matches!(Otterscan::read(dir.path(), None), Err(Unusable::TooMuch(_))));
    fs::remove_dir_all(dir.path().join("1")).unwrap();
    assert!(Otterscan::read(dir.path(), None).is_ok());
    let large = fs::File::create(dir.path().join("large.bin")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    assert!(matches!(Otterscan::read(dir.path(), None), Err(Unusable::TooMuch(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_names_the_address_that_the_browser_has_opened() {
    let dir = build();
    let app = app(dir.path()).await;
    let config: Value = serde_json::from_slice(get(&app, "/config.json", "*/*").body()).unwrap();
    assert_eq!(config["erigonURL"], "http://ots.example:8546/");
    assert_eq!(
        config["chainInfo"]["nativeCurrency"],
        json!({ "name": "GAS", "symbol": "GAS", "decimals": 18 })
    );
    assert_eq!(config["chainInfo"]["name"], "e2e-evm-1");
    assert_eq!(config["sourcify"]["sources"]["cairn"]["url"], "http://ots.example:8546/sourcify");
    let request = Request::builder()
        .uri("/config.json")
        .header("host", "ots.example")
        .header("x-forwarded-proto", "https");
    let response = app.respond(&request.body(()).unwrap().into_parts().0, b"");
    let config: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(config["erigonURL"], "https://ots.example/");
    let response = app.respond(&Request::builder().uri("/config.json").body(()).unwrap().into_parts().0, b"");
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

async fn call(app: &App<EvmRpc>, method: &str, params: Value) -> Value {
    let request = Request::builder().method("POST").uri("/").header("content-type", "application/json");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let response = app.respond_later(&request.body(()).unwrap().into_parts().0, body.as_bytes()).await;
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_numbers_of_json_or_hex_and_sizes_have_limits() {
    let dir = build();
    let app = app(dir.path()).await;
    assert_eq!(call(&app, "ots_getApiLevel", json!([])).await["result"], 8);
    let zero = "0x0000000000000000000000000000000000000000";
    let (number, hex) = (json!([20]), json!(["0x14"]));
    for method in ["ots_getBlockDetails", "erigon_getHeaderByNumber"] {
        let found = call(&app, method, number.clone()).await["result"].clone();
        assert!(found.is_object() && found == call(&app, method, hex.clone()).await["result"], "{found}");
        assert!(call(&app, method, json!([1_000_000])).await["result"].is_null());
        assert!(call(&app, method, json!(["latest"])).await["result"].is_object());
    }
    let details = call(&app, "ots_getBlockDetails", number).await["result"].clone();
    let by_hash = call(&app, "ots_getBlockDetailsByHash", json!([details["block"]["hash"]])).await;
    assert_eq!(by_hash["result"], details);
    for (method, params, message) in [
        ("ots_searchTransactionsBefore", json!([zero, 0, 26]), "max allowed page size: 25"),
        ("ots_searchTransactionsAfter", json!([zero, 0, 65_536]), "max allowed page size: 25"),
        ("ots_getBlockTransactions", json!([20, 0, 256]), "max allowed page size: 255"),
        ("ots_searchTransactionsBefore", json!([zero, 0]), "missing value for required argument 2"),
        (
            "ots_searchTransactionsBefore",
            json!(["0x12", 0, 25]),
            "invalid argument 0: hex string has length 2, want 40 for common.Address",
        ),
        (
            "ots_searchTransactionsBefore",
            json!([zero, -1, 25]),
            "invalid argument 1: json: cannot unmarshal number into Go value of type uint64",
        ),
        (
            "ots_traceTransaction",
            json!([format!("0x{:064}", 1)]),
            "transaction 0x0000000000000000000000000000000000000000000000000000000000000001 not found",
        ),
    ] {
        let reply = call(&app, method, params.clone()).await;
        assert_eq!(reply["error"]["message"], message, "{method} {params}");
    }
    for params in [json!([zero]), json!([zero, "latest"]), json!([zero, 5]), json!([zero, null])] {
        assert_eq!(call(&app, "ots_hasCode", params).await["result"], false);
    }
}
