//! Verification of a signed op hook: it must contain exactly the calls that a deposit needs.
//!
//! The rollup executes the signed bytes once, as their signer (`router-mechanics.md` §5.4, §5.5). Only the rollup
//! verifies the signature, because it covers an account number and a sequence that are known only there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Account;
use chain::key::key_address;
use prost::Message as _;
use registry::{ChainRef, Registry};

use crate::address;
use crate::amino::{Amino as _, Call};
use crate::error::BuildError;
use crate::request::SignedHook;

/// Most bytes that the L1 takes as data of a deposit (OPinit `x/ophost/types`, `MaxDataLength`).
const MAX_DATA: usize = 10_240;

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `cosmos.tx.v1beta1.Tx`.
#[derive(Clone, PartialEq, prost::Message)]
struct Tx {
    #[prost(message, optional, tag = "1")]
    body: Option<TxBody>,
    #[prost(message, optional, tag = "2")]
    auth_info: Option<AuthInfo>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    signatures: Vec<Vec<u8>>,
}

/// The members of `cosmos.tx.v1beta1.TxBody` that decide what is run.
#[derive(Clone, PartialEq, prost::Message)]
struct TxBody {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<Any>,
    #[prost(message, repeated, tag = "1023")]
    extension_options: Vec<Any>,
}

/// The members of `cosmos.tx.v1beta1.AuthInfo` that identify the signers.
#[derive(Clone, PartialEq, prost::Message)]
struct AuthInfo {
    #[prost(message, repeated, tag = "1")]
    signer_infos: Vec<SignerInfo>,
}

/// The member of `cosmos.tx.v1beta1.SignerInfo` that identifies the signer.
#[derive(Clone, PartialEq, prost::Message)]
struct SignerInfo {
    #[prost(message, optional, tag = "1")]
    public_key: Option<Any>,
}

/// `minievm.evm.v1.MsgCall`; the lists undecoded, because there must be none.
#[derive(Clone, PartialEq, prost::Message)]
struct MsgCall {
    #[prost(string, tag = "1")]
    sender: String,
    #[prost(string, tag = "2")]
    contract_addr: String,
    #[prost(string, tag = "3")]
    input: String,
    #[prost(string, tag = "4")]
    value: String,
    #[prost(bytes = "vec", repeated, tag = "5")]
    access_list: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    auth_list: Vec<Vec<u8>>,
}

/// Checks that `given` is a transaction of `signer` on `chain` that makes the `calls` and nothing else.
pub(crate) fn check(
    registry: &Registry,
    chain: ChainRef,
    given: &SignedHook,
    calls: &[Call],
    signer: Account,
) -> Result<(), BuildError> {
    let by = address::read(registry, chain, "signed_op_hook.signer", &given.signer)?;
    let own = signer.to_bech32(&registry[chain].bech32_prefix);
    if by.account != signer {
        return Err(hook(format!("signer `{}` is not `{own}`, who sends the deposit", by.text)));
    }
    let tx = decode(&given.hook)?;
    let body = tx.body.unwrap_or_default();
    let infos = tx.auth_info.unwrap_or_default().signer_infos;
    runs(&body, calls)?;
    let [info] = infos.as_slice() else {
        return Err(hook(format!("it has {} signers, not 1", infos.len())));
    };
    let [signature] = tx.signatures.as_slice() else {
        return Err(hook(format!("it has {} signatures, not 1", tx.signatures.len())));
    };
    if signature.is_empty() {
        return Err(hook("its signature is empty".to_owned()));
    }
    // A key that we cannot derive an address of is for the rollup to judge.
    let key = info.public_key.as_ref().and_then(|key| key_address(&key.type_url, &key.value));
    match key {
        Some(account) if account != signer => {
            let account = account.to_bech32(&registry[chain].bech32_prefix);
            Err(hook(format!("its key is that of `{account}`, not of `{own}`")))
        }
        _ => Ok(()),
    }
}

fn decode(text: &str) -> Result<Tx, BuildError> {
    let bytes = STANDARD.decode(text).map_err(|error| hook(format!("hook is no base64 ({error})")))?;
    if bytes.len() > MAX_DATA {
        return Err(hook(format!(
            "hook has {} bytes, more than the {MAX_DATA} that the L1 takes",
            bytes.len()
        )));
    }
    Tx::decode(bytes.as_slice()).map_err(|error| hook(format!("hook is no cosmos.tx.v1beta1.Tx ({error})")))
}

/// Whether a body is the calls, all of them and in order.
fn runs(body: &TxBody, calls: &[Call]) -> Result<(), BuildError> {
    if body.messages.len() != calls.len() {
        return Err(hook(format!("it has {} messages, not {}", body.messages.len(), calls.len())));
    }
    if !body.extension_options.is_empty() {
        return Err(hook("it has extension options".to_owned()));
    }
    for (index, (message, call)) in body.messages.iter().zip(calls).enumerate() {
        if message.type_url != Call::TYPE_URL {
            return Err(hook(format!("its message {index} is no {}", Call::TYPE_URL)));
        }
        let signed = MsgCall::decode(message.value.as_slice())
            .map_err(|error| hook(format!("its message {index} does not decode ({error})")))?;
        if let Some(member) = difference(&signed, call) {
            return Err(hook(format!("its message {index} has another {member} than this route needs")));
        }
    }
    Ok(())
}

/// The first member that differs.
fn difference(signed: &MsgCall, call: &Call) -> Option<&'static str> {
    let input = &call.input;
    let same = [
        ("sender", signed.sender == call.sender),
        ("contract_addr", signed.contract_addr == input.contract_addr),
        ("input", signed.input == input.input),
        ("value", signed.value == input.value),
        ("access_list", signed.access_list.is_empty()),
        ("auth_list", signed.auth_list.is_empty()),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(member, _)| member)
}

fn hook(what: String) -> BuildError {
    BuildError::Hook(what)
}
