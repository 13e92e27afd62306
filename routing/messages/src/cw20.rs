//! Transfers of CW20 tokens by a CW20-ICS20 contract.
//!
//! The token sends the amount to the contract whose port the channel has, with the transfer as the message (cw-plus
//! `cw20-ics20`, `TransferMsg`; `cw20`, `Cw20ExecuteMsg::Send`).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use planner::Hop;
use registry::End;
use registry::denom::cw20;
use serde::Serialize;

use crate::amino::json;
use crate::error::BuildError;
use crate::request::Msg;
use crate::tx_builder::{TxBuilder, invalid_plan};

/// `cosmwasm.wasm.v1.MsgExecuteContract`, with the message as JSON, not as bytes.
#[derive(Serialize)]
struct ExecuteContract {
    sender: String,
    contract: String,
    msg: Cw20Execute,
    funds: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Cw20Execute {
    Send {
        contract: String,
        amount: String,
        /// Base64 of a [`TransferMsg`].
        msg: String,
    },
}

/// Without a memo, which older contracts do not know.
#[derive(Serialize)]
struct TransferMsg<'a> {
    channel: &'a str,
    remote_address: &'a str,
    /// Seconds.
    timeout: u64,
}

impl TxBuilder<'_> {
    /// Sends a CW20 token from `source`, the end of a contract.
    pub(crate) fn cw20_transfer(&self, hop: &Hop, source: &End) -> Result<Msg, BuildError> {
        let (token, contract) = (cw20(self.denom(hop.from)), source.port.strip_prefix("wasm."));
        let (Some(token), Some(contract), 1) = (token, contract, self.hops.len()) else {
            return Err(invalid_plan(
                "only a CW20 token leaves by the port of a contract, and its packet has no memo",
            ));
        };
        let transfer = TransferMsg {
            channel: &source.channel,
            remote_address: &self.end.text,
            timeout: self.request.timeout_seconds,
        };
        let send = Cw20Execute::Send {
            contract: contract.to_owned(),
            amount: hop.amount_in.to_string(),
            msg: BASE64_STANDARD.encode(json(&transfer)),
        };
        let execute = ExecuteContract {
            sender: self.signer.text.clone(),
            contract: token.to_owned(),
            msg: send,
            funds: [],
        };
        Ok(Msg::new("/cosmwasm.wasm.v1.MsgExecuteContract", &execute))
    }
}
