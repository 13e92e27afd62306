//! Signers, message types and Ethereum transactions.

use chain::Account;
use chain::comet::{Attribute, Event};
use chain::fee::FeeTotals;
use chain::key::{KeyCache, key_address};
use chain::signer::signers;
use chain::tx::{DecodedTx, SignMode, TypedBytes, is_eth_tx};
use cosmrs::proto::Any;
use cosmrs::proto::cosmos::base::v1beta1::Coin;
use cosmrs::proto::cosmos::tx::v1beta1::mode_info::{Single, Sum};
use cosmrs::proto::cosmos::tx::v1beta1::{AuthInfo, Fee, ModeInfo, SignerInfo, TxBody, TxRaw};
use cosmrs::proto::prost::Message;
use cosmrs::proto::prost::encoding::encode_varint;

const SECP256K1: &str = "/cosmos.crypto.secp256k1.PubKey";
const ETH: &str = "/initia.crypto.v1beta1.ethsecp256k1.PubKey";
/// The generator of secp256k1: the public key of the secret 1, whose addresses are well known.
const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

/// A protobuf message of byte fields.
fn message(parts: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, bytes) in parts {
        out.push(number << 3 | 2);
        encode_varint(bytes.len() as u64, &mut out);
        out.extend_from_slice(bytes);
    }
    out
}

fn key(type_url: &str, hex: &str) -> Any {
    Any { type_url: type_url.to_owned(), value: message(&[(1, &hex::decode(hex).unwrap())]) }
}

fn address(key: &Any) -> Option<String> {
    key_address(&key.type_url, &key.value).map(|account| account.to_hex())
}

#[test]
fn every_key_type_has_the_address_that_the_chain_gives_it() {
    let multisig = |nested: bool| {
        let inner = key(SECP256K1, KEY).encode_to_vec();
        let other = key("/cosmos.crypto.ed25519.PubKey", &"11".repeat(32)).encode_to_vec();
        let value = [&[0x08, 2], &message(&[(2, &inner), (2, &other)])[..]].concat();
        let multisig = Any { type_url: "/cosmos.crypto.multisig.LegacyAminoPubKey".to_owned(), value };
        if !nested {
            return multisig;
        }
        let value = [&[0x08, 1], &message(&[(2, &multisig.encode_to_vec())])[..]].concat();
        Any { value, ..multisig }
    };
    let derivable = Any {
        type_url: "/initia.crypto.v1.derivable.PubKey".to_owned(),
        value: message(&[
            (1, b"0x1"),
            (2, b"ethereum_derivable_account"),
            (3, b"authenticate"),
            (4, b"key|domain"),
        ]),
    };
    for (key, expected) in [
        (key(SECP256K1, KEY), "0x751e76e8199196d454941c45d1b3a323f1433bd6"),
        (key(ETH, KEY), "0x7e5f4552091a69125d5dfcb7b8c2659029395bdf"),
        (key("/noble.forwarding.v1.ForwardingPubKey", &"22".repeat(20)), &format!("0x{}", "22".repeat(20))),
        // The next were computed independently, with Python's hashlib.
        (
            key("/cosmos.crypto.ed25519.PubKey", &"11".repeat(32)),
            "0x02d449a31fbb267c8f352e9968a79e3e5fc95c1b",
        ),
        (
            key("/cosmos.crypto.secp256r1.PubKey", KEY),
            "0x5111bba78d8129bebea5722c4710270b7508e6096afc377402769ad9d45428ef",
        ),
        (multisig(false), "0x2414ff74a8d2f117eef59ef8e9ff81c963061336"),
        (multisig(true), "0xa7cc1f03e26192deaf060122a5e453ce62c5a9d3"),
        (derivable, "0x68a863569b4e07c5d03f0079004926518fecf58ca6692911a65adfb250748f05"),
    ] {
        assert_eq!(address(&key).as_deref(), Some(expected), "{}", key.type_url);
    }
}

#[test]
fn an_unknown_or_malformed_key_has_no_address() {
    for key in [
        key("/new.crypto.PubKey", KEY),
        key(SECP256K1, "0279"),
        key(ETH, &"ff".repeat(33)),
        key("/cosmos.crypto.multisig.LegacyAminoPubKey", "00"),
        Any { type_url: ETH.to_owned(), value: vec![0xff] },
    ] {
        assert_eq!(address(&key), None, "{}", key.type_url);
    }
    let mut nested = key(SECP256K1, KEY);
    for _ in 0..100_u8 {
        let value = message(&[(2, &nested.encode_to_vec())]);
        nested = Any { type_url: "/cosmos.crypto.multisig.LegacyAminoPubKey".to_owned(), value };
    }
    assert_eq!(address(&nested), None);
}

#[test]
fn the_cache_gives_the_same_addresses_before_and_after_it_overflows() {
    let mut cache = KeyCache::new(2);
    let keys: Vec<Any> = [KEY, "03c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"]
        .map(|hex| key(ETH, hex))
        .into_iter()
        .chain((1..6_u8).map(|n| key(ETH, &format!("02{}{n:02x}", "00".repeat(31)))))
        .collect();
    for _ in 0..3 {
        for key in &keys {
            assert_eq!(cache.address(&key.type_url, &key.value), key_address(&key.type_url, &key.value));
        }
    }
}

fn raw(messages: &[&str], keys: Vec<Option<Any>>, fee: Vec<Coin>) -> Vec<u8> {
    let messages = messages.iter().map(|url| Any { type_url: (*url).to_owned(), value: vec![] }).collect();
    let mode = ModeInfo { sum: Some(Sum::Single(Single { mode: 9999 })) };
    let info = |public_key| SignerInfo { public_key, mode_info: Some(mode.clone()), sequence: 7 };
    let auth = AuthInfo {
        signer_infos: keys.into_iter().map(info).collect(),
        fee: Some(Fee { amount: fee, ..Fee::default() }),
        ..AuthInfo::default()
    };
    let body = TxBody { messages, ..TxBody::default() };
    TxRaw {
        body_bytes: body.encode_to_vec(),
        auth_info_bytes: auth.encode_to_vec(),
        signatures: vec![vec![]],
    }
    .encode_to_vec()
}

fn numbered(n: u8) -> Account {
    Account::from_bytes(&[n; 20]).unwrap()
}

fn event(kind: &'static str, key: &'static str, value: String) -> Event<'static> {
    Event {
        kind: kind.into(),
        attributes: vec![Attribute { key: key.into(), value: value.into(), index: true }],
    }
}

/// Keys, events, signers from the first message, and the expected signers.
type Case<'a> = (Vec<Option<Any>>, &'a [Event<'a>], Vec<Account>, Vec<Account>);

#[test]
fn a_signer_without_a_usable_key_is_found_by_sequence_then_message_then_sender() {
    let by_key = Account::from_hex_literal("0x7e5f4552091a69125d5dfcb7b8c2659029395bdf").unwrap();
    let sequences = [2, 3].map(|n| event("tx", "acc_seq", format!("{}/{n}", numbered(n).to_bech32("init"))));
    let sender = [event("message", "sender", numbered(9).to_bech32("init"))];
    let known = || Some(key(ETH, KEY));
    let unknown = || Some(key("/new.PubKey", KEY));
    let one = || vec![numbered(5)];
    let cases: [Case<'_>; 9] = [
        (vec![known()], &sequences, one(), vec![by_key]),
        (vec![known(), None], &sequences, one(), vec![by_key, numbered(3)]),
        (vec![None, None], &sequences, one(), vec![numbered(2), numbered(3)]),
        (vec![unknown()], &sequences, one(), vec![numbered(2)]),
        (vec![None], &sender, one(), vec![numbered(5)]),
        (vec![None], &sender, vec![], vec![numbered(9)]),
        (vec![None], &[], vec![], vec![]),
        (vec![], &sequences, one(), vec![numbered(2), numbered(3)]),
        (vec![known(), known()], &[], one(), vec![by_key]),
    ];
    for (at, (keys, events, by_message, expected)) in cases.into_iter().enumerate() {
        let tx = DecodedTx::decode(&raw(&["/a.M"], keys, vec![])).unwrap();
        let found = signers(&tx, events, || by_message, "init", &mut KeyCache::new(1));
        assert_eq!(found, expected, "case {at}");
    }
}

#[test]
fn a_forwarding_registration_is_signed_by_its_key_with_an_empty_signature() {
    let keys = vec![Some(key("/noble.forwarding.v1.ForwardingPubKey", &"22".repeat(20)))];
    let tx = DecodedTx::decode(&raw(&["/noble.forwarding.v1.MsgRegisterAccount"], keys, vec![])).unwrap();
    assert_eq!(tx.signatures, [[0; 0]]);
    let found = signers(&tx, &[], Vec::new, "init", &mut KeyCache::new(1));
    assert_eq!(found, [Account::from_bytes(&[0x22; 20]).unwrap()]);
}

#[test]
fn message_types_are_the_distinct_top_level_ones_in_order_of_name() {
    let send = Any { type_url: "/cosmos.bank.v1beta1.MsgSend".to_owned(), value: vec![] };
    let exec = Any {
        type_url: "/cosmos.authz.v1beta1.MsgExec".to_owned(),
        value: message(&[(2, &send.encode_to_vec())]),
    };
    let body = TxBody { messages: vec![exec], ..TxBody::default() };
    let raw_tx = TxRaw { body_bytes: body.encode_to_vec(), auth_info_bytes: vec![], signatures: vec![] };
    // An empty auth info is left out by the encoder, and a frame without one is refused.
    assert!(DecodedTx::decode(&raw_tx.encode_to_vec()).is_err());
    let auth_info_bytes =
        AuthInfo { signer_infos: vec![SignerInfo::default()], ..AuthInfo::default() }.encode_to_vec();
    let tx = DecodedTx::decode(&TxRaw { auth_info_bytes, ..raw_tx }.encode_to_vec()).unwrap();
    assert_eq!(tx.message_types, ["cosmos.authz.v1beta1.MsgExec"]);
    let tx = DecodedTx::decode(&raw(&["/b.B", "/a.A", "/b.B"], vec![None], vec![])).unwrap();
    assert_eq!(tx.message_types, ["a.A", "b.B"]);
    assert_eq!(tx.messages.len(), 3);
}

#[test]
fn sign_mode_9999_and_amounts_beyond_128_bits_survive() {
    let amount = "1606938044258990275541962092341162602522202993782792835301376".to_owned(); // 2^200
    let fee = vec![Coin { denom: "wei".to_owned(), amount: amount.clone() }];
    let tx = DecodedTx::decode(&raw(&["/a.M"], vec![None], fee)).unwrap();
    assert_eq!(tx.signer_infos[0].mode, SignMode::Single(9999));
    let mut totals = FeeTotals::new();
    totals.add(&tx.fee);
    assert_eq!(totals.into_sorted(), [("wei".to_owned(), amount)]);
}

#[test]
fn bytes_that_are_not_a_transaction_are_an_error() {
    let good = raw(&["/a.M"], vec![None], vec![]);
    let mut trailing = good.clone();
    trailing.extend([0x20, 1]);
    let swapped =
        TxRaw { body_bytes: vec![], auth_info_bytes: vec![1], signatures: vec![vec![1]] }.encode_to_vec();
    for bytes in
        [&[][..], &[0x28, 0xb5, 0x2f, 0xfd], &trailing, &swapped, &good[..good.len() - 3], &[0xff; 40]]
    {
        assert!(DecodedTx::decode(bytes).is_err(), "{bytes:?}");
    }
}

/// A change to a transaction after which it is not an Ethereum transaction.
type Change = fn(&mut DecodedTx);

/// A message with this sender.
fn from(sender: Account) -> Vec<u8> {
    message(&[(1, sender.to_bech32("init").as_bytes())])
}

fn one(denom: &str) -> chain::tx::Coin {
    chain::tx::Coin { denom: denom.to_owned(), amount: "1".to_owned() }
}

#[test]
fn an_ethereum_transaction_is_recognized_by_message_memo_mode_signature_sender_and_fee() {
    let memo = r#"{"type":2,"gas_fee_cap":0,"gas_tip_cap":0,"gas_limit":200000}"#;
    let paid = memo.replacen(":0,", ":1000000000000000000000000,", 1);
    let mut tx = DecodedTx::decode(&raw(&["/minievm.evm.v1.MsgCall"], vec![None], vec![])).unwrap();
    tx.memo = memo.to_owned();
    tx.messages[0].value = from(numbered(1));
    assert!(is_eth_tx(&tx, "init", false, Some("GAS")) && is_eth_tx(&tx, "init", false, None));

    let changed: [(&str, Change); 14] = [
        ("another message", |tx| tx.messages[0].type_url = "/minievm.evm.v1.MsgCreate2".to_owned()),
        ("two messages", |tx| tx.messages.push(TypedBytes::default())),
        ("another mode", |tx| tx.signer_infos[0].mode = SignMode::Single(1)),
        ("two signers", |tx| tx.signer_infos.push(tx.signer_infos[0].clone())),
        ("no signature", |tx| tx.signatures.clear()),
        ("no memo", |tx| tx.memo.clear()),
        ("a free memo", |tx| tx.memo = "hello".to_owned()),
        ("the old memo", |tx| tx.memo = r#"{"type":2,"gas_fee_cap":"1","gas_tip_cap":"0"}"#.to_owned()),
        ("strings", |tx| tx.memo = tx.memo.replace(":0,", ":\"0\",")),
        ("an unknown member", |tx| tx.memo = tx.memo.replace('}', ",\"x\":1}")),
        ("an unknown type", |tx| tx.memo = tx.memo.replace(":2,", ":3,")),
        ("a long sender", |tx| tx.messages[0].value = from(Account::ZERO_LONG)),
        ("another fee denom", |tx| tx.fee = vec![one("umin")]),
        ("two fees", |tx| tx.fee = vec![one("GAS"), one("GAS")]),
    ];
    for (what, change) in changed {
        let mut other = tx.clone();
        change(&mut other);
        assert!(!is_eth_tx(&other, "init", false, Some("GAS")), "{what}");
    }
    // The node rejects a fee that does not fit the price.
    tx.memo.clone_from(&paid);
    assert!(!is_eth_tx(&tx, "init", true, Some("GAS")));
    tx.fee = vec![one("GAS")];
    assert!(is_eth_tx(&tx, "init", false, Some("GAS")) && !is_eth_tx(&tx, "init", false, None));
    assert!(is_eth_tx(&tx, "init", true, None), "the ante handler has accepted it");
    tx.fee = vec![one("umin")];
    assert!(!is_eth_tx(&tx, "init", false, Some("GAS")));
}
