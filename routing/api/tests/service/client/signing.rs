//! A wallet's use of `/op-hook`: a signed transaction, as base64. Only the rollup checks the signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use proto::tx::{Any, AuthInfo, Message as _, SignerInfo, TxBody, TxRaw};
use serde_json::Value;

/// `minievm.evm.v1.MsgCall` without its lists, which a hook leaves empty.
#[derive(Clone, PartialEq, prost::Message)]
struct Call {
    #[prost(string, tag = "1")]
    sender: String,
    #[prost(string, tag = "2")]
    contract_addr: String,
    #[prost(string, tag = "3")]
    input: String,
    #[prost(string, tag = "4")]
    value: String,
}

/// The `hook` of `signed_op_hook` for the `hook` of a response.
pub(crate) fn sign(hook: &Value) -> String {
    let messages = hook.as_array().unwrap().iter().map(call).collect();
    let body = TxBody { messages, ..TxBody::default() };
    let info = SignerInfo { public_key: None, mode_info: None, sequence: 7 };
    let auth = AuthInfo { signer_infos: vec![info], ..AuthInfo::default() };
    let raw = TxRaw {
        body_bytes: body.encode_to_vec(),
        auth_info_bytes: auth.encode_to_vec(),
        signatures: vec![vec![7; 65]],
    };
    STANDARD.encode(raw.encode_to_vec())
}

fn call(msg: &Value) -> Any {
    let inside: Value = serde_json::from_str(msg["msg"].as_str().unwrap()).unwrap();
    let text = |name: &str| inside[name].as_str().unwrap().to_owned();
    let call = Call {
        sender: text("sender"),
        contract_addr: text("contract_addr"),
        input: text("input"),
        value: text("value"),
    };
    Any { type_url: msg["msg_type_url"].as_str().unwrap().to_owned(), value: call.encode_to_vec() }
}
