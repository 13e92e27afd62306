//! REST queries of chain modules: contracts, Move resources, accounts, balances and denoms.
//!
//! # Invariants
//!
//! * A query reads the state of a height, or of the latest block with `None`.
//! * Arguments are percent-encoded, so that they cannot change the path or the query.
//! * A module's permanent rejection is [`Error::Refused`]; a pruned height is an error with [`Error::is_pruned`].

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use serde::Deserialize;

use crate::accounts::{Account, encoded};
use crate::cosmos::Rest;
use crate::endpoint::Call;
use crate::error::Error;
use crate::pagination::{Page, Pagination, page_path};
use crate::state_at::StateAt;

/// Accounts in a page.
const ACCOUNTS: usize = 100;

/// One page of the accounts of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountsPage {
    /// Their addresses in bech32, in the module's order.
    pub addresses: Vec<String>,
    /// What to ask the next page with; none on the last.
    pub next: Option<String>,
}

impl Rest {
    /// `/cosmwasm/wasm/v1/contract/{address}`: the JSON about a contract, its creator among it.
    pub async fn wasm_contract(&self, address: &str, state: impl Into<StateAt>) -> Result<Bytes, Error> {
        self.get(&format!("/cosmwasm/wasm/v1/contract/{}", encoded(address)), state).await
    }

    /// `/cosmwasm/wasm/v1/contract/{address}/smart/{query}`: the JSON of a contract's answer to a query in JSON.
    pub async fn wasm_smart(
        &self,
        address: &str,
        query: &str,
        state: impl Into<StateAt>,
    ) -> Result<Bytes, Error> {
        // The gateway refuses base64 without its padding.
        let query = URL_SAFE.encode(query);
        self.get(&format!("/cosmwasm/wasm/v1/contract/{}/smart/{query}", encoded(address)), state).await
    }

    /// `/initia/move/v1/accounts/{address}/resources/by_struct_tag?struct_tag={tag}`: the JSON of a resource. The
    /// address is hex with `0x`.
    pub async fn move_resource(
        &self,
        address: &str,
        struct_tag: &str,
        state: impl Into<StateAt>,
    ) -> Result<Bytes, Error> {
        let (address, tag) = (encoded(address), encoded(struct_tag));
        let path = format!("/initia/move/v1/accounts/{address}/resources/by_struct_tag?struct_tag={tag}");
        self.get(&path, state).await
    }

    /// `/cosmos/auth/v1beta1/accounts`: a page of all accounts; `key` as the page before gave it. An account of a
    /// kind whose address is nowhere to be found is left out with a line in the log.
    pub async fn accounts(
        &self,
        state: impl Into<StateAt>,
        key: Option<&str>,
    ) -> Result<AccountsPage, Error> {
        #[derive(Deserialize)]
        struct Answer {
            accounts: Vec<Account>,
            pagination: Option<Pagination>,
        }
        let path = page_path("/cosmos/auth/v1beta1/accounts", ACCOUNTS, key);
        let read = |answer: Answer| AccountsPage {
            addresses: answer.accounts.into_iter().filter_map(Account::address).collect(),
            next: Pagination::next(answer.pagination),
        };
        self.ask_for(Call::get(&path, path.clone()).in_state(state), read).await
    }

    /// `/cosmos/bank/v1beta1/balances/{address}`: all that an account holds, as denoms with amounts in decimal.
    pub async fn balances(
        &self,
        address: &str,
        state: impl Into<StateAt>,
    ) -> Result<Vec<(String, String)>, Error> {
        let path = format!("/cosmos/bank/v1beta1/balances/{}", encoded(address));
        let coins = self.all_pages::<Balances>(&path, state).await?;
        Ok(coins.into_iter().map(|coin| (coin.denom, coin.amount)).collect())
    }

    /// `/minievm/evm/v1/contracts/by_denom?denom={denom}`: the contract that holds a denom's balances now. None if the
    /// chain does not know the denom, whose case matters.
    pub async fn erc20_of_denom(&self, denom: &str) -> Result<Option<[u8; 20]>, Error> {
        #[derive(Deserialize)]
        struct Answer {
            address: Address,
        }
        let path = format!("/minievm/evm/v1/contracts/by_denom?denom={}", encoded(denom));
        known(self.ask_for(Call::get(&path, path.clone()), |answer: Answer| answer.address.0).await)
    }

    /// `/minievm/evm/v1/denoms/{contract}`: the denom that a contract holds the balances of. None if the chain does
    /// not know the contract.
    pub async fn denom_of_erc20(&self, contract: [u8; 20]) -> Result<Option<String>, Error> {
        #[derive(Deserialize)]
        struct Answer {
            denom: String,
        }
        let path = format!("/minievm/evm/v1/denoms/0x{}", hex::encode(contract));
        known(self.ask_for(Call::get(&path, path.clone()), |answer: Answer| answer.denom).await)
    }
}

/// Maps a permanent rejection to `None`.
fn known<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Error::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// 20 bytes in hex.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Address([u8; 20]);

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut address = [0; 20];
        let digits = text.strip_prefix("0x").unwrap_or_default();
        match hex::decode_to_slice(digits, &mut address) {
            Ok(()) => Ok(Self(address)),
            Err(_) => Err(format!("{text:?} is no address of 20 bytes in hex")),
        }
    }
}

#[derive(Deserialize)]
struct Balances {
    balances: Vec<Coin>,
    pagination: Option<Pagination>,
}

#[derive(Deserialize)]
struct Coin {
    denom: String,
    amount: String,
}

impl Page for Balances {
    type Item = Coin;

    fn open(self) -> (Vec<Coin>, Option<Pagination>) {
        (self.balances, self.pagination)
    }
}
