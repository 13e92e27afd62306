//! Which chain every endpoint of every service belongs to.
//!
//! Holds: an endpoint of another chain is named in the log and not asked until it says the right one; one that does
//! not answer is neither right nor wrong. CometBFT and REST servers say the chain id, EVM servers a number that is
//! compared with what most of them say.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, join3};
use serde::Deserialize;
use tokio::time::sleep;

use crate::cosmos::json_of;
use crate::endpoint::{Call, Endpoint};
use crate::error::Error;
use crate::evm::{meaning, quantity};
use crate::heads::EndpointState;
use crate::pool::better;
use crate::{Comet, Evm, Node, Rest, Status};

/// How often the services without a height of their own are asked for their chain.
const CHECK: Duration = Duration::from_mins(1);

impl Node {
    /// Asks every endpoint of every service which chain it belongs to; gives CometBFT's status with the highest tip.
    ///
    /// As [`Comet::verify_chain`]; fails with [`Error::WrongChain`] too if all REST servers belong to another chain.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<Status, Error> {
        let (status, rest, _said) =
            join3(self.comet.verify_chain(chain_id), self.verify_rest(chain_id), self.verify_evm()).await;
        match rest {
            Err(error @ Error::WrongChain { .. }) => Err(error),
            // A REST server that is down is no reason not to start.
            Ok(()) | Err(_) => status,
        }
    }

    /// [`Comet::watch`], and every minute which chain the REST and EVM servers belong to.
    pub async fn watch(&self, chain_id: &str, poll: Duration) -> Infallible {
        let others = async {
            loop {
                // What fails is in the endpoints' records.
                let _said = join3(self.verify_rest(chain_id), self.verify_evm(), sleep(CHECK)).await;
            }
        };
        tokio::select! {
            never = self.comet.watch(chain_id, poll) => never,
            never = others => never,
        }
    }

    /// What is known of every endpoint of every service at this moment.
    pub fn endpoints(&self) -> Vec<EndpointState> {
        let states = |pool: Arc<[EndpointState]>| pool.to_vec();
        let mut all = states(self.comet.endpoints());
        all.extend(self.rest.iter().flat_map(|rest| states(rest.pool().states())));
        all.extend(self.evm.iter().flat_map(|evm| states(evm.pool().states())));
        all
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
    /// Asks every endpoint which chain it belongs to; gives the status with the highest tip. Those of another chain
    /// are named in the log and not asked any more.
    ///
    /// Fails with [`Error::WrongChain`] if every endpoint belongs to another chain, else only if none of the right
    /// one answers.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<Status, Error> {
        self.expect_chain(chain_id);
        let looks = join_all(self.pool().members().iter().map(|member| self.look(member))).await;
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
            // Never reached: a pool has at least one member, so there is a status or a failure.
            (None, None) => self.status().await,
        }
    }
}

impl Rest {
    /// Asks every server which chain it belongs to. Those of another chain are named in the log and not asked any
    /// more. Fails if none of the right one answers, with [`Error::WrongChain`] if all are of another.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Said {
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
            let said: Said = crate::comet::parsed(&endpoint, &call, &answer)?;
            Ok(said.default_node_info.network)
        };
        let said = join_all(self.pool().members().iter().map(|m| self.pool().put(m, &call, &attempt))).await;
        let (mut right, mut failure) = (false, None);
        for (member, said) in self.pool().members().iter().zip(said) {
            let network = match said {
                Ok(network) => network,
                Err(error) => {
                    failure = Some(better(failure, error));
                    continue;
                }
            };
            if self.pool().belongs(member, chain_id, &network) {
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
    /// Asks every server for its chain's EIP-155 id. Those that say another one than most do, or than the first of
    /// two, are named in the log and not asked any more. Fails if none answers.
    pub async fn verify_chain(&self) -> Result<(), Error> {
        let members = self.pool().members();
        if let [_alone] = members {
            // Nobody to compare it with.
            return Ok(());
        }
        let question = self.question("eth_chainId", "[]");
        let attempt = async |endpoint: Arc<Endpoint>| {
            let result = question.put_as(&endpoint, meaning).await?;
            let reason = || format!("{} is no chain id", crate::error::excerpt(&result));
            quantity(&result)
                .ok_or_else(|| Error::Malformed { at: endpoint.site(&question.call), reason: reason() })
        };
        let said = join_all(members.iter().map(|m| self.pool().put(m, &question.call, &attempt))).await;
        let Some(want) = most_said(said.iter().flatten().copied()) else {
            return said.into_iter().find_map(Result::err).map_or(Ok(()), Err);
        };
        for (member, said) in members.iter().zip(said) {
            // Whoever does not answer has said nothing.
            if let Ok(said) = said {
                self.pool().belongs(member, &want.to_string(), &said.to_string());
            }
        }
        Ok(())
    }
}

/// What is said most often, and earliest among equals.
fn most_said(all: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    let times = |one: u64| all.clone().filter(|said| *said == one).count();
    // `max_by_key` takes the last of equals.
    all.clone().collect::<Vec<_>>().into_iter().rev().max_by_key(|said| times(*said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_decides_and_the_first_of_equals() {
        let most = |said: &[u64]| most_said(said.iter().copied());
        assert_eq!(most(&[1, 2, 2]), Some(2));
        assert_eq!(most(&[1, 2]), Some(1));
        assert_eq!(most(&[3]), Some(3));
        assert_eq!(most(&[]), None);
    }
}
