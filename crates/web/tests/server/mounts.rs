//! Several apps behind one socket, selected by a prefix of the path or a host name.

use std::net::TcpListener;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use web::app::App;
use web::clock::Clock;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param, Type};
use web::limits::{Limits, Rate};
use web::mounts::{Mount, Mounts, Slot};
use web::openapi::schema::Document;
use web::reply::Reply;
use web::serve::server::Server;

use crate::socket::Socket;

const fn endpoint(
    path: &'static str,
    params: &'static [Param],
    handler: Handler<&'static str>,
) -> Endpoint<&'static str> {
    Endpoint {
        method: Method::Get,
        path,
        tag: "Names",
        summary: "The name of the app.",
        params,
        response: &Document("A page."),
        handler,
        cache: MaxAge::LIST,
    }
}

static ENDPOINTS: &[&[Endpoint<&'static str>]] = &[&[
    endpoint("/", &[], Handler::Sync(|name, _| Ok(Reply::json(format!("\"{name}\""))))),
    endpoint(
        "/later",
        &[],
        Handler::Async(|name, _| Box::pin(async move { Ok(Reply::json(format!("\"{name}\""))) })),
    ),
    endpoint(
        "/echo/{text}",
        &[Param::path("text", ""), Param::query("more", Type::String, "")],
        Handler::Sync(|name, call| {
            Ok(Reply::json(format!(
                "\"{name} {} {}\"",
                call.text("text"),
                call.first("more").unwrap_or_default()
            )))
        }),
    ),
]];

fn mount(id: &str, hosts: &[&str]) -> (Mount<&'static str>, Slot<&'static str>) {
    let app = Slot::default();
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    (Mount { id: id.to_owned(), hosts, app: Arc::clone(&app) }, app)
}

fn open(slot: &OnceLock<Arc<App<&'static str>>>, name: &'static str) {
    assert!(slot.set(Arc::new(App::new(name, ENDPOINTS).unwrap())).is_ok());
}

fn start(first: Mount<&'static str>, others: Vec<Mount<&'static str>>, ready: Arc<AtomicBool>) -> Server {
    start_with(Limits::default(), first, others, ready)
}

fn start_with(
    limits: Limits,
    first: Mount<&'static str>,
    others: Vec<Mount<&'static str>>,
    ready: Arc<AtomicBool>,
) -> Server {
    let check = move || if ready.load(Ordering::SeqCst) { Ok(()) } else { Err("two is behind".to_owned()) };
    let mounts = Mounts::new(first, others, check).unwrap();
    Server::start_mounts(TcpListener::bind("127.0.0.1:0").unwrap(), mounts, limits, 2).unwrap()
}

#[test]
fn a_prefix_or_a_host_name_selects_the_app() {
    let (first, slot_of_first) = mount("one-1", &["one.example"]);
    let (second, slot_of_second) = mount("two-2", &["two.example", "2.example."]);
    open(&slot_of_first, "one");
    open(&slot_of_second, "two");
    let server = start(first, vec![second], Arc::new(AtomicBool::new(true)));
    let mut client = Socket::open(server.address());
    for (target, text) in [
        ("/", "\"one\""),
        ("/c/one-1", "\"one\""),
        ("/c/one-1/", "\"one\""),
        ("/c/two%2D2", "\"two\""),
        ("/c/two-2/later", "\"two\""),
        ("/c/two-2/echo/a%2Fb?more=c", "\"two a/b c\""),
        ("/c/two-2?x=1", "\"two\""),
        ("/later", "\"one\""),
    ] {
        let answer = client.get(target);
        assert_eq!((answer.status, answer.text()), (200, text), "{target}");
    }
    for (host, target, text) in [
        ("two.example", "/", "\"two\""),
        ("2.Example:8080", "/later", "\"two\""),
        ("two.example.", "/", "\"two\""),
        ("TWO.example.:80", "/", "\"two\""),
        ("two.example:", "/", "\"two\""),
        ("two.example..", "/", "\"one\""),
        ("", "/", "\"one\""),
        ("one.example", "/", "\"one\""),
        ("elsewhere.example", "/", "\"one\""),
        ("[::1]:80", "/", "\"one\""),
        // The path is more exact than the host.
        ("two.example", "/c/one-1/", "\"one\""),
    ] {
        let answer = client.send(format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n")).response(false);
        assert_eq!((answer.status, answer.text()), (200, text), "{host}{target}");
    }
    let unknown = client.get("/c/three/later");
    let message = r#"{"code":5,"message":"there is no chain `three` here: one-1, two-2","details":[]}"#;
    assert_eq!((unknown.status, unknown.text()), (404, message));
    let of_a_page = client.request("GET", "/c/three/later", "origin: https://page.example\r\n");
    assert_eq!(of_a_page.header("access-control-allow-origin"), Some("*"));
    let list = r#"{"chains":[{"chain_id":"one-1","hosts":["one.example"],"open":true,"path":"/c/one-1"},{"chain_id":"two-2","hosts":["two.example","2.example."],"open":true,"path":"/c/two-2"}]}"#;
    assert_eq!(client.get("/c").text(), list);
}

#[test]
fn a_chain_that_is_not_open_delays_no_other() {
    let (first, slot_of_first) = mount("one", &[]);
    let (second, slot_of_second) = mount("two", &[]);
    let ready = Arc::new(AtomicBool::new(false));
    let server = start(first, vec![second], Arc::clone(&ready));
    let mut client = Socket::open(server.address());
    open(&slot_of_second, "two");
    let waiting = client.get("/later");
    let message = r#"{"code":14,"message":"the database of one is not open yet","details":[]}"#;
    assert_eq!((waiting.status, waiting.text()), (503, message));
    assert_eq!(client.get("/c/two/").text(), "\"two\"");
    assert_eq!((client.get("/healthz").status, client.get("/readyz").status), (200, 503));
    // A chain has probes of its own.
    assert_eq!(client.get("/c/two/readyz").status, 200);
    open(&slot_of_first, "one");
    ready.store(true, Ordering::SeqCst);
    assert_eq!((client.get("/").text(), client.get("/readyz").status), ("\"one\"", 200));
}

#[test]
fn requests_that_no_app_gets_count_against_the_rate_of_their_client() {
    let per_client = Some(Rate { per_second: NonZeroU32::MIN, burst: NonZeroU32::new(3).unwrap() });
    let now = Instant::now();
    let limits = Limits { per_client, clock: Clock::new(move || now), ..Limits::default() };
    let (first, slot) = mount("one", &[]);
    open(&slot, "one");
    let (closed, _slot) = mount("two", &[]);
    let server = start_with(limits, first, vec![closed], Arc::new(AtomicBool::new(true)));
    let mut client = Socket::open(server.address());
    for (target, status) in [("/c/three/", 404), ("/c", 200), ("/c/two/", 503)] {
        assert_eq!(client.get(target).status, status, "{target}");
    }
    for target in ["/c/three/", "/c", "/c/two/", "/"] {
        let answer = client.request("GET", target, "origin: https://page.example\r\n");
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")), "{target}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{target}");
    }
    assert_eq!((client.get("/healthz").status, client.get("/readyz").status), (200, 200));
}

#[test]
fn the_first_chain_answers_for_an_unknown_one_if_it_has_an_answer_to_unknown_paths() {
    let (first, slot) = mount("one-1", &[]);
    let app = App::new("one", ENDPOINTS).unwrap().with_error_page(|name, request, _| {
        let page = format!("{name} has no {}", request.uri.path());
        request.headers.contains_key("x-page").then(|| Reply::json(page))
    });
    assert!(slot.set(Arc::new(app)).is_ok());
    let server = start(first, Vec::new(), Arc::new(AtomicBool::new(true)));
    let mut client = Socket::open(server.address());
    for (target, header, text) in [
        ("/none", "x-page: 1\r\n", "one has no /none"),
        ("/c/two-2/x", "x-page: 1\r\n", "one has no /c/two-2/x"),
        ("/none", "", "Cannot GET /none"),
        ("/c/two-2/x", "", "there is no chain `two-2` here: one-1"),
        ("/", "x-page: 1\r\n", "one"),
    ] {
        let answer = client.request("GET", target, header);
        assert!(answer.text().contains(text), "{target} {header}: {}", answer.text());
    }
    server.stop();
}
