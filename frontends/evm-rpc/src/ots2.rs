//! The second generation of Otterscan's methods, `ots2_*`: lists of contracts, of tokens and of an account's transfers.

use query::evm::history::Standard;

use crate::ots::{account, bounded};
use crate::params::Value;
use crate::reads::{Outcome, Reads, no_argument};

/// Maximum rows of a page.
const MAX_PAGE: u64 = 100;

impl Reads<'_> {
    pub(crate) fn created_contracts(&self) -> Outcome {
        Ok(number(self.view.created_contracts()?))
    }

    pub(crate) fn created_contract_list(&self, args: &[Value]) -> Outcome {
        let (start, count) = page(args, 0)?;
        Ok(self.view.created_contract_list(start, count)?)
    }

    pub(crate) fn token_contracts(&self, standard: Standard) -> Outcome {
        Ok(number(self.view.token_contracts(standard)?))
    }

    pub(crate) fn token_contract_list(&self, standard: Standard, args: &[Value]) -> Outcome {
        let (start, count) = page(args, 0)?;
        Ok(self.view.token_contract_list(standard, start, count)?)
    }

    pub(crate) fn transferring_txs(&self, standard: Standard, args: &[Value]) -> Outcome {
        Ok(number(self.view.transferring_txs(standard, account(args)?)?))
    }

    pub(crate) fn transferring_list(&self, standard: Standard, args: &[Value]) -> Outcome {
        let (start, count) = page(args, 1)?;
        Ok(self.view.transferring_list(standard, account(args)?, start, count)?)
    }

    pub(crate) fn holdings(&self, args: &[Value]) -> Outcome {
        Ok(self.view.holdings(account(args)?)?)
    }

    pub(crate) fn address_attributes(&self, args: &[Value]) -> Outcome {
        Ok(self.view.address_attributes(account(args)?)?)
    }
}

/// The list of a kind of transactions that these chains do not have.
pub(crate) fn none() -> Vec<u8> {
    br#"{"blocksSummary":{},"results":[]}"#.to_vec()
}

fn number(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// The place of the first row and the number of rows, of which the first is the argument `at`.
fn page(args: &[Value], at: usize) -> Result<(u64, u64), crate::reads::Failure> {
    match args.get(at..) {
        Some([Value::Index(start), Value::Index(count), ..]) => Ok((*start, bounded(*count, MAX_PAGE)?)),
        _ => Err(no_argument().into()),
    }
}
