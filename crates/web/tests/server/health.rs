//! `/healthz` and `/readyz`: their replies, which no limit prevents.

use std::net::TcpListener;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::socket::Socket;
use web::app::App;
use web::endpoint::{Endpoint, Handler, MaxAge, Method};
use web::limits::{Limits, Rate};
use web::openapi::schema::Document;
use web::reply::Reply;
use web::router::RouteError;
use web::serve::server::Server;

#[test]
fn a_server_that_answers_is_alive_and_by_default_ready() {
    let (app, _slow) = crate::shop::app();
    for path in ["/healthz", "/readyz", "/Readyz/", "/healthz?from=probe"] {
        let answer = app.get(path);
        assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (200, b"ok".as_slice()), "{path}");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(answer.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(answer.headers()["access-control-allow-origin"], "*");
    }
    assert_eq!(app.get("/healthz/more").status(), 404);
}

#[test]
fn not_ready_is_503_with_the_reason_until_it_is() {
    let (app, _slow) = crate::shop::app();
    let ready = Arc::new(AtomicBool::new(false));
    let is_ready = Arc::clone(&ready);
    let app = app.with_ready(move || {
        let shelves = is_ready.load(Ordering::Relaxed);
        shelves.then_some(()).ok_or_else(|| "the shelves are empty".to_owned())
    });
    let answer = app.get("/readyz");
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.body(), r#"{"code":14,"message":"not ready: the shelves are empty","details":[]}"#);
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(app.get("/healthz").status(), 200);
    ready.store(true, Ordering::Relaxed);
    assert_eq!(app.get("/readyz").status(), 200);
}

#[test]
fn a_check_that_panics_is_not_ready() {
    let (app, _slow) = crate::shop::app();
    let app = app.with_ready(|| panic!("on purpose"));
    assert_eq!(app.get("/readyz").status(), 503);
    assert_eq!(app.get("/healthz").status(), 200);
}

#[test]
fn only_reading_is_allowed() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut client = Socket::open(server.address());
    let head = client.request("HEAD", "/healthz", "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("2")));
    let options = client.request("OPTIONS", "/readyz", "");
    assert_eq!((options.status, options.header("allow")), (204, Some("GET, HEAD, OPTIONS")));
    let post = client.request("POST", "/readyz", "");
    assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    client.send("POST /healthz HTTP/1.1\r\nhost: h\r\ncontent-length: 100000\r\n\r\n");
    assert_eq!(client.response(false).status, 405, "its body is not waited for");
}

#[test]
fn probes_are_answered_beyond_every_limit() {
    let once = NonZeroU32::MIN;
    let rate = Some(Rate { per_second: once, burst: once });
    let (app, _slow) = crate::shop::app();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let limits = Limits { requests: 0, per_client: rate, ..Limits::default() };
    let server = Server::start(listener, Arc::new(app), limits, 2).unwrap();
    let mut client = Socket::open(server.address());
    let statuses: Vec<_> = (0..2).map(|_| client.get("/till").status).collect();
    assert_eq!(statuses, [503, 429]);
    for path in ["/healthz", "/readyz", "/healthz", "/readyz"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
}

static NOTHING: Document = Document("Nothing.");

static ILL: &[&[Endpoint<()>]] = &[&[Endpoint {
    method: Method::Get,
    path: "/Healthz",
    tag: "",
    summary: "",
    params: &[],
    response: &NOTHING,
    handler: Handler::Sync(|(), _| Ok(Reply::json("{}"))),
    cache: MaxAge::LIST,
}]];

#[test]
fn no_endpoint_may_have_their_path() {
    assert_eq!(App::new((), ILL).err(), Some(RouteError::Taken("/Healthz")));
}

#[test]
fn a_starting_server_answers_every_path_with_the_reason() {
    let app = App::starting(|| Err("waiting for the node".to_owned())).unwrap();
    for path in ["/status", "/readyz", "/no/such/path"] {
        let response = app.get(path);
        let body = r#"{"code":14,"message":"not ready: waiting for the node","details":[]}"#;
        assert_eq!((response.status().as_u16(), &response.body()[..]), (503, body.as_bytes()), "{path}");
        assert!(response.headers().contains_key("retry-after"), "{path}");
    }
    assert_eq!(app.get("/healthz").status().as_u16(), 200);
}
