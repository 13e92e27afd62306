//! What an action reads.

use query::evm::EvmView;

use crate::contracts::{Contract, Contracts};
use crate::form::Form;
use crate::outcome::Failure;

/// The index in one snapshot, and the parameters of a request.
pub(crate) struct Reads<'a> {
    pub(crate) view: EvmView<'a>,
    pub(crate) form: &'a Form,
    /// The known contracts.
    pub(crate) contracts: Option<&'a Contracts>,
}

impl Reads<'_> {
    /// What is known of a contract; `None` if nothing is.
    ///
    /// # Errors
    /// If its file cannot be used: the reason goes to the log.
    pub(crate) fn contract(&self, address: &[u8; 20]) -> Result<Option<Contract>, Failure> {
        let contract = self.contracts.map(|contracts| contracts.get(address)).transpose();
        contract.map(Option::flatten).map_err(|error| {
            tracing::warn!(%error, "the file of a contract cannot be used");
            let address = hex::encode(address);
            Failure::Text(format!("Error! The file of contract 0x{address} cannot be used: see the log"))
        })
    }
}
