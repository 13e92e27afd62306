//! Quote calls of OFT contracts and their results.
//!
//! Quotes are fetched before the receiver is known and name no receiver; neither the fee nor the amount depends on it.

use alloy::primitives::{Address, B256, address};
use alloy::sol_types::SolCall as _;
use chain::U256;
use registry::Leg;

use crate::calls::Oft;
use crate::error::BuildError;
use crate::layer_zero::send_param;

/// The receiver in quote calls.
const NOBODY: Address = address!("0x000000000000000000000000000000000000dEaD");

/// `quoteOFT` and `quoteSend` of an amount, in that order.
///
/// Fails if the leg's options are not hex.
pub fn calls(leg: &Leg, destination: u32, amount: U256) -> Result<(Vec<u8>, Vec<u8>), BuildError> {
    let to = B256::left_padding_from(NOBODY.as_slice());
    let param = send_param(leg, destination, to, amount, U256::ZERO)?;
    let limits = Oft::quoteOFTCall { sendParam: param.clone() }.abi_encode();
    Ok((limits, Oft::quoteSendCall { sendParam: param, payInLzToken: false }.abi_encode()))
}

/// Amount received, in base units of the sending token: `receipt.amountReceivedLD` of a `quoteOFT`.
pub fn received(answer: &[u8]) -> Option<U256> {
    Oft::quoteOFTCall::abi_decode_returns(answer).ok().map(|quote| quote.receipt.amountReceivedLD)
}

/// Messaging fee, in base units of the sending chain's coin: `nativeFee` of a `quoteSend`.
pub fn native_fee(answer: &[u8]) -> Option<U256> {
    Oft::quoteSendCall::abi_decode_returns(answer).ok().map(|fee| fee.nativeFee)
}
