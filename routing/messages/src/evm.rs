//! Transactions of EVM chains, and addresses as an EVM has them.

use std::ops::Range;

use alloy::primitives::Address;
use chain::U256;
use planner::Step;
use registry::{ChainRef, Registry};

use crate::address::Person;
use crate::ask::Tx;
use crate::refused::Refused;
use crate::txs::{Stretch, odd};
use crate::{calls, hook};

impl Stretch<'_> {
    pub(crate) fn evm(&self, chain: ChainRef, hops: Range<usize>) -> Result<Tx, Refused> {
        match self.hops {
            [hop] if hop.step == Step::Send => self.evm_send(chain, hops),
            [hop] if matches!(hop.step, Step::LayerZero { .. }) => self.oft_send(chain, hops),
            _ => Err(odd(format!("no single transaction of an EVM chain does this: {}", self.told()))),
        }
    }

    /// The chain's coin is sent as value, a token by its contract.
    fn evm_send(&self, chain: ChainRef, hops: Range<usize>) -> Result<Tx, Refused> {
        let (registry, hop) = (self.ask.registry, &self.hops[0]);
        let native = registry.native_asset(chain) == Some(hop.from);
        let (to, value, data) = if native {
            (self.end.text.clone(), hop.amount_in, String::new())
        } else {
            let call = calls::transfer(short(registry, chain, self.end)?, hop.amount_in);
            (hook::token(registry, self.ask.facts, hop.from)?, U256::ZERO, alloy::hex::encode(call))
        };
        Ok(Tx::Evm { chain, to, value, data, approvals: Vec::new(), signer: self.signer.text.clone(), hops })
    }
}

/// A contract's address from the registry.
pub(crate) fn contract(what: &'static str, text: &str) -> Result<Address, Refused> {
    let parsed = text.strip_prefix("0x").and_then(|digits| digits.parse().ok());
    parsed.ok_or_else(|| Refused::Registry { what, value: text.to_owned(), must: "0x and 40 hex digits" })
}

/// An account that an EVM can hold as it is.
pub(crate) fn short(registry: &Registry, chain: ChainRef, person: &Person) -> Result<Address, Refused> {
    let bytes: Result<[u8; 20], _> = person.account.as_bytes().try_into();
    bytes
        .map(Address::from)
        .map_err(|_| Refused::LongAccount { address: person.text.clone(), chain: registry[chain].id.clone() })
}
