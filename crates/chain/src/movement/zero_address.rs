//! What is sent to the zero address of an EVM chain.
//!
//! Contracts log `Transfer` to the zero address for what they destroy. They log the same for what an account sends there,
//! which a minievm's own contracts let stay there: the supply does not change. So the log alone cannot say which of them it
//! is. Where the message itself sends to the zero address it is a movement to that account; every other one is a burn.
//! A contract that sends there on its own account is therefore read as a burn, and one that destroys what it is called to send
//! there as a movement: who needs the balance of the zero address asks the contract.

use alloy::primitives::U256;
use alloy::sol_types::SolCall as _;
use serde::Deserialize;

use super::bank::coins;
use super::{Movement, Placed, Reader, Source, Token, amount};
use crate::address::Account;
use crate::comet::Event;
use crate::serde_lenient::JsonText;

mod calls {
    alloy::sol! {
        function transfer(address to, uint256 amount);
        function transferFrom(address from, address to, uint256 amount);
    }
}

/// The members of `/minievm.evm.v1.MsgCall`.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Call<'a> {
    #[serde(rename = "@type")]
    kind: JsonText<'a>,
    sender: JsonText<'a>,
    contract_addr: JsonText<'a>,
    #[serde(default)]
    input: JsonText<'a>,
    #[serde(default)]
    value: JsonText<'a>,
}

/// True if a log in the JSON of a transaction may name the zero address, as sender or receiver.
pub(super) fn is_in(record: &[u8]) -> bool {
    const TOPIC: [u8; 64] = [b'0'; 64];
    memchr::memmem::find(record, &TOPIC).is_some()
}

/// Names the zero address in the movements that send to it.
pub(super) fn name_receiver(
    reader: &Reader<'_>,
    source: Source<'_>,
    events: &[Event<'_>],
    found: &mut [Placed],
) {
    for placed in found {
        let Movement { token: Token::Erc20(_), from: Some(_), to: None, .. } = placed.movement else {
            continue;
        };
        if is_sent_by_bank(reader, events, placed) || is_sent_by_call(reader, source, placed) == Some(true) {
            placed.movement.to = Some(Account::ZERO);
        }
    }
}

fn is_sent_by_bank(reader: &Reader<'_>, events: &[Event<'_>], placed: &Placed) -> bool {
    let Placed { group, movement, .. } = placed;
    events.iter().filter(|event| event.kind == "transfer" && super::Group::of(event) == *group).any(|event| {
        let named = |key: &str| event.value(key).filter(|text| !text.is_empty());
        let account = |key: &str| named(key).and_then(|text| reader.account(text));
        account("recipient") == Some(Account::ZERO)
            && account("sender") == movement.from
            && coins(event.value("amount").map_or("", |text| text))
                .any(|(_, amount)| amount == movement.amount)
    })
}

/// `None` for a message that is not a call of a token or of the zero address.
fn is_sent_by_call(reader: &Reader<'_>, source: Source<'_>, placed: &Placed) -> Option<bool> {
    let Placed { group, movement, .. } = placed;
    let message = source.message(*group)?;
    let call: Call<'_> = serde_json::from_str(message.get()).ok()?;
    if &*call.kind != "/minievm.evm.v1.MsgCall" || call.contract_addr.is_empty() {
        return None;
    }
    let (sender, contract) = (reader.account(&call.sender)?, reader.account(&call.contract_addr)?);
    if contract == Account::ZERO {
        let value = amount(&call.value).filter(|value| *value > U256::ZERO);
        return Some(movement.from == Some(sender) && value == Some(movement.amount));
    }
    let Token::Erc20(token) = movement.token else { return None };
    let input = hex::decode(call.input.strip_prefix("0x").unwrap_or(&call.input)).ok()?;
    let (from, to) = if let Ok(call) = calls::transferCall::abi_decode(&input) {
        (sender, call.to)
    } else {
        let call = calls::transferFromCall::abi_decode(&input).ok()?;
        (Account::from(<[u8; 20]>::from(call.from)), call.to)
    };
    Some(contract == Account::from(token) && to.is_zero() && movement.from == Some(from))
}
