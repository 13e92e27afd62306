//! Rules of the node's JSON that no recorded transaction shows, each on a hand-made message.

use crate::synthetic::{
    any, cast, custom, enumeration, field, in_oneof, json, len, list, message, not_null, num, of, registry,
    with, with_map,
};
use proto::descriptor::{FieldDescriptorProto, FieldType};
use proto::json::{Error, MAX_DEPTH, MAX_JSON, Registry, write_opaque_tx, write_tx};

/// A registry with one message `t.M`.
fn one(fields: Vec<FieldDescriptorProto>) -> Registry {
    registry(vec![message("M", fields)], vec![])
}

#[test]
fn absent_bytes_are_null_and_empty_bytes_an_empty_string() {
    let registry = one(vec![field("b", 1, FieldType::Bytes), list(field("bs", 2, FieldType::Bytes))]);
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"b":null,"bs":[]}"#);
    assert_eq!(
        json(&registry, &[len(1, ""), len(2, ""), len(2, [255])]).unwrap(),
        r#"{"b":"","bs":["","/w=="]}"#
    );
}

#[test]
fn hex_bytes_are_upper_case_hex_and_an_empty_string_when_absent() {
    let hex = cast(field("h", 1, FieldType::Bytes), "github.com/cometbft/cometbft/libs/bytes.HexBytes");
    let registry = one(vec![hex]);
    assert_eq!(json(&registry, &[len(1, [0xab, 0x0c])]).unwrap(), r#"{"h":"AB0C"}"#);
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"h":""}"#);
}

#[test]
fn contract_messages_are_json_inline_and_bytes_that_are_not_json_are_refused() {
    let raw = |name, number| cast(field(name, number, FieldType::Bytes), "RawContractMessage");
    let registry = one(vec![raw("msg", 1), list(raw("all", 2))]);
    let parts = [len(1, r#"{ "a": [1, 2] }"#), len(2, "1"), len(2, "null")];
    assert_eq!(json(&registry, &parts).unwrap(), r#"{"msg":{"a":[1,2]},"all":[1,null]}"#);
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"msg":null,"all":[]}"#);
    let error = json(&registry, &[len(1, "{")]).unwrap_err();
    assert_eq!(error, Error::Malformed { place: "t.M.msg".to_owned(), reason: "JSON that is cut off" });
    assert!(json(&registry, &[len(1, "")]).is_err(), "no bytes are no JSON");
}

#[test]
fn decimals_have_eighteen_digits_and_unset_numbers_of_the_sdk_are_zero() {
    let dec = |name, number| custom(field(name, number, FieldType::String), "cosmossdk.io/math.LegacyDec");
    let int = |name, number| custom(field(name, number, FieldType::Bytes), "cosmossdk.io/math.Int");
    let registry = one(vec![not_null(dec("d", 1)), dec("dn", 2), not_null(int("i", 3)), int("n", 4)]);
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"d":"0","dn":null,"i":"0","n":null}"#);
    let parts = [len(1, "-1500000000000000000"), len(2, "1"), len(3, "-7"), len(4, "0")];
    let expected = r#"{"d":"-1.500000000000000000","dn":"0.000000000000000001","i":"-7","n":"0"}"#;
    assert_eq!(json(&registry, &parts).unwrap(), expected);
}

#[test]
fn an_unset_message_is_null_unless_it_is_not_nullable_and_then_its_zero_object_all_the_way_down() {
    let inner = message(
        "Inner",
        vec![
            field("n", 1, FieldType::Uint64),
            field("small", 2, FieldType::Int32),
            field("b", 3, FieldType::Bytes),
            list(field("l", 4, FieldType::String)),
            not_null(with(of("time", 5, ".google.protobuf.Timestamp"), |o| o.stdtime = true)),
            not_null(with(of("span", 6, ".google.protobuf.Duration"), |o| o.stdduration = true)),
            not_null(of("plain", 7, ".google.protobuf.Timestamp")),
            field("yes", 8, FieldType::Bool),
            any("any", 9),
        ],
    );
    let middle = message("Middle", vec![not_null(of("inner", 1, ".t.Inner")), of("other", 2, ".t.Inner")]);
    let outer = message("M", vec![of("unset", 1, ".t.Middle"), not_null(of("zero", 2, ".t.Middle"))]);
    let registry = registry(vec![outer, middle, inner], vec![]);
    let expected = concat!(
        r#"{"unset":null,"zero":{"inner":{"n":"0","small":0,"b":null,"l":[],"time":"0001-01-01T00:00:00Z","#,
        r#""span":"0s","plain":"1970-01-01T00:00:00Z","yes":false,"any":null},"other":null}}"#
    );
    assert_eq!(json(&registry, &[]).unwrap(), expected);
}

#[test]
fn times_and_durations_are_null_when_unset_and_the_epoch_when_empty() {
    let registry = one(vec![
        with(of("time", 1, ".google.protobuf.Timestamp"), |o| o.stdtime = true),
        with(of("span", 2, ".google.protobuf.Duration"), |o| o.stdduration = true),
        of("plain", 3, ".google.protobuf.Duration"),
    ]);
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"time":null,"span":null,"plain":null}"#);
    let empty = [len(1, ""), len(2, ""), len(3, "")];
    assert_eq!(
        json(&registry, &empty).unwrap(),
        r#"{"time":"1970-01-01T00:00:00Z","span":"0s","plain":"0s"}"#
    );
    let half = [num(1, 3), num(2, 500_000_000)].concat();
    let set = [len(1, &half), len(2, &half), len(3, &half)];
    let expected = r#"{"time":"1970-01-01T00:00:03.500Z","span":"3.500s","plain":"3.500s"}"#;
    assert_eq!(json(&registry, &set).unwrap(), expected);
}

#[test]
fn an_enum_is_its_first_name_and_an_unknown_value_a_bare_number() {
    let state = |name, number| FieldDescriptorProto {
        type_name: ".t.State".to_owned(),
        ..field(name, number, FieldType::Enum)
    };
    let states = enumeration("State", &[("OFF", 0), ("ON", 1), ("ALSO_ON", 1), ("BROKEN", -1)]);
    let registry = registry(vec![message("M", vec![state("s", 1), list(state("l", 2))])], vec![states]);
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"s":"OFF","l":[]}"#);
    let parts = [num(1, 9999), len(2, [1, 0]), num(2, u64::MAX)];
    assert_eq!(json(&registry, &parts).unwrap(), r#"{"s":9999,"l":["ON","OFF","BROKEN"]}"#);
}

#[test]
fn the_access_types_of_wasm_have_the_names_of_their_go_method() {
    let registry = crate::recorded::registry("wasm-scenario");
    let mut out = Vec::new();
    for value in [0, 1, 3, 4, 9] {
        proto::json::write_message(&registry, "cosmwasm.wasm.v1.AccessConfig", &num(1, value), &mut out)
            .unwrap();
    }
    let names: Vec<String> = ["Unspecified", "Nobody", "Everybody", "AnyOfAddresses", "Unspecified"]
        .map(|name| format!(r#"{{"permission":"{name}","addresses":[]}}"#))
        .to_vec();
    assert_eq!(String::from_utf8(out).unwrap(), names.concat());
}

#[test]
fn of_a_oneof_only_the_last_member_is_printed_and_none_if_none_is_set() {
    let registry = one(vec![
        field("before", 1, FieldType::String),
        in_oneof(field("number", 2, FieldType::Uint64)),
        in_oneof(field("bytes", 3, FieldType::Bytes)),
        in_oneof(of("message", 4, ".t.M")),
        field("after", 5, FieldType::String),
    ]);
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"before":"","after":""}"#);
    assert_eq!(json(&registry, &[num(2, 0)]).unwrap(), r#"{"before":"","number":"0","after":""}"#);
    let both = [num(2, 1), len(3, "")];
    assert_eq!(json(&registry, &both).unwrap(), r#"{"before":"","bytes":"","after":""}"#);
    let twice = [len(4, len(1, "x")), len(4, len(5, "y"))];
    let expected = r#"{"before":"","message":{"before":"","after":"y"},"after":""}"#;
    assert_eq!(json(&registry, &twice).unwrap(), expected, "a member is replaced, not merged");
}

#[test]
fn a_proto3_optional_field_is_null_when_unset() {
    let optional =
        FieldDescriptorProto { proto3_optional: true, ..in_oneof(field("n", 1, FieldType::Uint32)) };
    let registry = one(vec![optional]);
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"n":null}"#);
    assert_eq!(json(&registry, &[num(1, 0)]).unwrap(), r#"{"n":0}"#);
}

#[test]
fn maps_are_sorted_by_key_and_the_last_of_equal_keys_counts() {
    let texts = registry(vec![with_map("M", FieldType::String, field("v", 2, FieldType::Int64))], vec![]);
    let entry = |key: &str, value| len(1, [len(1, key), num(2, value)].concat());
    let parts = [entry("b", 1), entry("a\"", 2), entry("b", 3), len(1, "")];
    assert_eq!(json(&texts, &parts).unwrap(), r#"{"map":{"":"0","a\"":"2","b":"3"}}"#);
    assert_eq!(json(&texts, &[]).unwrap(), r#"{"map":{}}"#);

    let numbers = registry(vec![with_map("M", FieldType::Int64, of("v", 2, ".t.M"))], vec![]);
    let entry = |key: i64| len(1, num(1, key.cast_unsigned()));
    let parts = [entry(10), entry(9), entry(-1)];
    assert_eq!(json(&numbers, &parts).unwrap(), r#"{"map":{"-1":null,"9":null,"10":null}}"#);

    let flags = registry(vec![with_map("M", FieldType::Bool, field("v", 2, FieldType::Bytes))], vec![]);
    let parts = [len(1, num(1, 1)), len(1, "")];
    assert_eq!(json(&flags, &parts).unwrap(), r#"{"map":{"false":"","true":""}}"#);
}

#[test]
fn lists_are_read_packed_and_unpacked_and_mixed() {
    let registry = one(vec![
        list(field("u", 1, FieldType::Uint64)),
        list(field("f", 2, FieldType::Fixed32)),
        list(field("s", 3, FieldType::Sint32)),
    ]);
    let parts =
        [num(1, 1), len(1, [2, 0x80, 0x01]), num(1, 3), len(2, [1, 0, 0, 0, 2, 0, 0, 0]), len(3, [1, 2])];
    assert_eq!(json(&registry, &parts).unwrap(), r#"{"u":["1","2","128","3"],"f":[1,2],"s":[-1,1]}"#);
    assert!(json(&registry, &[len(2, [1, 0, 0])]).is_err(), "a packed list that is cut off");
}

#[test]
fn of_a_singular_field_the_last_value_counts_and_split_messages_are_merged() {
    let registry =
        one(vec![field("a", 1, FieldType::String), field("b", 2, FieldType::Uint32), of("m", 3, ".t.M")]);
    let parts = [len(1, "x"), len(1, "y"), len(3, len(1, "in")), len(3, num(2, 5))];
    let expected = r#"{"a":"y","b":0,"m":{"a":"in","b":5,"m":null}}"#;
    assert_eq!(json(&registry, &parts).unwrap(), expected);
}

#[test]
fn an_any_is_flattened_and_well_known_types_are_under_value() {
    let registry = one(vec![any("a", 1), field("s", 2, FieldType::String)]);
    let packed = |url: &str, value: &[u8]| len(1, [len(1, url), len(2, value)].concat());
    assert_eq!(json(&registry, &[]).unwrap(), r#"{"a":null,"s":""}"#);
    let inner = packed("/t.M", &len(2, "x"));
    assert_eq!(json(&registry, &[inner]).unwrap(), r#"{"a":{"@type":"/t.M","a":null,"s":"x"},"s":""}"#);
    for (name, value, expected) in [
        ("Duration", num(1, 3), r#""3s""#),
        ("Timestamp", vec![], r#""1970-01-01T00:00:00Z""#),
        ("StringValue", len(1, "x"), r#""x""#),
        ("Empty", vec![], "{}"),
    ] {
        let url = format!("/google.protobuf.{name}");
        let expected = format!(r#"{{"a":{{"@type":"{url}","value":{expected}}},"s":""}}"#);
        assert_eq!(json(&registry, &[packed(&url, &value)]).unwrap(), expected);
    }
    for url in ["", "t.M", "/t.Missing", "type.googleapis.com/t.M"] {
        let error = json(&registry, &[packed(url, &[])]).unwrap_err();
        assert_eq!(error, Error::UnknownType { type_url: url.to_owned() });
    }
}

#[test]
fn a_missing_type_is_an_error_only_where_it_is_used() {
    let registry = one(vec![of("gone", 1, ".t.Gone"), field("s", 2, FieldType::String)]);
    assert_eq!(json(&registry, &[len(2, "x")]).unwrap(), r#"{"gone":null,"s":"x"}"#);
    let error = json(&registry, &[len(1, "")]).unwrap_err();
    assert_eq!(error, Error::UnknownType { type_url: "/t.Gone".to_owned() });
    assert!(!registry.knows("/t.Gone"));
    assert!(registry.knows("/t.M"));
    assert!(!registry.knows("t.M"));
}

#[test]
fn unknown_fields_are_refused_unless_their_number_marks_them_as_ignorable() {
    let registry = one(vec![field("s", 1, FieldType::String)]);
    let error = json(&registry, &[len(1, "x"), num(2, 1)]).unwrap_err();
    assert_eq!(error, Error::UnknownField { message: "t.M".to_owned(), number: 2 });
    assert!(error.may_be_cured_by_newer_descriptors());
    let group = vec![0x83, 0x40, 0x08, 1, 0x84, 0x40];
    let ignored = [num(1024, 1), len(1, "x"), group, len(2047, "y")];
    assert_eq!(json(&registry, &ignored).unwrap(), r#"{"s":"x"}"#);
    let error = json(&registry, &[num(1, 1)]).unwrap_err();
    assert!(matches!(error, Error::Malformed { place, .. } if place == "t.M.s"));
}

#[test]
fn nesting_is_bounded() {
    let registry = one(vec![of("m", 1, ".t.M")]);
    let nested = |levels: usize| (1..levels).fold(vec![], |inner: Vec<u8>, _| len(1, inner));
    assert!(json(&registry, &[nested(MAX_DEPTH)]).is_ok());
    let error = json(&registry, &[nested(MAX_DEPTH + 1)]).unwrap_err();
    assert_eq!(error, Error::TooDeep { limit: MAX_DEPTH });
}

#[test]
fn a_few_bytes_cannot_produce_unbounded_output() {
    // Each empty element of the list prints its two million bytes of zero objects.
    let mut messages = vec![message("M", vec![list(of("l", 1, ".t.T0"))])];
    for level in 0..20 {
        let next = format!(".t.T{}", level + 1);
        let fields = vec![not_null(of("a", 1, &next)), not_null(of("b", 2, &next))];
        messages.push(message(&format!("T{level}"), fields));
    }
    messages.push(message("T20", vec![]));
    let registry = registry(messages, vec![]);
    let error = json(&registry, &vec![len(1, ""); 10]).unwrap_err();
    assert_eq!(error, Error::TooLarge { limit: MAX_JSON });
}

#[test]
fn an_opaque_transaction_encodes_only_the_innermost_unknown_messages() {
    let registry = one(vec![any("a", 1), field("s", 2, FieldType::String)]);
    let packed = |field, url: &str, value: &[u8]| len(field, [len(1, url), len(2, value)].concat());
    let nested = packed(1, "/gone.Msg", b"\x01\x02");
    let known = packed(1, "/t.M", &[nested, len(2, "x")].concat());
    let broken = packed(1, "/t.M", b"\xff");
    let raw = [len(1, [known, broken].concat()), len(3, [1])].concat();

    let mut out = b"#".to_vec();
    assert!(write_tx(&registry, &raw, &mut out).is_err());
    assert_eq!(out, b"#");
    write_opaque_tx(&registry, &raw, &mut out);
    let expected = concat!(
        r##"#{"@type":"/cosmos.tx.v1beta1.Tx","body":{"messages":["##,
        r#"{"@type":"/t.M","a":{"@type":"/gone.Msg","value":"AQI="},"s":"x"},{"@type":"/t.M","value":"/w=="}]},"#,
        r#""auth_info":{},"signatures":["AQ=="]}"#
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn an_envelope_with_an_unknown_field_is_refused() {
    let registry = one(vec![]);
    let mut out = Vec::new();
    let error = write_tx(&registry, &num(1024, 1), &mut out).unwrap_err();
    assert_eq!(error, Error::UnknownField { message: "cosmos.tx.v1beta1.TxRaw".to_owned(), number: 1024 });
    let error = write_tx(&registry, &len(2, num(1024, 1)), &mut out).unwrap_err();
    assert_eq!(error, Error::UnknownField { message: "cosmos.tx.v1beta1.AuthInfo".to_owned(), number: 1024 });
    assert!(write_tx(&registry, &len(1, num(1024, 1)), &mut out).is_ok());
}

#[test]
fn malformed_descriptors_and_those_without_an_application_are_refused() {
    assert!(matches!(Registry::from_descriptors(b"\xff"), Err(Error::Descriptors(_))));
    let name = "cosmos.tx.v1beta1.TxBody";
    assert_eq!(Registry::from_descriptors(b"").unwrap_err(), Error::NotAnApplication { name });
}
