//! Validators of the chain: consensus addresses with monikers and operator addresses.
//!
//! A consensus address cannot be converted to an operator address, so this list is needed (trap).
//!
//! # Invariants
//!
//! The list is complete (all pages) or an error. It comes from the first module that the chain has, rollups first.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::error::Error;
use crate::rest::Rest;

/// A validator, or the sequencer of a rollup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validator {
    /// The proposer address of block headers: the first 20 bytes of SHA-256 of the ed25519 key.
    pub consensus_address: [u8; 20],
    /// Its chosen name.
    pub moniker: String,
    /// Its operator address in bech32, for example `initvaloper1…`.
    pub operator_address: String,
}

/// The modules that keep validators: rollups, the L1, other Cosmos chains.
const MODULES: [&str; 3] =
    ["/opinit/opchild/v1/validators", "/initia/mstaking/v1/validators", "/cosmos/staking/v1beta1/validators"];

/// opchild has the moniker at the top, the staking modules in the description.
#[derive(Deserialize)]
struct Entry {
    moniker: Option<String>,
    description: Option<Description>,
    operator_address: String,
    consensus_pubkey: Option<Key>,
}

#[derive(Deserialize)]
struct Description {
    moniker: String,
}

#[derive(Deserialize)]
struct Key {
    #[serde(rename = "@type")]
    kind: String,
    #[serde(default)]
    key: String,
}

impl Rest {
    /// All validators of the chain, past ones included as far as the module keeps them. Validators whose key is not
    /// ed25519 are left out and logged: their consensus address is computed differently.
    pub async fn validators(&self) -> Result<Vec<Validator>, Error> {
        let (last, others) = (MODULES[2], &MODULES[..2]);
        for module in others {
            match self.validators_of(module).await {
                Err(Error::MethodMissing { .. }) => {}
                settled => return settled,
            }
        }
        self.validators_of(last).await
    }

    async fn validators_of(&self, module: &str) -> Result<Vec<Validator>, Error> {
        let all = self.all_pages::<Entry>(module, "validators", None).await?;
        Ok(all.into_iter().filter_map(Entry::validator).collect())
    }
}

impl Entry {
    fn validator(self) -> Option<Validator> {
        let key = self.consensus_pubkey.as_ref();
        let Some(consensus_address) = key.and_then(Key::address) else {
            let kind = key.map_or("none", |key| &key.kind);
            warn!(validator = self.operator_address, kind, "a validator without an ed25519 key is left out");
            return None;
        };
        let moniker = self.moniker.or(self.description.map(|description| description.moniker));
        Some(Validator {
            consensus_address,
            moniker: moniker.unwrap_or_default(),
            operator_address: self.operator_address,
        })
    }
}

impl Key {
    /// CometBFT `crypto/ed25519`: an address is the beginning of the key's hash.
    fn address(&self) -> Option<[u8; 20]> {
        if self.kind != "/cosmos.crypto.ed25519.PubKey" {
            return None;
        }
        let key = <[u8; 32]>::try_from(STANDARD.decode(&self.key).ok()?).ok()?;
        Sha256::digest(key).first_chunk().copied()
    }
}
