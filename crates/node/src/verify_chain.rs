//! Verification of the chain id of CometBFT, REST and EVM endpoints.
//!
//! CometBFT and REST servers report the chain id. EVM servers report a number (EIP-155), which is decided by
//! majority. gRPC servers are not asked: they serve descriptors only.
//!
//! # Invariants
//!
//! * An endpoint of another chain is logged and not asked until it reports the right one. An endpoint that does not
//!   answer is neither right nor wrong.
//! * The EVM chain id is final once more than half of all servers reported the same number, or all have answered.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, join3};
use serde::Deserialize;
use tokio::time::sleep;

use crate::comet::Comet;
use crate::cosmos::Rest;
use crate::cosmos::json_of;
use crate::endpoint::{Call, Endpoint};
use crate::endpoint_head::EndpointState;
use crate::error::Error;
use crate::evm::Evm;
use crate::evm::{classify, quantity};
use crate::node::Node;
use crate::pool::{Pool, better};
use crate::pooled_endpoint::PooledEndpoint;
use crate::status::Status;

/// Interval of chain checks for services without heights.
const CHECK: Duration = Duration::from_mins(1);

impl Node {
    /// Asks every CometBFT, REST and EVM endpoint for its chain. Returns CometBFT's status with the highest tip.
    ///
    /// As [`Comet::verify_chain`]. Also fails with [`Error::WrongChain`] if all REST servers belong to another chain,
    /// or all EVM servers to another than the one decided before. Unreachable REST and EVM servers are no failure.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<Status, Error> {
        let (status, rest, evm) =
            join3(self.comet.verify_chain(chain_id), self.verify_rest(chain_id), self.verify_evm()).await;
        for others in [rest, evm] {
            // An unreachable server must not prevent the start.
            if let Err(error @ Error::WrongChain { .. }) = others {
                return Err(error);
            }
        }
        status
    }

    /// Runs [`Comet::watch`], and checks the chain of the REST and EVM servers every minute.
    pub async fn watch(&self, chain_id: &str, poll: Duration) -> Infallible {
        let others = async {
            loop {
                // Failures are in the endpoints' statistics.
                let _said = join3(self.verify_rest(chain_id), self.verify_evm(), sleep(CHECK)).await;
            }
        };
        tokio::select! {
            never = self.comet.watch(chain_id, poll) => never,
            never = others => never,
        }
    }

    /// Current states of all CometBFT, REST and EVM endpoints.
    pub fn endpoints(&self) -> Vec<EndpointState> {
        self.pools().flat_map(|pool| pool.states().to_vec()).collect()
    }

    /// Last failure of the first service whose endpoints are all down.
    pub fn outage(&self) -> Option<String> {
        self.pools().find_map(|pool| {
            let states = pool.states();
            let all_down = states.iter().all(|endpoint| endpoint.down_since.is_some());
            states.iter().find_map(|endpoint| endpoint.last_error.clone()).filter(|_| all_down)
        })
    }

    pub(crate) fn pools(&self) -> impl Iterator<Item = &Pool> {
        let (rest, evm) = (self.rest.as_ref().map(Rest::pool), self.evm.as_ref().map(Evm::pool));
        std::iter::once(self.comet.pool()).chain(rest).chain(evm)
    }

    async fn verify_rest(&self, chain_id: &str) -> Result<(), Error> {
        match &self.rest {
            Some(rest) => rest.verify_chain(chain_id).await,
            None => Ok(()),
        }
    }

    async fn verify_evm(&self) -> Result<(), Error> {
        match &self.evm {
            Some(evm) => evm.verify_chain().await,
            None => Ok(()),
        }
    }
}

impl Comet {
    /// Asks every endpoint for its chain. Returns the status with the highest tip. Endpoints of another chain are
    /// logged and not asked any more.
    ///
    /// Fails with [`Error::WrongChain`] if every endpoint belongs to another chain, otherwise only if no endpoint of
    /// the right chain answers.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<Status, Error> {
        self.expect_chain(chain_id);
        let looks = join_all(self.pool().members().iter().map(|member| self.fetch_status(member))).await;
        let (mut best, mut failure) = (None::<Status>, None);
        for outcome in looks {
            match outcome {
                Ok(status) if best.as_ref().is_none_or(|b| b.latest_height < status.latest_height) => {
                    best = Some(status);
                }
                Ok(_) => {}
                Err(error) => failure = Some(better(failure, error)),
            }
        }
        match (best, failure) {
            (Some(status), _) => Ok(status),
            (None, Some(error)) => Err(error),
            // Unreachable: a pool has at least one member, so there is a status or a failure.
            (None, None) => self.status().await,
        }
    }
}

impl Rest {
    /// Asks every server for its chain. Servers of another chain are logged and not asked any more. Fails if no
    /// server of the right chain answers, with [`Error::WrongChain`] if all are of another.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct NodeInfoAnswer {
            default_node_info: Info,
        }
        #[derive(Deserialize)]
        struct Info {
            network: String,
        }
        let path = "/cosmos/base/tendermint/v1beta1/node_info";
        let call = Call::get(path, path.to_owned());
        let attempt = async |endpoint: Arc<Endpoint>| {
            let answer = json_of(&endpoint, &call).await?;
            let said: NodeInfoAnswer = crate::comet_rpc::parsed(&endpoint, &call, &answer)?;
            Ok(said.default_node_info.network)
        };
        let said = join_all(self.pool().members().iter().map(|m| self.pool().send(m, &call, &attempt))).await;
        let (mut right, mut failure) = (false, None);
        for (member, said) in self.pool().members().iter().zip(said) {
            let network = match said {
                Ok(network) => network,
                Err(error) => {
                    failure = Some(better(failure, error));
                    continue;
                }
            };
            if self.pool().check_chain_id(member, chain_id, &network) {
                right = true;
            } else {
                let (at, want) = (member.endpoint.site(&call), chain_id.to_owned());
                failure = Some(better(failure, Error::WrongChain { at, want, got: network }));
            }
        }
        if right { Ok(()) } else { failure.map_or(Ok(()), Err) }
    }
}

impl Evm {
    /// Asks every server for its EIP-155 chain id. Servers that differ from the majority, or from the first of two,
    /// are logged and not asked any more.
    ///
    /// Fails if no server answers, and with [`Error::WrongChain`] if the id was decided before and every server now
    /// reports another.
    pub async fn verify_chain(&self) -> Result<(), Error> {
        let members = self.pool().members();
        if let [_alone] = members {
            // A single server cannot be compared.
            return Ok(());
        }
        let request = self.request("eth_chainId", "[]");
        let attempt = async |endpoint: Arc<Endpoint>| {
            let result = request.send_with(&endpoint, classify).await?;
            let reason = || format!("{} is no chain id", crate::error::excerpt(&result));
            quantity(&result)
                .ok_or_else(|| Error::Malformed { at: endpoint.site(&request.call), reason: reason() })
        };
        let said = join_all(members.iter().map(|m| self.pool().send(m, &request.call, &attempt))).await;
        let heard: Vec<Option<u64>> = said.iter().map(|said| said.as_ref().ok().copied()).collect();
        if let (None, Some(found)) = (self.chain().get(), decided(&heard)) {
            self.chain().get_or_init(|| found);
        }
        // Until the id is decided, excluded servers do not vote: they would readmit themselves as soon as the others
        // are unreachable.
        let has_voice = |member: &PooledEndpoint| member.stats().chain_mismatch.is_none();
        let voices = members.iter().zip(&heard).filter(|(member, _)| has_voice(member));
        let so_far = || most_frequent(voices.filter_map(|(_, said)| *said));
        let Some(want) = self.chain().get().copied().or_else(so_far) else {
            return said.into_iter().find_map(Result::err).map_or(Ok(()), Err);
        };
        let (mut right, mut failure) = (false, None);
        for (member, said) in members.iter().zip(said) {
            match said {
                Ok(said) if self.pool().check_chain_id(member, &want.to_string(), &said.to_string()) => {
                    right = true;
                }
                Ok(said) => {
                    let (at, want, got) =
                        (member.endpoint.site(&request.call), want.to_string(), said.to_string());
                    failure = Some(better(failure, Error::WrongChain { at, want, got }));
                }
                // An unreachable server is neither right nor wrong.
                Err(error) => failure = Some(better(failure, error)),
            }
        }
        if right { Ok(()) } else { failure.map_or(Ok(()), Err) }
    }
}

/// The most frequent value; the earliest among equals.
fn most_frequent(all: impl Iterator<Item = u64>) -> Option<u64> {
    let all: Vec<_> = all.collect();
    let times = |one: u64| all.iter().filter(|said| **said == one).count();
    // `max_by_key` takes the last of equals.
    all.iter().copied().rev().max_by_key(|said| times(*said))
}

/// The decided chain id: reported by more than half of all servers, or the most frequent once all have answered.
/// Missing answers leave it undecided; otherwise a server of another chain that is alone for a moment would decide
/// for ever.
fn decided(heard: &[Option<u64>]) -> Option<u64> {
    let said: Vec<u64> = heard.iter().flatten().copied().collect();
    let most = most_frequent(said.iter().copied())?;
    let times = said.iter().filter(|one| **one == most).count();
    (times * 2 > heard.len() || said.len() == heard.len()).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_decides_and_the_first_of_equals() {
        let most = |said: &[u64]| most_frequent(said.iter().copied());
        assert_eq!(most(&[1, 2, 2]), Some(2));
        assert_eq!(most(&[1, 2]), Some(1));
        assert_eq!(most(&[3]), Some(3));
        assert_eq!(most(&[]), None);
    }

    #[test]
    fn silence_leaves_the_chain_open_unless_most_of_all_have_said_the_same() {
        assert_eq!(decided(&[Some(1), Some(2)]), Some(1));
        assert_eq!(decided(&[Some(1), None]), None);
        assert_eq!(decided(&[None, Some(2), Some(2)]), Some(2));
        assert_eq!(decided(&[None, Some(1), Some(2)]), None);
        assert_eq!(decided(&[None, None]), None);
    }
}
