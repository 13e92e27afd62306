//! Methods, paths, headers, sizes and query strings of all endpoints.

use http::Method;
use serde_json::{Value, json};

use crate::client::socket::Socket;
use crate::client::{Answer, Client, example};

#[tokio::test]
async fn a_content_type_must_be_json_if_there_is_one() {
    let (client, body) = (Client::mainnet(), example("route-request").to_string());
    let send = async |headers: &[(&str, &str)]| -> Answer {
        client.send(Method::POST, "/v2/fungible/route", headers, body.as_bytes()).await
    };
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json"]
    {
        let (status, code, message) = send(&[("content-type", kind)]).await.refusal();
        assert_eq!((status, code), (400, 3));
        assert!(
            message.contains(kind.split(';').next().unwrap()) && message.contains("application/json"),
            "{message}"
        );
    }
    for kind in [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/vnd.api+json",
    ] {
        assert_eq!(send(&[("content-type", kind)]).await.status, 200, "{kind}");
    }
    assert_eq!(send(&[]).await.status, 200);
}

#[tokio::test]
async fn a_body_may_have_a_mebibyte() {
    let client = Client::mainnet();
    let mut body = example("route-request").to_string();
    let head = "POST /v2/fungible/route HTTP/1.1\r\ncontent-type: application/json";
    body.push_str(&" ".repeat((1 << 20) - body.len()));
    let socket = Socket::start(&client);
    let (fits, over) = tokio::task::spawn_blocking(move || {
        let fits = socket.exchange(head, body.as_bytes());
        body.push(' ');
        let over = socket.exchange(head, body.as_bytes());
        body.push_str(&" ".repeat(31 << 20));
        // The time of a reply is its own.
        let undated =
            |answer: &str| answer.lines().filter(|line| !line.starts_with("date: ")).collect::<String>();
        assert_eq!(undated(&socket.exchange(head, body.as_bytes())), undated(&over));
        socket.stop();
        (fits, over)
    })
    .await
    .unwrap();
    assert!(fits.starts_with("HTTP/1.1 200 OK\r\n"), "{}", &fits[..200.min(fits.len())]);
    assert!(over.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{over}");
    assert!(
        over.contains("access-control-allow-origin: *\r\n") && over.contains("application/json"),
        "{over}"
    );
    let body: Value = serde_json::from_str(over.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        body,
        json!({ "code": 3, "message": "the request body is over 1048576 bytes", "details": [] })
    );
}

#[tokio::test]
async fn a_head_has_no_body_and_any_path_has_options() {
    let client = Client::mainnet();
    let whole = client.get("/v2/info/bridges").await.body.len();
    let socket = Socket::start(&client);
    let head = tokio::task::spawn_blocking(move || {
        let answer = socket.exchange("HEAD /v2/info/bridges HTTP/1.1", b"");
        socket.stop();
        answer
    });
    let head = head.await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains(&format!("content-length: {whole}\r\n")), "{head}");
    for path in ["/v2/info/chains", "/v2/fungible/route", "/v2/tx/submit", "/health"] {
        assert_eq!(client.send(Method::OPTIONS, path, &[], b"").await.status, 204, "{path}");
    }
}

#[tokio::test]
async fn chains_are_named_once_or_often_with_commas_or_without() {
    let client = Client::mainnet();
    let ids = async |query: &str| -> Vec<String> {
        let answer = client.get(&format!("/v2/info/chains?{query}")).await.ok();
        let chains = answer["chains"].as_array().unwrap().iter();
        chains.map(|chain| chain["chain_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids("").await;
    assert_eq!(all.len(), 6);
    let two = ["interwoven-1", "1"];
    for query in [
        "chain_ids=interwoven-1&chain_ids=1",
        "chain_ids=1,interwoven-1",
        "chain_ids=interwoven-1%2C1",
        "chain_ids=nowhere-1,interwoven-1&chain_ids=1&chain_ids=",
        "chain_ids=interwoven-1,interwoven-1,,1",
    ] {
        assert_eq!(ids(query).await, two, "{query}");
    }
    assert_eq!(ids("chain_ids=nowhere-1").await, [""; 0]);
    assert_eq!(ids("chain_ids=&include_evm=true&include_svm=false&ignore_blacklist=x").await, all);
    assert_eq!(ids("include_evm=false").await.len(), 5);
    assert_eq!(ids("only_testnets=true").await, [""; 0]);
    let map =
        client.get("/v2/fungible/assets?chain_ids=nowhere-1,1").await.ok()["chain_to_assets_map"].clone();
    assert_eq!(map.as_object().unwrap().keys().collect::<Vec<_>>(), ["1"]);
    let native = client.get("/v2/fungible/assets?native_only=true&include_evm_assets=false").await.ok();
    let native = native["chain_to_assets_map"].as_object().unwrap();
    let assets = native.values().flat_map(|chain| chain["assets"].as_array().unwrap());
    assert!(assets.clone().count() > 2 && !native.contains_key("1"));
    assert!(assets.clone().all(|asset| asset["denom"] == asset["origin_denom"]));
}

#[tokio::test]
async fn a_truth_value_in_a_query_is_true_or_false() {
    let client = Client::mainnet();
    for (path, name) in [
        ("/v2/info/chains", "include_evm"),
        ("/v2/info/chains", "only_testnets"),
        ("/v2/fungible/assets", "native_only"),
        ("/v2/fungible/assets", "include_evm_assets"),
        ("/v2/fungible/assets", "include_cw20_assets"),
        ("/v2/fungible/venues", "only_testnets"),
    ] {
        for value in ["1", "True", "yes", "null"] {
            let refusal = client.get(&format!("{path}?{name}={value}")).await.refusal();
            assert_eq!(refusal, (400, 3, format!("invalid {name}: `{value}` must be true or false")));
        }
        assert_eq!(client.get(&format!("{path}?{name}=")).await.status, 200);
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused_in_json() {
    let client = Client::mainnet();
    for path in ["/", "/v2/nothing", "/v2/fungible/route/1", "/v2/info/chain"] {
        let (status, code, message) = client.get(path).await.refusal();
        assert_eq!((status, code), (404, 5), "{path}");
        assert!(message.contains(path), "{message}");
    }
    for (method, path) in
        [(Method::GET, "/v2/fungible/route"), (Method::POST, "/v2/info/chains"), (Method::PUT, "/op-hook")]
    {
        let answer = client.send(method, path, &[], b"{}").await;
        let (status, code, _) = answer.refusal();
        assert_eq!((status, code), (405, 12), "{path}");
        assert!(answer.headers.contains_key("allow"), "{path}");
    }
    assert_eq!(client.send(Method::HEAD, "/v2/fungible/route", &[], b"").await.status, 405);
}

#[tokio::test]
async fn web_pages_may_send_requests_and_read_refusals_too() {
    let client = Client::mainnet();
    let asked = "content-type,authorization,interwovenkit-version";
    let headers = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", asked),
    ];
    let preflight = client.send(Method::OPTIONS, "/v2/fungible/route", &headers, b"").await;
    assert_eq!(preflight.status, 204);
    let header =
        |answer: &Answer, name: &str| answer.headers.get(name).map(|v| v.to_str().unwrap().to_lowercase());
    assert_eq!(header(&preflight, "access-control-allow-origin").unwrap(), "*");
    assert_eq!(header(&preflight, "access-control-max-age").unwrap(), "86400");
    assert!(header(&preflight, "access-control-allow-methods").unwrap().contains("post"));
    assert!(header(&preflight, "access-control-allow-credentials").is_none());
    // `*` would not cover `authorization`.
    let allowed = header(&preflight, "access-control-allow-headers").unwrap();
    for name in asked.split(',') {
        assert!(allowed.split(',').any(|allowed| allowed.trim() == name), "{allowed}");
    }
    let unnamed = client.send(Method::OPTIONS, "/v2/fungible/route", &headers[..2], b"").await;
    let allowed = header(&unnamed, "access-control-allow-headers").unwrap();
    assert!(asked.split(',').all(|name| allowed.contains(name)), "{allowed}");
    for (method, path) in [
        (Method::POST, "/v2/fungible/route"),
        (Method::GET, "/v2/nothing"),
        (Method::PUT, "/op-hook"),
        (Method::POST, "/v2/tx/submit"),
        (Method::GET, "/v2/tx/status?tx_hash=1&chain_id=interwoven-1"),
        (Method::GET, "/v2/info/chains"),
    ] {
        let answer = client.send(method, path, &headers[..1], b"{}").await;
        assert_eq!(header(&answer, "access-control-allow-origin").unwrap(), "*", "{path}");
        assert!(header(&answer, "access-control-expose-headers").unwrap().contains("retry-after"), "{path}");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_switched_off_reports_it_for_any_body() {
    let client = Client::mainnet();
    for body in ["", "{}", "?", r#"{"chain_id":"interwoven-1","tx":"AA=="}"#] {
        let refusal = client.post_text("/v2/tx/submit", body).await.refusal();
        assert_eq!(refusal, (501, 12, "not implemented".to_owned()));
    }
    let document = client.get("/openapi.json").await.ok();
    assert!(document["paths"]["/nft"].is_object() && document["paths"]["/v2/tx/submit"].is_null());
}
