//! What an action reads.

use query::evm::EvmView;
use query::evm::history::{Closest, Window};
use web::http_error::HttpError;

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
    /// The window of a list: that of the form, and Blockscout's times of the first and of the last block.
    pub(crate) fn window(&self) -> Result<Window, Failure> {
        let window = self.form.window(self.view.head())?;
        let (mut first, mut last) = window.heights.clone().into_inner();
        if let Some(time) = self.form.number("start_timestamp")? {
            first = first.max(self.view.height_at(time, Closest::After)?.unwrap_or(u64::MAX));
        }
        if let Some(time) = self.form.number("end_timestamp")? {
            last = last.min(self.view.height_at(time, Closest::Before)?.unwrap_or(0));
        }
        Ok(Window { heights: first..=last, ..window })
    }

    /// What is known of a contract; `None` if nothing is.
    ///
    /// # Errors
    /// If its file cannot be used: the reason goes to the log.
    pub(crate) fn contract(&self, address: &[u8; 20]) -> Result<Option<Contract>, Failure> {
        let contract = self.contracts.map(|contracts| contracts.get_logged(address)).transpose();
        contract.map(Option::flatten).map_err(|_| {
            let address = hex::encode(address);
            Failure::Text(format!("Error! The file of contract 0x{address} cannot be used: see the log"))
        })
    }

    /// The addresses of the known contracts.
    pub(crate) fn verified(&self) -> Result<Vec<[u8; 20]>, Failure> {
        let Some(contracts) = self.contracts else {
            return Err(Failure::Text("Error! It needs the setting `abi`".to_owned()));
        };
        contracts.addresses().map_err(|error| Failure::Http(HttpError::internal(error)))
    }
}
