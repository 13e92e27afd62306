//! What an action reads.

use query::evm::EvmView;
use web::http_error::HttpError;

use crate::contracts::{Contract, Contracts};
use crate::form::Form;

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
    /// 500 if its file cannot be used: the reason goes to the log.
    pub(crate) fn contract(&self, address: &[u8; 20]) -> Result<Option<Contract>, HttpError> {
        let contract = self.contracts.map(|contracts| contracts.get(address)).transpose();
        Ok(contract.map_err(HttpError::internal)?.flatten())
    }
}
