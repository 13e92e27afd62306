//! Exclusion of endpoints that gave a provably false answer or serve another chain.
//!
//! # Invariants
//!
//! * Every exclusion is logged with the finding and the expectation.
//! * Distrust ends by time alone. A wrong chain ends when the endpoint reports the right one, and that is logged too.

use tokio::time::Instant;
use tracing::{error, info};

use crate::comet::Comet;
use crate::cosmos::Rest;
use crate::evm::Evm;
use crate::node::Node;
use crate::origin::Origin;
use crate::pool::Pool;
use crate::pooled_endpoint::{ChainMismatch, PooledEndpoint};

impl Pool {
    /// Records a provably false answer of an endpoint; `why` is the proof, for the log. An origin of another service
    /// is ignored.
    pub(crate) fn distrust(&self, origin: &Origin, why: &str) {
        let Some(member) = self.member(origin) else { return };
        member.meter.false_answer();
        let penalty = {
            let mut stats = member.stats();
            stats.set_last_error(format!("{origin}: {why}"));
            stats.trust.report_false(Instant::now())
        };
        if penalty.log {
            error!(
                endpoint = %origin,
                reason = why,
                penalty_s = penalty.left.as_secs(),
                false_answers = penalty.false_answers,
                "the endpoint gave a false answer and is avoided: repair or replace this node"
            );
        }
        self.publish();
    }

    /// Whether an endpoint that reports the chain `got` is of the chain `want`; if not, it is not asked any more.
    pub(crate) fn check_chain_id(&self, member: &PooledEndpoint, want: &str, got: &str) -> bool {
        let unchanged = {
            let chain_mismatch = (want != got)
                .then(|| ChainMismatch { want: want.to_owned(), got: crate::error::excerpt(got.as_bytes()) });
            std::mem::replace(&mut member.stats().chain_mismatch, chain_mismatch.clone()) == chain_mismatch
        };
        if !unchanged {
            let origin = &member.origin;
            if want == got {
                info!(endpoint = %origin, chain_id = want, "the endpoint serves the right chain again");
            } else {
                let chain_id = crate::error::excerpt(got.as_bytes());
                error!(
                    endpoint = %origin,
                    chain_id,
                    expected = want,
                    "the endpoint serves another chain and is not asked: correct its address"
                );
            }
            self.publish();
        }
        want == got
    }
}

impl Comet {
    /// Records a provably false answer of an endpoint; `why` is the proof. The endpoint is logged, counted, and not
    /// asked as long as there is another: for a minute, each later time twice as long, up to an hour. If all are
    /// distrusted, all are asked, those with the fewest false answers first.
    pub fn distrust(&self, origin: &Origin, why: &str) {
        self.pool().distrust(origin, why);
    }
}

impl Evm {
    /// As [`Comet::distrust`].
    pub fn distrust(&self, origin: &Origin, why: &str) {
        self.pool().distrust(origin, why);
    }
}

impl Rest {
    /// As [`Comet::distrust`].
    pub fn distrust(&self, origin: &Origin, why: &str) {
        self.pool().distrust(origin, why);
    }
}

impl Node {
    /// As [`Comet::distrust`], for an endpoint of any service.
    pub fn distrust(&self, origin: &Origin, why: &str) {
        // Only the service that the origin belongs to knows it.
        self.comet.distrust(origin, why);
        self.rest.iter().for_each(|rest| rest.distrust(origin, why));
        self.evm.iter().for_each(|evm| evm.distrust(origin, why));
    }
}
