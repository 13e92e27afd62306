//! Accounts of the modules of the Cosmos SDK.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use crate::address::Account;

/// Accounts of modules.
pub(super) struct Modules {
    pub(super) fee_collector: Account,
    pub(super) distribution: Account,
    pub(super) pools: [Account; 2],
    pub(super) transfer: Account,
    pub(super) opchild: Account,
}

pub(super) static MODULES: LazyLock<Modules> = LazyLock::new(|| Modules {
    fee_collector: module_account("fee_collector"),
    distribution: module_account("distribution"),
    pools: ["bonded_tokens_pool", "not_bonded_tokens_pool"].map(module_account),
    transfer: module_account("transfer"),
    opchild: module_account("opchild"),
});

/// The account of a module of the Cosmos SDK, by the module's name.
pub fn module_account(name: &str) -> Account {
    let mut address = [0; 20];
    address.copy_from_slice(&Sha256::digest(name)[..20]);
    address.into()
}
