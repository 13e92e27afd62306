//! An app behind another one, and handlers that run without a socket.

use std::net::TcpListener;
use std::sync::Arc;

use http::header::CONTENT_SECURITY_POLICY;
use http::{HeaderMap, HeaderValue, Method};
use web::app::App;
use web::endpoint::{Endpoint, Handler, MaxAge, Param};
use web::limits::Limits;
use web::openapi::schema::Document;
use web::reply::Reply;
use web::serve::server::Server;

use crate::socket::Socket;

const fn page(path: &'static str, params: &'static [Param], handler: Handler<()>) -> Endpoint<()> {
    Endpoint {
        method: web::endpoint::Method::Get,
        path,
        tag: "Pages",
        summary: "A page.",
        params,
        response: &Document("A page."),
        handler,
        cache: MaxAge::LIST,
    }
}

static PAGES: &[&[Endpoint<()>]] = &[&[
    page("/", &[], Handler::Sync(|(), _| Ok(Reply::json("\"home\"")))),
    page("/later", &[], Handler::Async(|(), _| Box::pin(async { Ok(Reply::json("\"later\"")) }))),
    page("/till", &[], Handler::Sync(|(), _| Ok(Reply::json("\"never\"")))),
    page(
        "/shop/{name}",
        &[Param::path("name", "")],
        Handler::Sync(|(), call| Ok(Reply::json(format!("{:?}", call.text("name"))))),
    ),
]];

/// The shop, with pages behind it.
fn open() -> Server {
    let policy = HeaderValue::from_static("default-src 'self'");
    let headers = HeaderMap::from_iter([(CONTENT_SECURITY_POLICY, policy)]);
    let pages = App::new((), PAGES).unwrap().with_headers(headers);
    let (shop, _slow) = crate::shop::app();
    let app = Arc::new(shop.with_fallback(Arc::new(pages)));
    Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), app, Limits::default(), 2).unwrap()
}

#[test]
fn the_second_app_answers_only_paths_that_the_first_one_lacks() {
    let server = open();
    let mut client = Socket::open(server.address());
    for (target, text) in
        [("/", "\"home\""), ("/later", "\"later\""), ("/shop/tea", "\"tea\""), ("/till", r#"["till"]"#)]
    {
        let answer = client.get(target);
        assert_eq!((answer.status, answer.text()), (200, text), "{target}");
        // The headers of the second app are on its own responses.
        assert_eq!(answer.header("content-security-policy").is_some(), target != "/till", "{target}");
        assert!(answer.header("etag").is_some(), "{target}");
    }
    assert_eq!(client.request("HEAD", "/later", "").header("content-length"), Some("7"));
}

#[test]
fn errors_of_paths_and_methods_stay_json() {
    let server = open();
    let mut client = Socket::open(server.address());
    let missing = client.get("/nowhere");
    assert_eq!(missing.status, 404);
    assert_eq!(missing.text(), r#"{"code":5,"message":"Cannot GET /nowhere","details":[]}"#);
    assert_eq!(missing.header("content-security-policy"), None);
    let of_the_second = client.request("DELETE", "/later", "");
    assert_eq!((of_the_second.status, of_the_second.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    let of_the_first = client.request("DELETE", "/courier", "");
    assert_eq!((of_the_first.status, of_the_first.header("allow")), (405, Some("GET, HEAD, POST, OPTIONS")));
    assert_eq!(client.get("/healthz").status, 200);
}

#[test]
fn a_handler_that_runs_without_a_socket_returns_the_body_of_its_response() {
    let (app, _slow) = crate::shop::app();
    for target in ["/till", "/shop/v1/items?pagination.limit=7&kinds=a&kinds=b", "/shop/v1/items/a%20b"] {
        let read = app.read(target).unwrap();
        assert_eq!(read.body, app.get(target).body(), "{target}");
    }
    for (target, status) in
        [("/missing", 404), ("/nowhere", 404), ("/broken", 500), ("/panics", 500), ("/courier", 500)]
    {
        assert_eq!(app.read(target).unwrap_err().status(), status, "{target}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let later = |method, target, body| runtime.block_on(app.read_later(method, target, body, None));
    assert_eq!(later(Method::POST, "/courier", b"box").unwrap().body, r#"["brought","box"]"#);
    assert_eq!(later(Method::POST, "/till", b"coin").unwrap().body, r#"["coin"]"#);
    assert_eq!(later(Method::GET, "/till", b"").unwrap().body, r#"["till"]"#);
    assert_eq!(later(Method::GET, "/faints", b"").unwrap_err().status(), 500);
    assert_eq!(later(Method::DELETE, "/till", b"").unwrap_err().status(), 404);
}
