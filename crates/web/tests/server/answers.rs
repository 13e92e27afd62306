//! Responses to correct clients, over a real socket.

use std::io::Read as _;
use std::sync::LazyLock;

use crate::socket::Socket;
use web::limits::Limits;
use web::serve::server::Server;

static SERVER: LazyLock<Server> = LazyLock::new(|| crate::shop::open(Limits::default()).0);

fn client() -> Socket {
    Socket::open(SERVER.address())
}

#[test]
fn an_answer_has_its_headers() {
    let answer = client().get("/shop/v1/items/tea");
    assert_eq!((answer.status, answer.text()), (200, r#"["item","tea"]"#));
    let expected = [
        ("content-type", "application/json"),
        ("content-length", "14"),
        ("cache-control", "public, max-age=10"),
        ("vary", "Accept-Encoding"),
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "ETag, Retry-After, X-Cache"),
    ];
    for (name, value) in expected {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert!(answer.header("date").is_some());
    assert_eq!(client().get("/shop/v1/items").header("cache-control"), Some("public, max-age=1"));
}

#[test]
fn head_has_the_headers_of_get_and_no_body() {
    for target in ["/shop/v1/items/tea", "/large/5000", "/missing", "/nowhere"] {
        for encoding in ["", "accept-encoding: gzip\r\n"] {
            let mut client = client();
            let mut get = client.request("GET", target, encoding);
            let mut head = client.request("HEAD", target, encoding);
            for answer in [&mut get, &mut head] {
                answer.headers.retain(|(name, _)| name != "date");
            }
            // The message contains the method, so its length differs.
            if target == "/nowhere" {
                get.headers.retain(|(name, _)| name != "content-length");
                head.headers.retain(|(name, _)| name != "content-length");
            }
            assert_eq!((get.status, get.headers), (head.status, head.headers), "{target}");
            // Another reply on the same connection: no bytes of a body were left on it.
            assert_eq!(client.get("/till").text(), r#"["till"]"#);
        }
    }
}

#[test]
fn an_unknown_path_is_404_and_a_wrong_method_405() {
    let mut client = client();
    let answer = client.get("/no/such%20path?x=1");
    assert_eq!(answer.status, 404);
    assert_eq!(answer.text(), r#"{"code":5,"message":"Cannot GET /no/such%20path","details":[]}"#);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    for target in ["/", "/shop", "/shop/v1", "/shop/v2/items", "/shop/v1/items/a/b/c", "/shop//v1/items", "*"]
    {
        assert_eq!(client.get(target).status, 404, "{target}");
    }
    let cases = [
        ("POST", "/shop/v1/items", "GET, HEAD, OPTIONS"),
        ("DELETE", "/shop/v1/items/tea", "GET, HEAD, OPTIONS"),
        ("NONSENSE", "/till", "GET, HEAD, POST, OPTIONS"),
    ];
    for (method, target, allow) in cases {
        let answer = client.request(method, target, "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {target}");
        assert_eq!(answer.text(), r#"{"code":12,"message":"Method Not Allowed","details":[]}"#);
    }
}

#[test]
fn a_preflight_is_answered_with_the_requested_headers() {
    let headers = "origin: https://a.example\r\naccess-control-request-method: GET\r\n\
                   access-control-request-headers: content-type,x-mine\r\n";
    let answer = client().request("OPTIONS", "/shop/v1/items", headers);
    let expected = [
        ("allow", "GET, HEAD, OPTIONS"),
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET, HEAD, OPTIONS"),
        ("access-control-allow-headers", "content-type,x-mine"),
        ("access-control-max-age", "86400"),
    ];
    assert_eq!((answer.status, answer.header("content-length")), (204, None));
    for (name, value) in expected {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    let plain = client().request("OPTIONS", "/till", "");
    assert_eq!((plain.status, plain.header("allow")), (204, Some("GET, HEAD, POST, OPTIONS")));
    assert_eq!(plain.header("access-control-max-age"), None);
    assert_eq!(client().request("OPTIONS", "/nowhere", headers).status, 404);
}

#[test]
fn a_large_body_is_compressed_as_negotiated_and_stays_the_same() {
    let mut client = client();
    let plain = client.get("/large/100000");
    assert_eq!(plain.header("content-encoding"), None);
    for (asked, got) in [("gzip", "gzip"), ("zstd", "zstd"), ("gzip, deflate, br, zstd", "zstd")] {
        let packed = client.request("GET", "/large/100000", &format!("accept-encoding: {asked}\r\n"));
        assert_eq!(packed.header("content-encoding"), Some(got));
        assert_eq!(packed.header("etag"), plain.header("etag"));
        assert!(packed.body.len() * 3 < plain.body.len(), "{got}: {}", packed.body.len());
        let mut body = Vec::new();
        match got {
            "gzip" => drop(flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut body).unwrap()),
            _ => body = zstd::stream::decode_all(&packed.body[..]).unwrap(),
        }
        assert!(body == plain.body);
    }
    for refused in ["identity;q=1, gzip;q=0", "br", "gzip;q=0, zstd;q=0"] {
        let answer = client.request("GET", "/large/100000", &format!("accept-encoding: {refused}\r\n"));
        assert_eq!((answer.header("content-encoding"), answer.body == plain.body), (None, true), "{refused}");
    }
}

#[test]
fn a_small_body_is_not_compressed() {
    for (target, encoding) in [("/large/900", None), ("/large/1100", Some("gzip"))] {
        let answer = client().request("GET", target, "accept-encoding: gzip\r\n");
        assert_eq!(answer.header("content-encoding"), encoding, "{target}: {}", answer.body.len());
    }
}

#[test]
fn a_body_that_the_client_has_is_not_sent_again() {
    let mut client = client();
    let first = client.request("GET", "/large/5000", "accept-encoding: zstd\r\n");
    let tag = first.header("etag").unwrap().to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    for known in [tag.clone(), format!("\"x\", {tag}"), tag[2..].to_owned(), "*".to_owned()] {
        let again = client.request("GET", "/large/5000", &format!("if-none-match: {known}\r\n"));
        assert_eq!(again.status, 304, "{known}");
        for name in ["etag", "cache-control", "vary", "access-control-allow-origin"] {
            assert_eq!(again.header(name), first.header(name), "{name}");
        }
        assert_eq!((again.header("content-length"), again.header("content-type")), (None, None));
    }
    let other = client.request("GET", "/large/6000", &format!("if-none-match: {tag}\r\n"));
    assert_eq!((other.status, other.header("etag") == Some(&tag)), (200, false));
    let missing = client.request("GET", "/missing", "if-none-match: *\r\n");
    assert_eq!((missing.status, missing.header("etag")), (404, None));
}

#[test]
fn an_internal_error_is_not_explained_to_the_client() {
    let mut client = client();
    for target in ["/broken", "/panics"] {
        let answer = client.get(target);
        assert_eq!(answer.status, 500);
        assert_eq!(answer.text(), r#"{"code":13,"message":"internal server error","details":[]}"#);
    }
    let closed = client.get("/closed");
    assert_eq!((closed.status, closed.header("retry-after")), (503, Some("1")));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let names: Vec<_> = (0..100).map(|n| format!("item-{n}")).collect();
    let mut client = client();
    let requests: Vec<_> =
        names.iter().map(|name| format!("GET /shop/v1/items/{name} HTTP/1.1\r\nhost: h\r\n\r\n")).collect();
    client.send(requests.concat());
    for name in names {
        assert_eq!(client.response(false).text(), format!(r#"["item","{name}"]"#));
    }
}

#[test]
fn a_last_answer_is_sent_to_its_end_before_the_close() {
    let mut client = client();
    client.send("GET /large/12000000 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    let answer = client.response(false);
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(answer.body.len() > 11_000_000);
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_post_brings_its_body() {
    let mut client = client();
    client.send("POST /till HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\ncash");
    let answer = client.response(false);
    assert_eq!((answer.status, answer.text()), (200, r#"["cash"]"#));
    assert_eq!((answer.header("etag"), answer.header("cache-control")), (None, Some("no-store")));
    client.send(
        "POST /till HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n2\r\nca\r\n2\r\nrd\r\n0\r\n\r\n",
    );
    assert_eq!(client.response(false).text(), r#"["card"]"#);
}
