//! Detection of the Cosmos transactions that a MiniEVM node converts back into Ethereum transactions.
//!
//! Each of them has a receipt, whether it succeeded or not, so their number is a lower bound for the receipts of a
//! block: fewer mean that the node's EVM index is behind or pruned. The rule must never count
//! too many, or ingest would never stop waiting.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::address::Account;
use crate::tx::{DecodedTx, SignMode};
use crate::wire::{bytes_field, fields};

/// The sign mode of a transaction that was signed as an Ethereum transaction.
const SIGN_MODE_ETHEREUM: i32 = 9999;
const MESSAGES: [&str; 2] = ["/minievm.evm.v1.MsgCall", "/minievm.evm.v1.MsgCreate"];

/// True if a node shows this transaction under its Ethereum hash (for the memo's current form only).
///
/// `prefix` is that of account addresses. The ante handler converts every successful transaction of this kind, whatever
/// its fee; a failed one with a fee in another denom than `fee_denom` is not shown. If the denom is unknown (`None`), only
/// failed transactions without a fee count.
pub fn is_eth_tx(tx: &DecodedTx, prefix: &str, succeeded: bool, fee_denom: Option<&str>) -> bool {
    has_shape(tx, prefix) && (succeeded || fee_is_in(tx, fee_denom))
}

/// [`is_eth_tx`] without the check of the fee's denom.
pub(crate) fn has_shape(tx: &DecodedTx, prefix: &str) -> bool {
    let ([message], [info], [_]) = (&tx.messages[..], &tx.signer_infos[..], &tx.signatures[..]) else {
        return false;
    };
    info.mode == SignMode::Single(SIGN_MODE_ETHEREUM)
        && MESSAGES.contains(&message.type_url.as_str())
        && tx.fee.len() <= 1
        && has_short_sender(&message.value, prefix)
        // The fee must be zero exactly if the price is, or the node rejects the transaction as manipulated.
        && Memo::read(&tx.memo).is_some_and(|memo| memo.is_free() == tx.fee.is_empty())
}

/// The memo that MiniEVM writes into a converted transaction (`minievm:x/evm/keeper/txutils.go`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Memo<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    #[serde(borrow)]
    pub(crate) gas_fee_cap: &'a RawValue,
    #[serde(borrow)]
    pub(crate) gas_tip_cap: &'a RawValue,
    pub(crate) gas_limit: u64,
}

impl<'a> Memo<'a> {
    /// Reads a memo in the form that current nodes write.
    pub(crate) fn read(memo: &'a str) -> Option<Self> {
        // Other memos are free text: a cheap check avoids a parse error for each.
        let memo: Self = memo.starts_with('{').then(|| serde_json::from_str(memo).ok())??;
        let valid = matches!(memo.kind, 0 | 1 | 2 | 4) && memo.gas_limit > 0;
        (valid && is_digits(memo.gas_fee_cap) && is_digits(memo.gas_tip_cap)).then_some(memo)
    }

    fn is_free(&self) -> bool {
        self.gas_fee_cap.get().bytes().all(|digit| digit == b'0')
    }
}

fn is_digits(number: &RawValue) -> bool {
    number.get().bytes().all(|byte| byte.is_ascii_digit())
}

/// True if the fee is empty, or one coin of this denom.
pub(crate) fn fee_is_in(tx: &DecodedTx, fee_denom: Option<&str>) -> bool {
    match &tx.fee[..] {
        [] => true,
        [coin] => Some(coin.denom.as_str()) == fee_denom,
        _ => false,
    }
}

/// Both messages have their sender, as text, in field 1.
fn has_short_sender(message: &[u8], prefix: &str) -> bool {
    fields(message)
        .and_then(|fields| bytes_field(&fields, 1))
        .and_then(|sender| std::str::from_utf8(sender).ok())
        .and_then(|sender| Account::parse(sender, prefix))
        .is_some_and(|sender| sender.as_bytes().len() == 20)
}
