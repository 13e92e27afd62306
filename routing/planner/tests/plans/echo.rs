//! Operations that clients send back.

use crate::mainnet::{ETH, IBC_INIT, Mainnet, YOMI_INIT};
use planner::{Operation, operations, same_route};
use serde_json::{Value, json};

fn route(from: (&str, &str), to: (&str, &str)) -> Vec<Operation> {
    let mainnet = Mainnet::new();
    let plan = mainnet.plan(&mainnet.request(from, to, 1_000_000_000_000_000)).unwrap().remove(0);
    operations(mainnet.world(), &plan)
}

fn all() -> Vec<Vec<Operation>> {
    let init = ("interwoven-1", "uinit");
    vec![
        route(init, ("echelon-1", IBC_INIT)),
        route(init, ("yominet-1", YOMI_INIT)),
        route(("1", "ethereum-native"), ("interwoven-1", ETH)),
        route(init, init),
        route(("yominet-1", crate::mainnet::OP_INIT), ("yominet-1", YOMI_INIT)),
    ]
}

fn read(operations: &Value) -> Result<Vec<Operation>, String> {
    serde_json::from_value(operations.clone()).map_err(|why| why.to_string())
}

#[test]
fn every_kind_of_operation_round_trips() {
    let mut kinds: Vec<_> = all().iter().map(|operations| operations[0].kind.name()).collect();
    for operations in all() {
        let body = serde_json::to_value(&operations).unwrap();
        let echoed = read(&body).unwrap();
        assert_eq!(echoed.len(), operations.len());
        assert_eq!(serde_json::to_value(&echoed).unwrap(), body);
        assert_eq!(same_route(&operations, &echoed), Ok(()));
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["bank_send", "layer_zero_transfer", "op_init_transfer", "swap", "transfer"]);
}

#[test]
fn old_names_numbers_and_missing_fields_are_accepted() {
    let transfer = route(("interwoven-1", "uinit"), ("echelon-1", IBC_INIT));
    let old = json!([{"transfer": {
        "port": "transfer", "channel": "channel-35", "chain_id": "interwoven-1", "pfm_enabled": true,
        "dest_denom": IBC_INIT, "denom_out": null,
    }}]);
    assert_eq!(same_route(&transfer, &read(&old).unwrap()), Ok(()));
    let deposit = route(("interwoven-1", "uinit"), ("yominet-1", YOMI_INIT));
    let number = json!([{"op_init_transfer": {"op_init_bridge_id": 11}, "amount_in": "5", "more": null}]);
    assert!(read(&number).unwrap_err().contains("`more`"));
    let number = json!([{"op_init_transfer": {"op_init_bridge_id": 11}, "amount_in": "5"}]);
    assert_eq!(same_route(&deposit, &read(&number).unwrap()), Ok(()));
    let other =
        json!([{"op_init_transfer": {"op_init_bridge_id": 11}, "cctp_transfer_v2": null, "swap": null}]);
    assert_eq!(same_route(&deposit, &read(&other).unwrap()), Ok(()));
    let other = json!([{"op_init_transfer": {}, "cctp_transfer_v2": {"max_fee": "0"}}]);
    assert!(read(&other).unwrap_err().contains("`cctp_transfer_v2`"));
}

#[test]
fn another_route_is_refused_by_field() {
    let changes = [
        (0, "/0/transfer/channel", json!("channel-36"), "transfer.channel"),
        (0, "/0/transfer/dest_denom", json!("ibc/00"), ""),
        (0, "/0/transfer/denom_out", json!("ibc/00"), "transfer.denom_out"),
        (0, "/0/transfer/to_chain_id", json!("cabal-1"), "transfer.to_chain_id"),
        (1, "/0/op_init_transfer/op_init_bridge_id", json!(12), "op_init_transfer.op_init_bridge_id"),
        (
            2,
            "/0/layer_zero_transfer/destination_endpoint_id",
            json!(1),
            "layer_zero_transfer.destination_endpoint_id",
        ),
        (
            2,
            "/0/layer_zero_transfer/source_oft_contract_address",
            json!("0x2"),
            "layer_zero_transfer.source_oft_contract_address",
        ),
        (3, "/0/bank_send/denom", json!("uusdc"), "bank_send.denom"),
        (4, "/0/swap/swap_in/swap_venue/name", json!("initia-dex"), "swap.swap_in.swap_venue.name"),
        (4, "/0/swap/swap_in/swap_operations/0/pool", json!("0x1"), "swap.swap_in.swap_operations"),
        (4, "/0/amount_out", json!("1"), ""),
    ];
    for (route, place, value, field) in changes {
        let operations = &all()[route];
        let mut body = serde_json::to_value(operations).unwrap();
        *body.pointer_mut(place).unwrap() = value;
        let answer = same_route(operations, &read(&body).unwrap());
        let refused = answer.as_ref().err().map_or("", |mismatch| mismatch.field.as_str());
        assert_eq!(refused, field, "{place}");
    }
}

#[test]
fn other_kinds_and_other_numbers_of_operations_are_refused() {
    let transfer = &all()[0];
    let mismatch = same_route(transfer, &all()[1]).unwrap_err();
    assert_eq!(
        mismatch.to_string(),
        "operations[0].kind is `op_init_transfer`, which is not this route's: it is `transfer`"
    );
    assert_eq!(same_route(transfer, &[]).unwrap_err().given, "none");
    let twice = [transfer.clone(), transfer.clone()].concat();
    assert_eq!(same_route(transfer, &twice).unwrap_err().operation, 1);
}

#[test]
fn an_invalid_operation_is_named() {
    for (operation, expected) in [
        (json!({"axelar_transfer": {}}), "operation `axelar_transfer` is none of this service's"),
        (json!({"tx_index": 0}), "exactly one kind, this one has 0"),
        (json!({"transfer": {}, "bank_send": {}}), "exactly one kind, this one has 2"),
        (json!({"swap": {"swap_out": {}}}), "operation `swap`: missing field `swap_in`"),
        (json!({"transfer": {"channel": 7}}), "operation `transfer`: invalid type"),
        (json!({"transfer": {}, "tx_index": -1}), "tx_index is not a small number"),
        (json!({"transfer": {}, "amount_in": 5}), "amount_in is 5 and not a text"),
    ] {
        let why = read(&json!([operation])).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}
