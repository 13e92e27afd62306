//! Transactions of EVM chains.

use std::ops::Range;

use alloy::sol_types::SolCall as _;
use chain::U256;
use planner::Step;
use registry::ChainRef;

use crate::address::evm_address;
use crate::calls::Erc20;
use crate::error::BuildError;
use crate::hook;
use crate::request::Tx;
use crate::tx_builder::{TxBuilder, invalid_plan};

impl TxBuilder<'_> {
    pub(crate) fn evm(&self, chain: ChainRef, hops: Range<usize>) -> Result<Tx, BuildError> {
        match self.hops {
            [hop] if hop.step == Step::Send => self.evm_send(chain, hops),
            [hop] if matches!(hop.step, Step::LayerZero { .. }) => self.oft_send(chain, hops),
            _ => Err(invalid_plan(format!(
                "no single transaction of an EVM chain does this: {}",
                self.describe()
            ))),
        }
    }

    /// The chain's coin is sent as value; a token is sent by a call of its contract.
    fn evm_send(&self, chain: ChainRef, hops: Range<usize>) -> Result<Tx, BuildError> {
        let (registry, hop) = (self.request.registry, &self.hops[0]);
        let native = registry.native_asset(chain) == Some(hop.from);
        let (to, value, data) = if native {
            (self.end.text.clone(), hop.amount_in, String::new())
        } else {
            let call =
                Erc20::transferCall { to: evm_address(registry, chain, self.end)?, amount: hop.amount_in };
            let token = hook::token(registry, self.request.facts, hop.from)?;
            (token, U256::ZERO, alloy::hex::encode(call.abi_encode()))
        };
        Ok(Tx::Evm { chain, to, value, data, approvals: Vec::new(), signer: self.signer.text.clone(), hops })
    }
}
