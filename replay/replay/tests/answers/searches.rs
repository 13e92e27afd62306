//! Transactions by hash and by events, over `CometBFT` and REST, compared with the replies of the recorded nodes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use replay::answers::{Deviation, Service};
use serde_json::{Value, json};

use crate::{Chain, L1, L2, Reply, extra, get, post};

const COMET: Service = Service::Comet;
const REST: Service = Service::Rest;
const TXS: &str = "/cosmos/tx/v1beta1/txs";

fn chains() -> [(&'static str, &'static Chain); 2] {
    [("l1-l2/l1", &*L1), ("l1-l2/l2", &*L2)]
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The path of a search in a client's encoding: the recording has the query decoded.
fn search_path(query: &str, rest: &str) -> String {
    format!("/tx_search?query=%22{}%22{rest}", encoded(query))
}

fn search(chain: &Chain, query: &str, rest: &str) -> Value {
    chain.get(COMET, &search_path(query, rest)).result()
}

/// The heights of the results.
fn heights(answer: &Value) -> Vec<u64> {
    let txs = answer["txs"].as_array().unwrap().iter();
    txs.map(|tx| tx["height"].as_str().unwrap().parse().unwrap()).collect()
}

fn recorded_searches(lines: &[Value]) -> Vec<(String, &Value)> {
    let query = |line: &Value| {
        let rest = line["path"].as_str()?.strip_prefix("/tx_search?query=\"")?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    lines.iter().filter_map(|line| Some((query(line)?, &line["answer"]))).collect()
}

#[test]
fn every_recorded_search_over_comet_is_derived_from_the_blocks() {
    for (name, chain) in chains() {
        let lines = extra(name);
        let searches = recorded_searches(&lines);
        let (mut found, mut empty) = (0, 0);
        for (query, want) in &searches {
            // Other parameters than those of the recorded request, so that the recorded line is not used.
            let reply = search(chain, query, "&prove=false&page=1&order_by=%22asc%22&per_page=29");
            assert_eq!(reply, **want, "{query}");
            assert_eq!(search(chain, query, ""), **want, "{query}");
            let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "tx_search",
                "params": { "query": query, "page": "1", "per_page": "30", "order_by": "desc" } });
            assert_eq!(chain.post(COMET, "/", &body.to_string()).result(), **want, "{query}");
            if reply["total_count"] == "0" { empty += 1 } else { found += 1 }
        }
        assert!(found > 100 && empty > 30, "{name}: {found} found, {empty} empty");
    }
}

#[test]
fn every_recorded_transaction_over_comet_is_found_by_its_hash() {
    for (name, chain) in chains() {
        let lines = extra(name);
        let mut compared = 0;
        for line in &lines {
            let Some(hash) = line["path"].as_str().and_then(|path| path.strip_prefix("/tx?hash=0x")) else {
                continue;
            };
            let reply = chain.get(COMET, &format!("/tx?hash=0x{}&prove=false", hash.to_ascii_lowercase()));
            match line.get("error") {
                Some(error) => assert_eq!(reply.json()["error"], *error),
                None => assert_eq!(reply.result(), line["answer"], "{hash}"),
            }
            compared += 1;
        }
        assert!(compared > 80, "{name}: {compared}");
    }
}

#[test]
fn every_recorded_transaction_and_search_over_rest_is_derived_from_the_blocks() {
    for (name, chain) in chains() {
        let (mut by_hash, mut by_query) = (0, 0);
        for line in extra(name) {
            let path = line["path"].as_str().unwrap_or_default();
            let Some(rest) = path.strip_prefix(TXS) else { continue };
            // A parameter without effect makes the request differ from the recorded one.
            let other = match rest.as_bytes()[0] {
                b'/' => format!("{path}?another=1"),
                _ => format!("{path}&another=1&page=1&limit=100&order_by=ORDER_BY_ASC&pagination.limit=1"),
            };
            let reply = chain.get(REST, &other);
            assert_eq!(
                (Some(u64::from(reply.status)), reply.missing),
                (line["status"].as_u64(), 0),
                "{path}"
            );
            assert_eq!(reply.json(), line["answer"], "{path}");
            if rest.starts_with('/') { by_hash += 1 } else { by_query += 1 }
        }
        assert!(by_hash > 80 && by_query > 150, "{name}: {by_hash} by hash, {by_query} by query");
    }
}

#[test]
fn a_packet_is_received_at_its_height_and_not_before() {
    let query = "recv_packet.packet_sequence='1' AND recv_packet.packet_dst_channel='channel-0'";
    let (mut first_comet, mut first_rest) = (None, None);
    let rest_path = format!("{TXS}?query={}", encoded(query));
    for shown in 125..=140 {
        let reply = L2.ask_at(shown, COMET, get(&search_path(query, ""))).result();
        let rest = L2.ask_at(shown, REST, get(&rest_path)).json();
        assert_eq!(reply["total_count"], rest["total"], "at {shown}");
        assert!(heights(&reply).iter().all(|height| *height <= shown));
        if reply["total_count"] != "0" {
            first_comet.get_or_insert(shown);
        }
        if rest["tx_responses"].as_array().is_some_and(|txs| !txs.is_empty()) {
            first_rest.get_or_insert(shown);
        }
        let hash = "D539B39B568F826E474914BD1A973EFD91942731D2E27BC5D32039E96794686A";
        let tx = L2.ask_at(shown, COMET, get(&format!("/tx?hash=0x{hash}")));
        let rest_tx = L2.ask_at(shown, REST, get(&format!("{TXS}/{hash}")));
        let want = if shown < 133 { (500, 404, 0, 0) } else { (200, 200, 0, 0) };
        assert_eq!((tx.status, rest_tx.status, tx.missing, rest_tx.missing), want, "at {shown}");
    }
    assert_eq!((first_comet, first_rest), (Some(133), Some(133)));
}

#[test]
fn the_tip_is_not_in_the_index_until_it_is_executed() {
    let query = "recv_packet.packet_sequence='1' AND recv_packet.packet_dst_channel='channel-0'";
    let counters = replay::counters::Counters::default();
    for (shown, count) in [(133, "0"), (134, "1")] {
        let view = replay::answers::View {
            recording: &L2.recording,
            shown,
            deviations: [(Deviation::NoResults, 0)].into(),
            lagging: &[],
            counters: &counters,
        };
        let answer = replay::answers::answer(COMET, view, &get(&search_path(query, "")));
        let reply: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(reply["result"]["total_count"], count);
    }
}

#[test]
fn a_search_is_cut_into_pages_from_either_end() {
    let all = search(&L2, "update_client.client_id EXISTS", "&per_page=100");
    let whole = heights(&all);
    assert!(whole.len() > 20 && whole.is_sorted(), "{whole:?}");
    assert_eq!(all["total_count"], whole.len().to_string());
    let mut pieces = Vec::new();
    for page in 1..=whole.len().div_ceil(7) {
        let rest = format!("&per_page=7&page={page}&order_by=%22desc%22");
        let piece = search(&L2, "update_client.client_id EXISTS", &rest);
        assert_eq!(piece["total_count"], all["total_count"]);
        pieces.extend(heights(&piece));
    }
    assert_eq!(pieces, whole.iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(heights(&search(&L1, "tx.height>=150", "")).len(), 30);
    assert_eq!(heights(&search(&L1, "tx.height>=150", "&per_page=500")).len(), 100);
    assert_eq!(heights(&search(&L1, "tx.height>=150", "&per_page=0")).len(), 30);
    assert_eq!(search(&L1, "tx.height>=150", "")["total_count"], "1570");
    let rest = L2.get(REST, &format!("{TXS}?query={}&limit=3&page=2&order_by=2", encoded("tx.height>0")));
    let responses = rest.json()["tx_responses"].as_array().unwrap().clone();
    let all = search(&L2, "tx.height>0", "&order_by=%22desc%22&per_page=6");
    let want: Vec<_> = all["txs"].as_array().unwrap()[3..].iter().map(|tx| tx["hash"].clone()).collect();
    assert_eq!(responses.iter().map(|tx| tx["txhash"].clone()).collect::<Vec<_>>(), want);
}

#[test]
fn heights_hashes_and_numbers_can_be_searched_for() {
    assert_eq!(heights(&search(&L2, "tx.height=133", "")), [133]);
    let hash = "D539B39B568F826E474914BD1A973EFD91942731D2E27BC5D32039E96794686A";
    assert_eq!(heights(&search(&L2, &format!("tx.hash='{hash}'"), "")), [133]);
    assert_eq!(search(&L2, &format!("tx.hash='{}'", "00".repeat(32)), "")["total_count"], "0");
    let between = "send_packet.packet_sequence>=3 AND send_packet.packet_sequence<5 AND send_packet.packet_src_channel='channel-0'";
    assert_eq!(heights(&search(&L2, between, "")), [140, 141]);
    let bounded = "initiate_token_withdrawal.l2_sequence EXISTS AND tx.height>165 AND tx.height<=168";
    assert_eq!(heights(&search(&L2, bounded, "")), [166, 168]);
    let part = "initiate_token_withdrawal.from CONTAINS 'not-an'";
    assert_eq!(heights(&search(&L2, part, "")), [161]);
}

fn refusal(reply: &Reply) -> Value {
    assert_eq!((reply.status, reply.missing), (500, 0), "{}", reply.text);
    reply.json()["error"].clone()
}

#[test]
fn malformed_requests_get_the_errors_of_a_node() {
    let error = |path: &str| refusal(&L2.get(COMET, path));
    let data = |path: &str| error(path)["data"].as_str().unwrap().to_owned();
    assert_eq!(data("/tx_search"), "offset 0: EOF");
    let page = search_path("tx.height=133", "&page=2");
    assert_eq!(data(&page), "page should be within [1, 1] range, given 2");
    assert_eq!(error(&page)["code"], -32603);
    assert_eq!(data(&search_path("tx.height=133", "&page=0")), "page should be within [1, 1] range, given 0");
    let order = search_path("tx.height=133", "&order_by=%22up%22");
    assert_eq!(data(&order), "expected order_by to be either `asc` or `desc` or empty");
    let long = format!("a.b='{}'", "x".repeat(510));
    assert_eq!(data(&search_path(&long, "")), "maximum query length exceeded");
    assert_eq!(
        data(&search_path("tx.hash='0g'", "")),
        "error during searching for a hash in the query: encoding/hex: invalid byte: U+0067 'g'"
    );
    assert_eq!(error(&search_path("tx.height=133", "&page=x"))["code"], -32602);
    for (query, status, code, message) in [
        ("", 500, 13, "query cannot be empty"),
        ("?events=a.b%3D%271%27", 500, 13, "query cannot be empty"),
        ("?query=a.b", 500, 13, "failed to search for txs: offset 3: EOF"),
        (
            "?query=tx.height%3D133&page=2",
            500,
            13,
            "failed to search for txs: page should be within [1, 1] range, given 2",
        ),
        ("/00zz", 500, 2, "encoding/hex: invalid byte: U+007A 'z'"),
        ("/00aa", 404, 5, "tx not found: 00aa"),
    ] {
        let reply = L2.get(REST, &format!("{TXS}{query}"));
        assert_eq!((reply.status, reply.missing), (status, 0), "{query}");
        assert_eq!(
            (&reply.json()["code"], &reply.json()["message"]),
            (&json!(code), &json!(message)),
            "{query}"
        );
    }
    assert_eq!(L2.get(REST, &format!("{TXS}?query=a.b%3D1&order_by=up")).status, 400);
}

#[test]
fn an_answer_that_cannot_be_derived_is_a_counted_error() {
    // The first "transaction" of every block of the L1 is vote data.
    let vote = L1.recording.height(200).unwrap().raw_txs().unwrap()[0].to_string();
    let hash = hex::encode_upper(<sha2::Sha256 as sha2::Digest>::digest(STANDARD.decode(vote).unwrap()));
    let tx = L1.get(REST, &format!("{TXS}/{hash}"));
    assert_eq!((tx.status, tx.missing), (501, 1));
    let txs = L1.get(REST, &format!("{TXS}?query={}", encoded("tx.height=200")));
    assert_eq!((txs.status, txs.missing), (501, 1));
    assert_eq!(heights(&search(&L1, "tx.height=200", "")), [200, 200]);
    let proven = L1.get(COMET, &search_path("tx.height=200", "&prove=true"));
    assert_eq!((proven.status, proven.missing), (500, 1));
    let dated = L1.get(COMET, &search_path("tx.time > DATE 2026-01-01", ""));
    assert_eq!((dated.status, dated.missing), (500, 1));
}

#[test]
fn a_header_is_derived_from_its_block() {
    let header = L1.get(COMET, "/header?height=200").result();
    let block = L1.get(COMET, "/block?height=200").result();
    assert_eq!(header["header"], block["block"]["header"]);
    assert_eq!(L1.get(COMET, "/header?height=149").status, 500);
    let body = json!({ "id": 1, "method": "header", "params": { "height": "200" } });
    assert_eq!(L1.ask(COMET, post("/", &body.to_string())).result(), header);
}
