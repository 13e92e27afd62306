//! Recording of CometBFT statuses: every `/status` answer updates what the pool knows of its endpoint.
//!
//! # Invariants
//!
//! * Every status that is received is recorded.
//! * An endpoint of another chain than the expected one is not asked any more; the first expectation counts.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::comet::Comet;
use crate::endpoint::Endpoint;
use crate::error::{Error, excerpt};
use crate::pooled_endpoint::PooledEndpoint;
use crate::status::{Status, status_call, status_of};

impl Comet {
    /// Sets the chain that all endpoints must belong to, unless it is set.
    pub(crate) fn expect_chain(&self, chain_id: &str) {
        self.chain().get_or_init(|| chain_id.to_owned());
    }

    /// Asks one endpoint for its status, also a failing or distrusted one, unless its server ordered a pause.
    pub(crate) async fn fetch_status(&self, member: &PooledEndpoint) -> Result<Status, Error> {
        let attempt = async |endpoint: Arc<Endpoint>| status_of(&endpoint).await;
        let asked = Instant::now();
        let status = self.pool().send(member, &status_call(), &attempt).await?;
        self.observe(member, &status, asked)?;
        Ok(status)
    }

    /// Records the status of an endpoint that was asked at `asked`. Fails if it is of another chain.
    pub(crate) fn observe(
        &self,
        member: &PooledEndpoint,
        status: &Status,
        asked: Instant,
    ) -> Result<(), Error> {
        let want = self.chain().get().unwrap_or(&status.chain_id);
        if !self.pool().check_chain_id(member, want, &status.chain_id) {
            let at = member.endpoint.site(&status_call());
            return Err(Error::WrongChain {
                at,
                want: want.clone(),
                got: excerpt(status.chain_id.as_bytes()),
            });
        }
        let was_behind = {
            let mut stats = member.stats();
            let was_behind = stats.head.catching_up;
            stats.head.on_status(status, asked);
            was_behind
        };
        log_sync_change(member, was_behind, status);
        self.pool().publish();
        Ok(())
    }
}

/// Logs once that a node is syncing, and once that it has caught up.
fn log_sync_change(member: &PooledEndpoint, was_behind: bool, status: &Status) {
    let (endpoint, height) = (&member.origin, status.latest_height);
    match (was_behind, status.catching_up) {
        (false, true) => warn!(
            %endpoint,
            height,
            "the node is behind and fetches blocks; without progress, see persistent_peers under [p2p] in its \
             config.toml"
        ),
        (true, false) => info!(%endpoint, height, "the node has caught up"),
        _ => {}
    }
}
