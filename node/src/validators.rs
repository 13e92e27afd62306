//! Who proposes blocks: consensus addresses with the names behind them.
//!
//! Holds: the list is whole (all pages) or an error; it comes from the module that the chain has, rollups
//! first. A consensus address cannot be turned into an operator address, hence this list (trap T9).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::cosmos::Rest;
use crate::endpoint::Call;
use crate::error::{Error, Site};

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

/// The largest page that the modules give without complaint.
const PAGE: &str = "?pagination.limit=1000";

/// No chain has more validators than this many pages hold; more pages mean that the node goes in circles.
const MOST_PAGES: usize = 100;

#[derive(Deserialize)]
struct Page {
    validators: Vec<Entry>,
    pagination: Option<Pagination>,
}

#[derive(Deserialize)]
struct Pagination {
    next_key: Option<String>,
}

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
    /// All validators of the chain, past ones included as far as the module keeps them. Those whose key is
    /// not ed25519 are left out with a line in the log: their consensus address is formed otherwise.
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
        let mut all = Vec::new();
        let mut path = format!("{module}{PAGE}");
        for _ in 0..MOST_PAGES {
            let page: Page = self.ask_for(Call::get(&path, path.clone()), |page| page).await?;
            all.extend(page.validators.into_iter().filter_map(Entry::validator));
            match page.pagination.and_then(|pagination| pagination.next_key).filter(|key| !key.is_empty()) {
                None => return Ok(all),
                Some(key) => {
                    let key = utf8_percent_encode(&key, NON_ALPHANUMERIC);
                    path = format!("{module}{PAGE}&pagination.key={key}");
                }
            }
        }
        let at = Site { service: "rest", host: "any address".into(), call: module.into(), height: None };
        Err(Error::Malformed { at, reason: format!("more than {MOST_PAGES} pages of validators") })
    }
}

impl Entry {
    fn validator(self) -> Option<Validator> {
        let key = self.consensus_pubkey.as_ref();
        let Some(consensus_address) = key.and_then(Key::address) else {
            let kind = key.map_or("none", |key| &key.kind);
            warn!("validator {}: its consensus key ({kind}) is not ed25519, left out", self.operator_address);
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
