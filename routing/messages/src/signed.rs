//! Verification of a signed op hook: it must contain exactly the calls that a deposit needs.
//!
//! The rollup executes the signed bytes once, as their signer. Only the rollup can
//! verify the signature, because it covers an account number and a sequence of the rollup's state.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Account;
use chain::key::key_address;
use proto::tx::{AuthInfo, Message as _, TxBody, TxRaw};
use registry::{ChainRef, Registry};

use crate::address;
use crate::amino::{CALL, Call};
use crate::error::BuildError;
use crate::request::SignedHook;

/// Maximum data of a deposit on the L1, in bytes (OPinit `x/ophost/types`, `MaxDataLength`).
const MAX_DATA: usize = 10_240;

/// `minievm.evm.v1.MsgCall`; the lists are not decoded, because they must be empty.
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

/// Checks that `given` is a transaction of `signer` on `chain` with exactly the `calls`.
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
    let (body, auth, tx) = decode(&given.hook)?;
    check_calls(&body, calls)?;
    let [info] = auth.signer_infos.as_slice() else {
        return Err(hook(format!("it has {} signers, not 1", auth.signer_infos.len())));
    };
    let [signature] = tx.signatures.as_slice() else {
        return Err(hook(format!("it has {} signatures, not 1", tx.signatures.len())));
    };
    if signature.is_empty() {
        return Err(hook("its signature is empty".to_owned()));
    }
    // Only the rollup can check a key of unknown type.
    let key = info.public_key.as_ref().and_then(|key| key_address(&key.type_url, &key.value));
    match key {
        Some(account) if account != signer => {
            let account = account.to_bech32(&registry[chain].bech32_prefix);
            Err(hook(format!("its key is that of `{account}`, not of `{own}`")))
        }
        _ => Ok(()),
    }
}

/// The body, the signers, and the transaction with the signatures.
fn decode(text: &str) -> Result<(TxBody, AuthInfo, TxRaw), BuildError> {
    let bytes = STANDARD.decode(text).map_err(|error| hook(format!("hook is no base64 ({error})")))?;
    if bytes.len() > MAX_DATA {
        return Err(hook(format!(
            "hook has {} bytes, more than the {MAX_DATA} that the L1 takes",
            bytes.len()
        )));
    }
    let refused = |error| hook(format!("hook is no cosmos.tx.v1beta1.Tx ({error})"));
    let raw = TxRaw::decode(bytes.as_slice()).map_err(refused)?;
    let body = TxBody::decode(raw.body_bytes.as_slice()).map_err(refused)?;
    let auth = AuthInfo::decode(raw.auth_info_bytes.as_slice()).map_err(refused)?;
    Ok((body, auth, raw))
}

/// Checks that a body has exactly the calls, in order.
fn check_calls(body: &TxBody, calls: &[Call]) -> Result<(), BuildError> {
    if body.messages.len() != calls.len() {
        return Err(hook(format!("it has {} messages, not {}", body.messages.len(), calls.len())));
    }
    if !body.extension_options.is_empty() {
        return Err(hook("it has extension options".to_owned()));
    }
    for (index, (message, call)) in body.messages.iter().zip(calls).enumerate() {
        if message.type_url != CALL {
            return Err(hook(format!("its message {index} is no {CALL}")));
        }
        let signed: MsgCall = prost::Message::decode(message.value.as_slice())
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
