//! Packets of IBC, against what the recorded nodes said of their state, and against the recorded transfers.

use std::collections::BTreeMap;
use std::sync::Arc;

use ingest::Config;
use query::Indexer;
use replay::{Options, Recording};
use schema::packets::PACKETS;
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::{indexed, oracle, recording};
use tokio::sync::OnceCell;
use web::app::App;

use crate::examples;

static PACKETS_NOW: schema::index::Index = PACKETS;

const CHAINS: [&str; 6] =
    ["l1-l2/l1", "l1-l2/l2", "l1-l2-swaps/l1", "l1-l2-swaps/l2", "bridge-cases/l1", "bridge-cases/l2"];

pub(crate) async fn store(name: &str) -> Arc<dyn Store> {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config {
        indexes: vec![&PACKETS_NOW],
        internal_txs: false,
        rich_list: false,
        ..indexed::config(&recording).unwrap()
    };
    indexed::index_as(config, recording, Options::default(), Arc::clone(&store)).await.unwrap();
    store
}

/// The API of a recorded chain.
async fn chain(name: &str) -> &'static App<Indexer> {
    static APPS: [OnceCell<App<Indexer>>; 6] = [const { OnceCell::const_new() }; 6];
    let at = CHAINS.iter().position(|chain| *chain == name).unwrap();
    APPS[at]
        .get_or_init(|| async {
            App::new(indexed::indexer(store(name).await).unwrap(), query::ENDPOINTS).unwrap()
        })
        .await
}

/// The status and the body of a response.
fn get(app: &App<Indexer>, target: &str) -> Result<Value, (u16, String)> {
    let reply = app
        .read(&format!("/indexer/ibc/v1/{target}"))
        .map_err(|error| (error.status().as_u16(), error.message().to_owned()))?;
    Ok(serde_json::from_slice(&reply.body).unwrap())
}

/// All packets of a list, by their sequence.
fn packets(app: &App<Indexer>, channel: &str, parameters: &str) -> BTreeMap<u64, Value> {
    let target = format!("channels/{channel}/packets?{parameters}&pagination.limit=1000");
    let page = match get(app, &target) {
        Ok(page) => page,
        Err((404, _)) => return BTreeMap::new(),
        Err(error) => panic!("{target}: {error:?}"),
    };
    let packets = page["packets"].as_array().unwrap();
    assert_eq!(page["pagination"]["total"], json!(packets.len().to_string()), "{target}");
    packets.iter().map(|packet| (number(&packet["sequence"]), packet.clone())).collect()
}

fn number(text: &Value) -> u64 {
    text.as_str().unwrap().parse().unwrap()
}

fn sequences(list: &Value) -> Vec<u64> {
    let mut sequences: Vec<u64> =
        list.as_array().unwrap().iter().map(|item| number(item.get("sequence").unwrap_or(item))).collect();
    sequences.sort_unstable();
    sequences
}

/// A channel's end with its packets.
struct End {
    is_ordered: bool,
    sent: BTreeMap<u64, Value>,
    received: BTreeMap<u64, Value>,
}

impl End {
    fn of(app: &App<Indexer>, port: &str, channel: &str) -> Self {
        let found = get(app, &format!("channels/{channel}?port={port}")).unwrap_or_default();
        Self {
            is_ordered: found["channel"]["ordering"] == "ORDER_ORDERED",
            sent: packets(app, channel, &format!("port={port}")),
            received: packets(app, channel, &format!("port={port}&side=received")),
        }
    }

    /// Sent packets whose commitment is in the state.
    fn committed(&self) -> Vec<u64> {
        let is_open =
            |(_, packet): &(&u64, &Value)| packet["acknowledge"].is_null() && packet["timeout"].is_null();
        self.sent.iter().filter(is_open).map(|(sequence, _)| *sequence).collect()
    }

    fn acknowledged(&self) -> Vec<u64> {
        let is_written = |(_, packet): &(&u64, &Value)| !packet["write_acknowledgement"].is_null();
        self.received.iter().filter(is_written).map(|(sequence, _)| *sequence).collect()
    }
}

/// The expected and the found value of a recorded reply about packets; `None` for another query.
fn compared(end: &End, query: &str, status: u64, reply: &Value) -> Option<(Value, Value)> {
    let (name, rest) = query.split_once('/').unwrap_or((query, ""));
    let sequence = rest.parse::<u64>();
    Some(match (name, sequence) {
        ("packet_commitments", _) if rest.is_empty() && status == 200 => {
            (json!(sequences(&reply["commitments"])), json!(end.committed()))
        }
        ("packet_commitments", Ok(sequence)) => {
            (json!(status == 200), json!(end.committed().contains(&sequence)))
        }
        ("packet_commitments", Err(_)) if status == 200 && rest.ends_with("/unreceived_packets") => {
            let asked = rest.split('/').next().unwrap().split(',').map(|text| text.parse().unwrap());
            let missing: Vec<u64> = asked.filter(|asked| !end.received.contains_key(asked)).collect();
            (json!(sequences(&reply["sequences"])), json!(missing))
        }
        ("packet_acknowledgements", _) if rest.is_empty() && status == 200 => {
            (json!(sequences(&reply["acknowledgements"])), json!(end.acknowledged()))
        }
        ("packet_acks", Ok(sequence)) => {
            (json!(status == 200), json!(end.acknowledged().contains(&sequence)))
        }
        // An ordered channel has no receipts: the next sequence tells.
        ("packet_receipts", Ok(sequence)) if status == 200 && !end.is_ordered => {
            (reply["received"].clone(), json!(end.received.contains_key(&sequence)))
        }
        ("next_sequence", _) if status == 200 && end.is_ordered => {
            let next = 1 + end.received.keys().max().unwrap_or(&0);
            (reply["next_sequence_receive"].clone(), json!(next.to_string()))
        }
        ("next_sequence_send", _) if status == 200 => {
            let next = 1 + end.sent.keys().max().unwrap_or(&0);
            (reply["next_sequence_send"].clone(), json!(next.to_string()))
        }
        _ => return None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_are_what_the_state_of_the_recorded_nodes_says() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in CHAINS {
        let app = chain(name).await;
        for line in oracle::extra_lines(name, "/ibc/core/channel/v1/channels/").unwrap() {
            let path = line["path"].as_str().unwrap();
            let mut parts = path.splitn(9, '/').skip(6);
            let (Some(channel), Some("ports"), Some(rest)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let Some((port, query)) = rest.split_once('/') else { continue };
            let end = End::of(app, port, channel);
            let status = line["status"].as_u64().unwrap_or_default();
            let Some((expected, found)) = compared(&end, query, status, &line["answer"]) else { continue };
            assert_eq!(found, expected, "{name} {path}");
            *counts.entry(format!("{name} {}", query.split('/').next().unwrap())).or_default() += 1;
        }
    }
    let all: usize = counts.values().sum();
    println!("{counts:#?}\n{all} facts of state");
    assert!(all > 250, "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_those_of_the_recorded_nodes() {
    let mut channels = 0;
    for name in CHAINS {
        let app = chain(name).await;
        for line in oracle::extra_lines(name, "/ibc/core/channel/v1/channels").unwrap() {
            let path = line["path"].as_str().unwrap().split('?').next().unwrap();
            if path != "/ibc/core/channel/v1/channels" {
                continue;
            }
            for expected in line["answer"]["channels"].as_array().unwrap() {
                let (port, id) = (&expected["port_id"], expected["channel_id"].as_str().unwrap());
                let target = format!("channels/{id}?port={}", port.as_str().unwrap());
                let found = match get(app, &target) {
                    Ok(found) => found["channel"].clone(),
                    // Older than the first recorded block, and nothing has passed through it since.
                    Err((404, _)) if name.ends_with("/l1") => continue,
                    Err(error) => panic!("{name} {target}: {error:?}"),
                };
                for member in ["state", "ordering", "version"] {
                    if found[member] != "" {
                        assert_eq!(found[member], expected[member], "{name} {target} {member}");
                    }
                }
                assert_eq!(found["counterparty"], expected["counterparty"], "{name} {target}");
                assert_eq!(found["connection_id"], expected["connection_hops"][0], "{name} {target}");
                channels += 1;
            }
        }
        let page = get(app, "channels?pagination.limit=1000&pagination.reverse=false").unwrap();
        let ids: Vec<&str> = page["channels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|end| end["channel_id"].as_str().unwrap())
            .collect();
        assert!(ids.is_sorted_by_key(|id| (id.len(), *id)), "{ids:?}");
    }
    assert!(channels >= 20, "{channels}");
}

/// A step of a packet as a recording's table has it.
fn assert_step(found: &Value, step: &Value, of: &str) {
    if step.is_null() {
        assert!(found.is_null(), "{of}: {found}");
        return;
    }
    assert_eq!(found["txhash"].as_str().unwrap(), step["hash"].as_str().unwrap_or_default(), "{of}");
    assert_eq!(number(&found["height"]), step["height"].as_u64().unwrap(), "{of}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_transfer_has_its_steps_with_their_transactions() {
    let mut steps = 0;
    for pair in ["l1-l2", "l1-l2-swaps"] {
        let table = std::fs::read(recording(pair).join("transfers.json")).unwrap();
        let table: Value = serde_json::from_slice(&table).unwrap();
        for packet in table["packets"].as_array().unwrap() {
            let text = |name: &str| packet[name].as_str().unwrap();
            let side = |chain: &str| if chain.contains("-l1-") { "l1" } else { "l2" };
            let (from, to) = (side(text("from")), side(text("to")));
            let sequence = packet["sequence"].as_u64().unwrap();
            let read = |chain: &'static App<Indexer>, end: &str, side: &str| {
                let channel = text(&format!("{end}_channel"));
                let port = text(&format!("{end}_port"));
                get(chain, &format!("packets/{channel}/{sequence}?port={port}&side={side}"))
            };
            let sent = read(chain(&format!("{pair}/{from}")).await, "src", "sent").unwrap()["sent"].clone();
            let of = format!("{pair} {from} {} {sequence}", text("src_port"));
            assert_step(&sent["send"], &packet["sent"], &of);
            assert_step(&sent["acknowledge"], &packet["acknowledged"], &of);
            assert_step(&sent["timeout"], &packet["timed_out"], &of);
            assert_eq!(
                hex::decode(sent["data_hex"].as_str().unwrap()).unwrap(),
                text("data").as_bytes(),
                "{of}"
            );
            let data: Value = serde_json::from_str(text("data")).unwrap();
            for member in ["sender", "receiver", "denom", "amount"] {
                if !data[member].is_null() {
                    assert_eq!(sent["data"][member], data[member], "{of}");
                }
            }
            let refused = !packet["ack"]["error"].is_null();
            let state = match text("state") {
                _ if !packet["timed_out"].is_null() => "timed_out",
                _ if packet["acknowledged"].is_null() => "pending",
                _ if refused => "failed",
                _ => "acknowledged",
            };
            assert_eq!(sent["state"], state, "{of}");
            assert_eq!(
                sent["error"],
                if state == "failed" { packet["ack"]["error"].clone() } else { json!("") },
                "{of}"
            );
            steps += 3;
            match read(chain(&format!("{pair}/{to}")).await, "dst", "received") {
                Ok(reply) => {
                    let received = &reply["received"];
                    assert_step(&received["receive"], &packet["received"], &of);
                    assert_step(&received["write_acknowledgement"], &packet["ack_written"], &of);
                    steps += 2;
                }
                Err((404, _)) => assert!(packet["received"].is_null(), "{of}"),
                Err(error) => panic!("{of}: {error:?}"),
            }
        }
    }
    assert!(steps > 400, "{steps}");
}

/// The table of `bridge-cases`: packets by the name of their source, with the events of each type.
#[tokio::test(flavor = "multi_thread")]
async fn packets_of_blocks_ordered_channels_and_refusals_are_there() {
    let table = std::fs::read(recording("bridge-cases").join("transfers.json")).unwrap();
    let table: Value = serde_json::from_slice(&table).unwrap();
    let apps = [("L1", chain("bridge-cases/l1").await), ("L2", chain("bridge-cases/l2").await)];
    let app = |name: &str| apps.iter().find(|(chain, _)| *chain == name).unwrap().1;
    let (mut of_blocks, mut stuck, mut events) = (0, 0, 0);
    for (key, packet) in table["packets"].as_object().unwrap() {
        let [from, port, channel, sequence] = key.split('/').collect::<Vec<_>>()[..] else { panic!("{key}") };
        let (dst_port, dst_channel) = packet["dst"].as_str().unwrap().split_once('/').unwrap();
        let to = if from == "L1" { "L2" } else { "L1" };
        let sent = get(app(from), &format!("packets/{channel}/{sequence}?port={port}&side=sent"));
        let received =
            get(app(to), &format!("packets/{dst_channel}/{sequence}?port={dst_port}&side=received"));
        for (kind, side, member) in [
            ("send_packet", &sent, "send"),
            ("acknowledge_packet", &sent, "acknowledge"),
            ("timeout_packet", &sent, "timeout"),
            ("recv_packet", &received, "receive"),
            ("write_acknowledgement", &received, "write_acknowledgement"),
        ] {
            let Some(first) = packet[kind].get(0) else { continue };
            let reply = side.as_ref().unwrap_or_else(|error| panic!("{key} {kind}: {error:?}"));
            let found = if reply["sent"].is_null() { &reply["received"] } else { &reply["sent"] };
            let stage = &found[member];
            assert_eq!(number(&stage["height"]), first["height"].as_u64().unwrap(), "{key} {kind}");
            let is_of_block = !first["place"].as_str().unwrap().starts_with("tx");
            let hash = if is_of_block { "" } else { first["hash"].as_str().unwrap() };
            assert_eq!(stage["txhash"], hash, "{key} {kind}");
            assert_eq!(stage["msg_index"].is_null(), is_of_block, "{key} {kind}");
            if let Some(ack) = first["ack"].as_str() {
                assert_eq!(found["acknowledgement_hex"], hex::encode(ack), "{key}");
            }
            of_blocks += usize::from(is_of_block);
            events += 1;
        }
        let sent = sent.unwrap();
        stuck += usize::from(sent["sent"]["state"] == "stuck");
    }
    println!("{events} events, {of_blocks} of blocks, {stuck} stuck");
    assert!(events > 150 && of_blocks >= 9, "{events} {of_blocks}");
    assert_eq!(stuck, 1, "the packet behind the one whose timeout closed the channel");
    let all = get(app("L1"), "channels?pagination.limit=1000").unwrap();
    let closed: Vec<&Value> = all["channels"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|channel| channel["state"] == "STATE_CLOSED" && channel["packets"]["stuck"] == "1")
        .collect();
    assert_eq!(closed.len(), 1, "{all}");
    let channel = closed[0]["channel_id"].as_str().unwrap();
    let of = |state: &str| packets(app("L1"), channel, &format!("state={state}")).len();
    assert_eq!((of("stuck"), of("pending")), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_packets_name_each_other() {
    let mut links = 0;
    for name in CHAINS {
        let app = chain(name).await;
        let all = get(app, "channels?pagination.limit=1000").unwrap();
        for end in all["channels"].as_array().unwrap() {
            let (port, channel) = (end["port_id"].as_str().unwrap(), end["channel_id"].as_str().unwrap());
            for packet in packets(app, channel, &format!("port={port}&side=received")).values() {
                let wants = packet["data"]["memo"].as_str().unwrap().contains("\"forward\"");
                let to = &packet["forwarded_to"];
                if !wants {
                    assert!(to.is_null(), "{name} {packet}");
                    continue;
                }
                // One that is refused is not forwarded.
                if to.is_null() {
                    assert_eq!(packet["state"], "failed", "{name} {packet}");
                    continue;
                }
                let (channel, sequence) =
                    (to["channel_id"].as_str().unwrap(), to["sequence"].as_str().unwrap());
                let port = to["port_id"].as_str().unwrap();
                let next = get(app, &format!("packets/{channel}/{sequence}?port={port}&side=sent")).unwrap();
                assert_eq!(next["sent"]["forwarded_from"]["sequence"], packet["sequence"], "{name}");
                links += 1;
            }
        }
    }
    assert!(links > 10, "{links}");
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_are_found_by_account_by_transaction_and_by_state() {
    let app = chain("l1-l2/l2").await;
    let sent = packets(app, "channel-0", "pagination.reverse=false");
    let first = sent.values().next().unwrap();
    let sender = first["data"]["sender"].as_str().unwrap();
    let hex = chain::Account::from_bech32(sender, "init").unwrap().to_hex();
    let of = |account: &str, more: &str| {
        get(app, &format!("packets/by_account/{account}?pagination.limit=9{more}"))
    };
    let page = of(sender, "").unwrap();
    assert_eq!(page, of(&hex, "").unwrap(), "one account, two spellings");
    for packet in page["packets"].as_array().unwrap() {
        let names = [&packet["data"]["sender"], &packet["data"]["receiver"]];
        assert!(names.contains(&&json!(sender)) || names.contains(&&json!(hex)), "{packet}");
    }
    let acknowledged = of(sender, "&state=acknowledged").unwrap();
    assert!(
        acknowledged["packets"].as_array().unwrap().iter().all(|packet| packet["state"] == "acknowledged")
    );
    assert_eq!(of(sender, "&state=acknowledged&pagination.offset=1").unwrap_err().0, 400);
    assert_eq!(of("cosmos1nobody", "").unwrap()["packets"], json!([]));

    let hash = first["send"]["txhash"].as_str().unwrap();
    let of_tx = get(app, &format!("packets/by_tx/{hash}")).unwrap();
    assert!(of_tx["packets"].as_array().unwrap().contains(first), "{of_tx}");

    for (target, status) in [
        ("channels/channel-99", 404),
        ("channels/channel-0?port=other", 404),
        ("channels/channel-0/packets?state=received", 400),
        ("channels/channel-0/packets?side=received&state=pending", 400),
        ("channels/channel-0/packets?state=lost", 400),
        ("channels/channel-0/packets?colour=red", 400),
        ("packets/channel-0/0", 400),
        ("packets/channel-0/x", 400),
        ("packets/channel-0/999999", 404),
        (&*format!("packets/by_tx/{}", "ab".repeat(32)), 404),
    ] {
        let (found, message) = get(app, target).unwrap_err();
        assert_eq!(found, status, "{target}: {message}");
    }
    let total: u64 = ["pending", "acknowledged", "failed", "timed_out", "stuck"]
        .iter()
        .map(|state| packets(app, "channel-0", &format!("port=transfer&state={state}")).len() as u64)
        .sum();
    let channel = get(app, "channels/channel-0").unwrap()["channel"].clone();
    assert_eq!(number(&channel["packets"]["sent"]), total, "{channel}");
    assert!(total > 10);
}

/// The chain of the other examples has no packets.
#[tokio::test(flavor = "multi_thread")]
async fn examples_of_the_document_are_replies_of_a_recorded_rollup() {
    let app = chain("l1-l2/l2").await;
    let requests = [
        ("channels", "pagination.limit=1"),
        ("channels/{channel_id}", "channel_id=channel-0"),
        ("channels/{channel_id}/packets", "channel_id=channel-0&pagination.limit=1"),
        ("packets/{channel_id}/{sequence}", "channel_id=channel-0&sequence=1&side=sent"),
        (
            "packets/by_account/{account}",
            "account=init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd&pagination.limit=1",
        ),
        (
            "packets/by_tx/{tx_hash}",
            "tx_hash=D539B39B568F826E474914BD1A973EFD91942731D2E27BC5D32039E96794686A",
        ),
    ];
    let examples =
        requests.map(|(path, parameters)| examples::of(app, &format!("/indexer/ibc/v1/{path}"), parameters));
    examples::compare("ibc_examples.json", &examples);
}
