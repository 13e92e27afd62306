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
use chain::{U256, excerpt};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::json::text_at;
use crate::pool::endpoint::Request;
use crate::rest::Rest;
use crate::rest::accounts::{Account, encoded};
use crate::rest::pagination::{Pagination, page_path};
use crate::state_at::StateAt;

/// Accounts in a page.
const ACCOUNTS: usize = 100;

/// One page of the accounts of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountsPage {
    /// Their addresses in bech32, in the module's order.
    pub addresses: Vec<String>,
    /// Key of the next page; `None` on the last.
    pub next: Option<String>,
}

impl Rest {
    /// `/cosmwasm/wasm/v1/contract/{address}`: the JSON about a contract, including its creator.
    pub async fn wasm_contract(&self, address: &str, state: impl Into<StateAt>) -> Result<Bytes, Error> {
        self.get(&format!("/cosmwasm/wasm/v1/contract/{}", encoded(address)), state).await
    }

    /// `/cosmwasm/wasm/v1/contract/{address}/smart/{query}`: the JSON of a contract's reply to a query in JSON.
    pub async fn wasm_smart(
        &self,
        address: &str,
        query: &str,
        state: impl Into<StateAt>,
    ) -> Result<Bytes, Error> {
        // The gateway rejects base64 without padding.
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

    /// `/cosmos/auth/v1beta1/accounts`: a page of all accounts; `key` is from the previous page. An account of a kind
    /// whose address cannot be determined is left out and logged.
    pub async fn accounts(
        &self,
        state: impl Into<StateAt>,
        key: Option<&str>,
    ) -> Result<AccountsPage, Error> {
        #[derive(Deserialize)]
        struct Reply {
            accounts: Vec<Account>,
            pagination: Option<Pagination>,
        }
        let path = page_path("/cosmos/auth/v1beta1/accounts", ACCOUNTS, key);
        let read = |answer: Reply| {
            let addresses = answer.accounts.into_iter().filter_map(Account::address).collect();
            Ok(AccountsPage { addresses, next: Pagination::next(answer.pagination) })
        };
        self.query_for(Request::get(&path, path.clone()).in_state(state), read).await
    }

    /// `/cosmos/bank/v1beta1/balances/{address}`: all balances of an account, as denoms with amounts in decimal.
    pub async fn balances(
        &self,
        address: &str,
        state: impl Into<StateAt>,
    ) -> Result<Vec<(String, String)>, Error> {
        let path = format!("/cosmos/bank/v1beta1/balances/{}", encoded(address));
        let coins = self.all_pages::<Coin>(&path, "balances", state).await?;
        Ok(coins.into_iter().map(|coin| (coin.denom, coin.amount)).collect())
    }

    /// `/cosmos/bank/v1beta1/supply/by_denom?denom={denom}`: how much there is of a denom.
    pub async fn supply(&self, denom: &str, state: impl Into<StateAt>) -> Result<U256, Error> {
        let path = format!("/cosmos/bank/v1beta1/supply/by_denom?denom={}", encoded(denom));
        let read = |answer: Value| {
            let text = text_at(&answer, "/amount/amount")?;
            U256::from_str_radix(text, 10).map_err(|_| format!("`{}` is not an amount", excerpt(text)))
        };
        self.query_for(Request::get(&path, path.clone()).in_state(state), read).await
    }

    /// `/cosmos/bank/v1beta1/denoms_metadata_by_query_string?denom={denom}`: the JSON of the bank's metadata of a denom in the latest
    /// state. `None` if the bank has none.
    pub async fn denom_metadata(&self, denom: &str) -> Result<Option<Bytes>, Error> {
        let path = format!("/cosmos/bank/v1beta1/denoms_metadata_by_query_string?denom={}", encoded(denom));
        known(self.get(&path, None).await)
    }

    /// `/minievm/evm/v1/contracts/by_denom?denom={denom}`: the contract that currently holds a denom's balances. `None`
    /// if the denom, whose case matters, is unknown to the chain.
    pub async fn erc20_of_denom(&self, denom: &str) -> Result<Option<[u8; 20]>, Error> {
        let path = format!("/minievm/evm/v1/contracts/by_denom?denom={}", encoded(denom));
        let read = |answer: Value| {
            let (text, mut address) = (text_at(&answer, "/address")?, [0; 20]);
            let decoded = hex::decode_to_slice(text.strip_prefix("0x").unwrap_or_default(), &mut address);
            decoded.map_err(|_| format!("`{}` is not an address of 20 bytes in hex", excerpt(text)))?;
            Ok(address)
        };
        known(self.query_for(Request::get(&path, path.clone()), read).await)
    }

    /// `/initia/move/v1/denom?metadata={address}`: the denomination of a metadata object, `0x` and hex digits. `None` if the
    /// chain has none there.
    pub async fn denom_of_metadata(&self, address: &str) -> Result<Option<String>, Error> {
        known(self.text_at(&format!("/initia/move/v1/denom?metadata={}", encoded(address)), "/denom").await)
    }

    /// `/minievm/evm/v1/denoms/{contract}`: the denom whose balances a contract holds. `None` if the contract is
    /// unknown to the chain.
    pub async fn denom_of_erc20(&self, contract: [u8; 20]) -> Result<Option<String>, Error> {
        known(self.text_at(&format!("/minievm/evm/v1/denoms/0x{}", hex::encode(contract)), "/denom").await)
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

#[derive(Deserialize)]
struct Coin {
    denom: String,
    amount: String,
}
