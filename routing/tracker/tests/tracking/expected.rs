//! The expected responses of the tracker for every transfer, from the recording's own tables (`transfers.json`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use chain::Timestamp;
use serde_json::{Value, json};

use crate::world::{Heights, L1, L2};

pub(crate) static TABLES: LazyLock<Value> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/l1-l2/transfers.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
});

/// A transaction that started transfers.
pub(crate) type Source = (String, String);

pub(crate) fn packets() -> &'static [Value] {
    TABLES["packets"].as_array().unwrap()
}

pub(crate) fn deposits() -> &'static [Value] {
    TABLES["deposits"].as_array().unwrap()
}

pub(crate) fn withdrawals() -> &'static [Value] {
    TABLES["withdrawals"].as_array().unwrap()
}

/// The transfers that every source transaction of the tables started, as members of `transfers`.
pub(crate) fn expected() -> BTreeMap<Source, Vec<Value>> {
    let mut all: BTreeMap<Source, Vec<Value>> = BTreeMap::new();
    let source = |chain: &str, tx: &Value| (chain.to_owned(), text(&tx["hash"]));
    for packet in packets() {
        all.entry(source(&text(&packet["from"]), &packet["sent"])).or_default().push(of_packet(packet));
    }
    for deposit in deposits() {
        all.entry(source(L1, &deposit["initiated"])).or_default().push(of_deposit(deposit));
    }
    for withdrawal in withdrawals() {
        let status = success_or_pending(vec![withdrawal_event(withdrawal)], claim_release(withdrawal));
        all.entry(source(L2, &withdrawal["initiated"])).or_default().push(status);
    }
    all
}

/// The height of every transaction of the tables.
pub(crate) fn heights() -> Heights {
    let mut all = Heights::new();
    let mut put = |chain: &str, tx: &Value| {
        if let Some(height) = tx["height"].as_u64() {
            all.insert((chain.to_owned(), text(&tx["hash"])), height);
        }
    };
    for packet in packets() {
        let (from, to) = (text(&packet["from"]), text(&packet["to"]));
        for (chain, member) in [
            (&from, "sent"),
            (&to, "received"),
            (&to, "ack_written"),
            (&from, "acknowledged"),
            (&from, "timed_out"),
        ] {
            put(chain, &packet[member]);
        }
    }
    for deposit in deposits() {
        put(L1, &deposit["initiated"]);
        put(L2, &deposit["finalized"]);
    }
    for withdrawal in withdrawals() {
        put(L2, &withdrawal["initiated"]);
        put(L1, &withdrawal["output"]);
        put(L1, &withdrawal["claimed"]);
    }
    all
}

/// Time of a source transaction.
pub(crate) fn sent_at(source: &Source) -> Timestamp {
    let (chain, hash) = source;
    let of_packet = packets().iter().find(|p| p["from"] == **chain && p["sent"]["hash"] == **hash);
    let of_deposit = || deposits().iter().find(|d| d["initiated"]["hash"] == **hash);
    let of_withdrawal = || withdrawals().iter().find(|w| w["initiated"]["hash"] == **hash);
    let tx = of_packet
        .map(|p| &p["sent"])
        .or_else(|| of_deposit().or_else(of_withdrawal).map(|transfer| &transfer["initiated"]));
    Timestamp::parse(tx.unwrap()["time"].as_str().unwrap()).unwrap()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn tx(chain: &str, tx: &Value) -> Value {
    if tx.is_null() {
        return Value::Null;
    }
    let hash = text(&tx["hash"]);
    json!({
        "chain_id": chain,
        "explorer_link": format!("https://scan.test/{chain}/txs/{hash}"),
        "tx_hash": hash,
        "on_chain_at": Timestamp::parse(tx["time"].as_str().unwrap()).unwrap().seconds(),
    })
}

fn status(state: &str, sequence: Vec<Value>, blocking: Option<usize>, release: Value, error: Value) -> Value {
    json!({
        "state": state,
        "transfer_sequence": sequence,
        "next_blocking_transfer": blocking.map(|at| json!({"transfer_sequence_index": at})),
        "transfer_asset_release": release,
        "error": error,
    })
}

fn success_or_pending(sequence: Vec<Value>, release: Value) -> Value {
    match release {
        Value::Null => {
            let last = sequence.len() - 1;
            status("STATE_PENDING", sequence, Some(last), Value::Null, Value::Null)
        }
        release => status("STATE_COMPLETED_SUCCESS", sequence, None, release, Value::Null),
    }
}

fn failed(message: &str) -> Value {
    json!({"type": "STATUS_ERROR_TRANSFER", "message": message, "details": null})
}

fn release(chain: &str, denom: &str, amount: &str, released: bool) -> Value {
    json!({"chain_id": chain, "denom": denom, "amount": amount, "released": released})
}

fn of_packet(packet: &Value) -> Value {
    let child = packets().iter().find(|child| {
        let data =
            |packet: &Value| -> Value { serde_json::from_str(packet["data"].as_str().unwrap()).unwrap() };
        packet["data"].as_str().unwrap().contains(r#"\"forward\""#)
            && child["from"] == packet["to"]
            && child["sent"] == packet["received"]
            && data(child)["amount"] == data(packet)["amount"]
    });
    let sequence: Vec<_> = [Some(packet), child].into_iter().flatten().map(packet_event).collect();
    let last = child.unwrap_or(packet);
    match packet["state"].as_str().unwrap() {
        "done" | "received" => {
            status("STATE_COMPLETED_SUCCESS", sequence, None, packet_release(last, true), Value::Null)
        }
        "failed" | "timed_out" => {
            let back = packet_release(packet, false);
            status("STATE_COMPLETED_ERROR", sequence, None, back, failed("transfer failed"))
        }
        "expired" => {
            let mut back = packet_release(packet, false);
            back["released"] = json!(false);
            status("STATE_PENDING_ERROR", sequence, Some(0), back, Value::Null)
        }
        "in_flight" => status("STATE_PENDING", sequence, Some(0), Value::Null, Value::Null),
        other => panic!("{other}"),
    }
}

fn packet_release(packet: &Value, is_there: bool) -> Value {
    let data: Value = serde_json::from_str(packet["data"].as_str().unwrap()).unwrap();
    let path = data["denom"].as_str().or(data["classId"].as_str()).unwrap();
    let amount = data["amount"].as_str().map(str::to_owned);
    let amount = amount.unwrap_or_else(|| data["tokenIds"].as_array().unwrap().len().to_string());
    let end = |side: &str| (text(&packet[format!("{side}_port")]), text(&packet[format!("{side}_channel")]));
    let (src, dst) = (end("src"), end("dst"));
    let (chain, path) = if is_there {
        let path = registry::denom::received(path, (&src.0, &src.1), (&dst.0, &dst.1));
        (text(&packet["to"]), path)
    } else {
        (text(&packet["from"]), path.to_owned())
    };
    release(&chain, &registry::denom::of_path(&path), &amount, true)
}

fn packet_event(packet: &Value) -> Value {
    let (from, to) = (text(&packet["from"]), text(&packet["to"]));
    let state = match packet["state"].as_str().unwrap() {
        "done" | "received" => "TRANSFER_SUCCESS",
        "failed" | "timed_out" => "TRANSFER_FAILURE",
        _ => "TRANSFER_PENDING",
    };
    let error = match (&packet["ack"]["error"], &packet["timed_out"]) {
        (Value::String(message), _) => {
            json!({"type": "PACKET_ERROR_ACKNOWLEDGEMENT", "message": message, "details": null})
        }
        (_, Value::Object(_)) => {
            json!({"type": "PACKET_ERROR_TIMEOUT", "message": "packet timed out", "details": null})
        }
        _ => Value::Null,
    };
    json!({"ibc_transfer": {
        "from_chain_id": from,
        "to_chain_id": to,
        "state": state,
        "packet_txs": {
            "send_tx": tx(&from, &packet["sent"]),
            "receive_tx": tx(&to, &packet["received"]),
            "acknowledge_tx": tx(&from, &packet["acknowledged"]),
            "timeout_tx": tx(&from, &packet["timed_out"]),
            "error": error,
        },
        "src_chain_id": from,
        "dst_chain_id": to,
    }})
}

fn of_deposit(deposit: &Value) -> Value {
    let (event, end) = (&deposit["event"], &deposit["finalize_event"]);
    let is_known = deposit["bridge_id"] == 1;
    let to = if is_known { L2 } else { "" };
    let state = match (is_known, end) {
        (false, _) => "OPINIT_TRANSFER_UNKNOWN",
        (true, Value::Null) => "OPINIT_TRANSFER_SENT",
        _ => "OPINIT_TRANSFER_RECEIVED",
    };
    let first = json!({"op_init_transfer": {
        "from_chain_id": L1,
        "to_chain_id": to,
        "state": state,
        "txs": {"send_tx": tx(L1, &deposit["initiated"]), "receive_tx": tx(L2, &deposit["finalized"])},
        "src_chain_id": L1,
        "dst_chain_id": to,
    }});
    let on_l2 = || release(L2, &text(&event["l2_denom"]), &text(&event["amount"]), true);
    match (&end["success"], &end["reason"]) {
        (Value::Null, _) => success_or_pending(vec![first], Value::Null),
        (Value::String(success), _) if success == "true" => success_or_pending(vec![first], on_l2()),
        (_, Value::String(reason)) if reason.starts_with("hook failed") => {
            status("STATE_COMPLETED_ERROR", vec![first], None, on_l2(), failed(reason))
        }
        (_, reason) => {
            // The withdrawal that returns it is in the transaction that finalized it.
            let refund =
                withdrawals().iter().find(|w| w["initiated"]["hash"] == deposit["finalized"]["hash"]);
            let refund = refund.unwrap();
            let sequence = vec![first, withdrawal_event(refund)];
            status(
                "STATE_COMPLETED_ERROR",
                sequence,
                None,
                claim_release(refund),
                failed(reason.as_str().unwrap()),
            )
        }
    }
}

fn claim_release(withdrawal: &Value) -> Value {
    if withdrawal["claimed"].is_null() {
        return Value::Null;
    }
    let event = &withdrawal["event"];
    release(L1, &text(&event["base_denom"]), &text(&event["amount"]), true)
}

fn withdrawal_event(withdrawal: &Value) -> Value {
    const FINALIZATION: i64 = 20;
    const NANOS: i64 = 1_000_000_000;
    let output = if withdrawal["deleted"].is_null() { &withdrawal["output"] } else { &Value::Null };
    let phase = match (withdrawal["claimed"].is_null(), output.is_null()) {
        (false, _) => "CLAIMED",
        (true, false) => "PROVABLE",
        (true, true) => "INITIATED",
    };
    let claimable = output["time"].as_str().map(|time| {
        let time = Timestamp::parse(time).unwrap().unix_nanos() / NANOS + FINALIZATION;
        Timestamp::from_unix_nanos(time * NANOS).seconds()
    });
    let index = (!output.is_null()).then(|| withdrawal["output_index"].to_string());
    let state = if withdrawal["claimed"].is_null() { "SENT" } else { "RECEIVED" };
    json!({"op_init_transfer": {
        "from_chain_id": L2,
        "to_chain_id": L1,
        "state": format!("OPINIT_TRANSFER_{state}"),
        "txs": {"send_tx": tx(L2, &withdrawal["initiated"]), "receive_tx": tx(L1, &withdrawal["claimed"])},
        "src_chain_id": L2,
        "dst_chain_id": L1,
        "withdrawal": {
            "l2_sequence": withdrawal["l2_sequence"].to_string(),
            "phase": phase,
            "output_index": index,
            "output_tx": tx(L1, output),
            "claimable_at": claimable,
        },
    }})
}
