//! Endpoints that are not to be asked: those that told something false and those of another chain.
//!
//! Holds: each is named in the log with what was found and what was wanted; it comes back by time alone or when it
//! says the right chain again, and the log hears of that too.

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
    /// An endpoint has told something that is proved false; `why` says what, for the log. An origin of another
    /// service is ignored.
    pub(crate) fn distrust(&self, origin: &Origin, why: &str) {
        let Some(member) = self.member(origin) else { return };
        member.meter.false_answer();
        let penalty = {
            let mut record = member.stats();
            record.set_last_error(format!("{origin}: {why}"));
            record.trust.report_false(Instant::now())
        };
        if penalty.log {
            let (seconds, false_answers) = (penalty.left.as_secs(), penalty.false_answers);
            error!(
                "{origin} told something false: {why}; it is not asked for {seconds} s while another endpoint can \
                 be ({false_answers} so far); repair or replace this node"
            );
        }
        self.publish();
    }

    /// Whether an endpoint that says it belongs to `got` is of the chain `want`; it is asked no more if not.
    pub(crate) fn check_chain_id(&self, member: &PooledEndpoint, want: &str, got: &str) -> bool {
        let before = {
            let chain_mismatch = (want != got)
                .then(|| ChainMismatch { want: want.to_owned(), got: crate::error::excerpt(got.as_bytes()) });
            std::mem::replace(&mut member.stats().chain_mismatch, chain_mismatch.clone()) == chain_mismatch
        };
        if !before {
            let origin = &member.origin;
            if want == got {
                info!("{origin}: this is chain `{want}` again, it is asked again");
            } else {
                let got = crate::error::excerpt(got.as_bytes());
                error!("{origin}: this is chain `{got}`, not `{want}`; it is not asked; correct its address");
            }
            self.publish();
        }
        want == got
    }
}

impl Comet {
    /// An endpoint has told something that is proved false; `why` says what. It is named in the log, counted, and
    /// not asked as long as there is another: for a minute, later for twice as long each time, up to an hour. If
    /// all are distrusted, all are asked, those with the fewest false_answers first.
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
    /// As [`Comet::distrust`], for an endpoint of whichever service.
    pub fn distrust(&self, origin: &Origin, why: &str) {
        // Only the service that the origin belongs to knows it.
        self.comet.distrust(origin, why);
        self.rest.iter().for_each(|rest| rest.distrust(origin, why));
        self.evm.iter().for_each(|evm| evm.distrust(origin, why));
    }
}
