//! NDJSON with a line for each holder of a token after a block.
//!
//! ```text
//! {"account":"0x…","amount":"5000","exact":true}
//! ```
//!
//! `amount` is null if the balance is not known, and `exact` is false if it may have been another one, as in the API.

use std::path::Path;

use anyhow::{Context as _, ensure};
use chain::U256;
use chain::movement::Token;
use schema::known_balance::{Known, ever_held};
use schema::ledger::{self, History, Holder, LEDGER};
use schema::meta::{self, BlockLane, Identity};
use serde_json::json;
use store::Snapshot;

use super::Lines;

/// The holders of a token after a block.
pub(super) struct Holders<'a> {
    snapshot: &'a dyn Snapshot,
    identity: &'a Identity,
    token: Token,
    height: u64,
}

impl<'a> Holders<'a> {
    /// Those of the token that is named `token`, after the block `height` or the last one.
    pub(super) fn of(
        snapshot: &'a dyn Snapshot,
        identity: &'a Identity,
        token: &str,
        height: Option<u64>,
    ) -> anyhow::Result<Self> {
        let last = meta::read::<BlockLane>(snapshot)?.unwrap_or_default().height;
        let state = LEDGER.state(snapshot)?.filter(|state| state.version == LEDGER.version);
        let state =
            state.context("the index `ledger` is not stored: set `index = [\"ledger\", \"balances\"]`")?;
        ensure!(
            state.height >= last,
            "the index `ledger` has blocks {} to {} of {last}: build it by `cairn db build-index ledger`",
            state.from,
            state.height
        );
        let height = height.unwrap_or(last);
        ensure!(
            (state.from..=last).contains(&height),
            "height {height} is not indexed: the ledger has blocks {} to {last}",
            state.from
        );
        let named = query::names::tokens(identity, snapshot, token)?;
        let named = named.into_iter().find(ledger::has_balances);
        let token = named.with_context(|| format!("no token with balances is named `{token}`"))?;
        Ok(Self { snapshot, identity, token, height })
    }

    /// Writes the file; returns its name and number of lines.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<Vec<(String, u64)>> {
        let mut out = Lines::create(directory, "holders")?;
        for account in ever_held(self.snapshot, &self.token) {
            let account = account?;
            let history = History::of(self.snapshot, &self.token, Holder(Some(account)))?;
            let last = history.until(self.height)?;
            let known = Known::of(self.snapshot, &self.token, account, &history)?;
            let amount = known.and_then(|known| known.at(self.height, last));
            if amount != Some(U256::ZERO) {
                let is_exact = amount.is_some() && known.is_some_and(|known| known.is_exact());
                let line = json!({
                    "account": query::names::address(self.identity, &account),
                    "amount": amount.map(|amount| amount.to_string()),
                    "exact": is_exact,
                });
                out.put(&line.to_string())?;
            }
        }
        Ok(vec![out.finish()?])
    }
}
