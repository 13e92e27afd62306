//! Every recorded transaction, printed from its raw bytes and the chain's own descriptors, against the JSON of the
//! node's REST: the same members in the same order with the same values.

use crate::recorded::{Json, blocks, descriptors, registry};
use proto::json::{
    Empty, Error, Registry, signers_named_by_message, tx_bytes, write_message, write_opaque_tx, write_tx,
};

const TYPE: &str = "/cosmos.tx.v1beta1.Tx";

/// The node's JSON with `"@type"` in front.
fn typed(rest: &Json) -> Json {
    let Json::Object(members) = rest else { panic!("a transaction is an object: {rest:?}") };
    let mut members = members.clone();
    members.insert(0, ("@type".to_owned(), Json::Text(TYPE.to_owned())));
    Json::Object(members)
}

fn printed(registry: &Registry, raw: &[u8]) -> Result<Json, Error> {
    let mut out = b"before".to_vec();
    write_tx(registry, raw, &mut out)?;
    assert!(out.starts_with(b"before"));
    Ok(Json::parse(&out[6..]))
}

/// Compares all transactions of a chain; returns their number.
fn compare(chain: &str) -> usize {
    let registry = registry(chain);
    let mut count = 0;
    for block in blocks(chain) {
        assert_eq!(block.raw.len(), block.rest.len(), "{chain} {}", block.height);
        for (index, (raw, rest)) in block.raw.iter().zip(&block.rest).enumerate() {
            let ours = printed(&registry, raw).unwrap_or_else(|error| {
                panic!("{chain} height {} transaction {index}: {error}", block.height)
            });
            assert_eq!(ours, typed(rest), "{chain} height {} transaction {index}", block.height);
            count += 1;
        }
    }
    count
}

/// The transactions of a chain whose bytes their JSON tells, by what their encoder does with empty messages, and those whose bytes it
/// does not tell.
fn rebuilt(chain: &str) -> [usize; 3] {
    let registry = registry(chain);
    let mut counts = [0; 3];
    for raw in blocks(chain).flat_map(|block| block.raw) {
        let mut json = Vec::new();
        write_opaque_tx(&registry, &raw, &mut json);
        let json = String::from_utf8(json).unwrap();
        let is_its = |empty| tx_bytes(&registry, &json, empty).is_some_and(|bytes| bytes == raw);
        counts[[Empty::LeftOut, Empty::Written].into_iter().position(is_its).unwrap_or(2)] += 1;
    }
    counts
}

#[test]
fn the_bytes_of_transactions_follow_from_their_json() {
    for (chain, expected) in [
        ("evm-scenario", [655, 0, 0]),
        ("move-scenario", [34, 0, 0]),
        ("move-ledger", [215, 0, 0]),
        ("wasm-scenario", [46, 0, 0]),
        ("wasm-ledger", [109, 0, 0]),
        ("cosmos-evm", [493, 0, 0]),
        ("evm-fees", [1_114, 0, 5]),
        ("evm-load", [34_183, 0, 0]),
        ("l1-l2/l1", [254, 35, 1_281]),
        ("l1-l2/l2", [71, 37, 0]),
        ("l1-l2-swaps/l1", [274, 34, 569]),
        ("bridge-cases/l1", [361, 28, 1_107]),
        ("bridge-cases/l2", [67, 30, 0]),
    ] {
        // The last are vote data of an L1, which is no transaction, and parameters that the chain's own encoder wrote in another way.
        assert_eq!(rebuilt(chain), expected, "{chain}");
    }
}

#[test]
fn every_transaction_of_the_evm_chain_is_printed_as_the_node_printed_it() {
    assert_eq!(compare("evm-scenario"), 655);
}

#[test]
fn every_transaction_of_the_move_chain_is_printed_as_the_node_printed_it() {
    assert_eq!(compare("move-scenario"), 34);
}

#[test]
fn every_transaction_of_the_wasm_chain_is_printed_as_the_node_printed_it() {
    assert_eq!(compare("wasm-scenario"), 46);
}

#[test]
fn every_transaction_of_the_bridged_rollup_is_printed_as_the_node_printed_it() {
    assert_eq!(compare("l1-l2/l2"), 108);
}

/// At height 431 its parameters are changed: `gas_enforcement` with `unlimited_gas_senders`.
#[test]
fn every_transaction_of_the_chain_with_fees_is_printed_as_the_node_printed_it() {
    assert_eq!(compare("evm-fees"), 1_119);
    assert_eq!(compare("evm-log0"), 6);
}

#[test]
fn vote_data_is_refused_and_recorded_as_an_empty_transaction_and_the_rest_is_as_the_node_printed_it() {
    let registry = registry("l1-l2/l1");
    let (mut votes, mut printed_txs) = (0, 0);
    for block in blocks("l1-l2/l1") {
        for (index, (raw, rest)) in block.raw.iter().zip(&block.rest).enumerate() {
            let place = format!("height {} transaction {index}", block.height);
            let mut opaque = Vec::new();
            write_opaque_tx(&registry, raw, &mut opaque);
            if let Ok(ours) = printed(&registry, raw) {
                assert_eq!(ours, typed(rest), "{place}");
                assert_eq!(Json::parse(&opaque), ours, "nothing to hide at {place}");
                printed_txs += 1;
            } else {
                assert_eq!(index, 0, "{place}");
                assert_eq!(Json::parse(&opaque), without_memo(&typed(rest)), "{place}");
                votes += 1;
            }
        }
    }
    assert_eq!((votes, printed_txs), (1281, 289));
}

/// The node's stand-in for a transaction that it cannot decode, without the memo with the error.
fn without_memo(tx: &Json) -> Json {
    let Json::Object(mut members) = tx.clone() else { panic!("{tx:?}") };
    let Json::Object(body) = &mut members[1].1 else { panic!("{tx:?}") };
    let memo = body.iter_mut().find(|member| member.0 == "memo").unwrap();
    assert_eq!(memo.1, Json::Text("decode failed tx".to_owned()));
    memo.1 = Json::Text(String::new());
    Json::Object(members)
}

#[test]
fn descriptors_of_another_chain_refuse_an_unknown_type_and_suggest_newer_descriptors() {
    let (evm, wasm) = (registry("evm-scenario"), registry("wasm-scenario"));
    assert!(wasm.knows("/cosmwasm.wasm.v1.MsgExecuteContract"));
    assert!(!evm.knows("/cosmwasm.wasm.v1.MsgExecuteContract"));
    let raw = blocks("wasm-scenario")
        .flat_map(|block| block.raw)
        .find(|raw| raw.windows(18).any(|part| part == b"MsgExecuteContract"))
        .unwrap();
    let mut out = b"kept".to_vec();
    let error = write_tx(&evm, &raw, &mut out).unwrap_err();
    assert_eq!(error, Error::UnknownType { type_url: "/cosmwasm.wasm.v1.MsgExecuteContract".to_owned() });
    assert!(error.may_be_cured_by_newer_descriptors());
    assert_eq!(out, b"kept");

    write_opaque_tx(&evm, &raw, &mut out);
    let opaque = Json::parse(&out[4..]);
    let Json::Object(members) = &opaque else { panic!("{opaque:?}") };
    let Json::Object(body) = &members[1].1 else { panic!("{opaque:?}") };
    let Json::List(messages) = &body[0].1 else { panic!("{opaque:?}") };
    let Json::Object(message) = &messages[0] else { panic!("{opaque:?}") };
    let names: Vec<&str> = message.iter().map(|member| member.0.as_str()).collect();
    assert_eq!(names, ["@type", "value"]);
    let Json::Object(known) = printed(&wasm, &raw).unwrap() else { panic!() };
    assert_eq!(members[2..], known[2..], "what can be printed is printed");
}

/// minievm v1.2.18 prints `auth_list`, but its descriptors lack it.
#[test]
fn an_authorization_of_an_evm_call_is_printed_although_the_descriptors_of_the_chain_lack_it() {
    let served = descriptors("evm-scenario");
    assert!(!served.windows(9).any(|part| part == b"auth_list"), "the amendment has become idle");
    let call = [50, 8, 10, 1, b'1', 24, 7, 34, 1, 0xff];
    let mut out = Vec::new();
    write_message(&registry("evm-scenario"), "minievm.evm.v1.MsgCall", &call, &mut out).unwrap();
    let expected = concat!(
        r#"{"sender":"","contract_addr":"","input":"","value":"0","access_list":[],"#,
        r#""auth_list":[{"chain_id":"1","address":"","nonce":"7","signature":"/w=="}]}"#
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn signer_fields_come_from_the_chain_and_give_the_signers_of_real_messages() {
    let registry = registry("evm-scenario");
    assert_eq!(registry.signer_fields("/cosmos.authz.v1beta1.MsgExec"), ["grantee"]);
    assert_eq!(registry.signer_fields("/minievm.evm.v1.MsgCall"), ["sender"]);
    assert_eq!(registry.signer_fields("/cosmos.bank.v1beta1.MsgMultiSend"), ["inputs"]);
    assert!(registry.signer_fields("/no.such.Type").is_empty());

    // MsgMultiSend { inputs: [{address: "a"}, {address: "b"}], outputs: [{address: "c"}] }
    let multi_send = [10, 3, 10, 1, b'a', 10, 3, 10, 1, b'b', 18, 3, 10, 1, b'c'];
    let signers = signers_named_by_message(&registry, "/cosmos.bank.v1beta1.MsgMultiSend", &multi_send);
    assert_eq!(signers, ["a", "b"]);
    let cut_off = &multi_send[..9];
    assert_eq!(signers_named_by_message(&registry, "/cosmos.bank.v1beta1.MsgMultiSend", cut_off), ["a"]);
    assert!(signers_named_by_message(&registry, "/cosmos.bank.v1beta1.Supply", &multi_send).is_empty());
}
