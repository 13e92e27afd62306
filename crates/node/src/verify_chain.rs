//! Verification of the chain id of CometBFT, REST and EVM endpoints.
//!
//! CometBFT and REST servers report the chain id. EVM servers report a number (EIP-155) that follows from no other
//! service: the right one is that of a server whose blocks have the times of CometBFT's blocks at the same heights, or
//! else it is decided by majority. gRPC servers are not queried: they serve descriptors only.
//!
//! # Invariants
//!
//! * An endpoint of another chain is logged and not queried until it reports the right one. An endpoint that does not
//!   answer counts as neither right nor wrong.
//! * The EVM chain id is final once a server proved to be of the chain, or more than half of several servers reported the
//!   same number, or all have answered.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use chain::excerpt;
use futures_util::future::{OptionFuture, join, join_all};
use serde_json::Value;
use tokio::time::sleep;

use crate::comet::Comet;
use crate::comet::status::Status;
use crate::error::{Error, RequestContext};
use crate::evm::{Evm, classify, quantity};
use crate::json::text_at;
use crate::node::Node;
use crate::pool::endpoint::{Endpoint, Request};
use crate::pool::{PooledEndpoint, better, no_address};
use crate::rest::{NODE_INFO, Rest, json_of};

/// Interval of chain checks for services without heights.
const CHECK: Duration = Duration::from_mins(1);

/// The same until every service has been checked once: one that was down at the start may be of another chain.
const FIRST_CHECK: Duration = Duration::from_secs(2);

impl Node {
    /// Queries every CometBFT, REST and EVM endpoint for its chain. Returns CometBFT's status with the highest tip.
    ///
    /// As [`Comet::verify_chain`]. Also fails with [`Error::WrongChain`] if all REST servers belong to another chain,
    /// or all EVM servers to another than the one decided before. Unreachable REST and EVM servers are not a failure.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<Status, Error> {
        // First, because the EVM's blocks are compared with those of CometBFT.
        let status = self.comet.verify_chain(chain_id).await;
        let others = self.verify_others(chain_id).await;
        for other in others.into_iter().flatten() {
            // An unreachable server must not prevent the start.
            if let Err(error @ Error::WrongChain { .. }) = other {
                return Err(error);
            }
        }
        status
    }

    /// Runs [`Comet::watch`], and checks the chain of the REST and EVM servers every minute, more often until they have
    /// answered.
    pub async fn watch(&self, chain_id: &str, poll: Duration) -> Infallible {
        let others = async {
            loop {
                // Failures are in the endpoints' states.
                let outcomes = self.verify_others(chain_id).await;
                let is_checked = outcomes.into_iter().flatten().all(|outcome| outcome.is_ok());
                sleep(if is_checked { CHECK } else { FIRST_CHECK }).await;
            }
        };
        tokio::select! {
            never = self.comet.watch(chain_id, poll) => never,
            never = others => never,
        }
    }

    /// Checks the chain of the REST servers and of the EVM servers.
    async fn verify_others(&self, chain_id: &str) -> [Option<Result<(), Error>>; 2] {
        let rest = OptionFuture::from(self.rest.as_ref().map(|rest| rest.verify_chain(chain_id)));
        let evm =
            OptionFuture::from(self.evm.as_ref().map(|evm| evm.verify_chain(Some(&self.comet), chain_id)));
        join(rest, evm).await.into()
    }
}

impl Comet {
    /// Queries every endpoint for its chain. Returns the status with the highest tip. Endpoints of another chain are
    /// logged and not queried any more.
    ///
    /// Fails with [`Error::WrongChain`] if every endpoint belongs to another chain, otherwise only if no endpoint of
    /// the right chain answers.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<Status, Error> {
        self.expect_chain(chain_id);
        let statuses = self.pool.members().iter().map(|member| self.fetch_status(member));
        best_of(join_all(statuses).await, |status| status.latest_height)
    }
}

impl Rest {
    /// Queries every server for its chain. Servers of another chain are logged and not queried any more. Fails if no
    /// server of the right chain answers, with [`Error::WrongChain`] if all are of another.
    pub async fn verify_chain(&self, chain_id: &str) -> Result<(), Error> {
        let request = &Request::get(NODE_INFO, NODE_INFO.to_owned());
        let checks = self.pool.members().iter().map(|member| async move {
            let attempt = async |endpoint: Arc<Endpoint>| {
                let answer: Value = endpoint.parse(request, &json_of(&endpoint, request).await?)?;
                let network = text_at(&answer, "/default_node_info/network").map(str::to_owned);
                network.map_err(|reason| endpoint.malformed(request, reason))
            };
            let network = self.pool.send(member, request, &attempt).await?;
            self.pool.check_chain_id(member, request, chain_id, &network)
        });
        best_of(join_all(checks).await, |()| 0)
    }
}

impl Evm {
    /// Decides the EIP-155 chain id, before any server reports one.
    pub fn expect_number(&self, number: u64) {
        self.chain.get_or_init(|| number);
    }

    /// Queries every server for its EIP-155 chain id. A server whose blocks have other times than those of `comet` is of
    /// another chain than `chain_id`. Of servers that cannot be compared, those that differ
    /// from the majority, or from the first of two, are. They are logged and not queried any more.
    ///
    /// Fails if no server answers, and with [`Error::WrongChain`] if every server is of another chain.
    pub async fn verify_chain(&self, comet: Option<&Comet>, chain_id: &str) -> Result<(), Error> {
        let members = self.pool.members();
        let request = &self.request("eth_chainId", "[]");
        let attempt = &async |endpoint: Arc<Endpoint>| {
            let result = request.send_with(&endpoint, classify).await?;
            let malformed =
                || endpoint.malformed(&request.http, format!("{} is not a chain id", excerpt(&result)));
            quantity(&result).ok_or_else(malformed)
        };
        let requests = members.iter().map(|member| self.pool.send(member, &request.http, attempt));
        let answers = join_all(requests).await;
        let is_open = self.chain.get().is_none();
        let proofs = members
            .iter()
            .map(|member| async move { self.is_of_chain(member, comet.filter(|_| is_open)?).await });
        let proofs: Vec<Option<bool>> = join_all(proofs).await;
        let reported = |wanted: fn(Option<bool>) -> bool| -> Vec<Option<u64>> {
            let ids = answers.iter().zip(&proofs);
            ids.map(|(id, proof)| id.as_ref().ok().copied().filter(|_| wanted(*proof))).collect()
        };
        let proven = reported(|proof| proof == Some(true)).into_iter().flatten().next();
        let possible = reported(|proof| proof != Some(false));
        // A single server cannot be compared with another.
        let voted = if members.len() > 1 { decided(&possible) } else { None };
        if let (true, Some(id)) = (is_open, proven.or(voted)) {
            self.chain.get_or_init(|| id);
        }
        // Until the id is decided, excluded servers do not vote: they would readmit themselves as soon as the others
        // are unreachable.
        let votes =
            members.iter().zip(&possible).filter(|(member, _)| member.stats().chain_mismatch().is_none());
        let votes = || most_frequent(votes.filter_map(|(_, id)| *id));
        let want = self.chain.get().copied().or_else(votes);
        let checks = members.iter().zip(answers).zip(&proofs).map(|((member, answer), proof)| {
            // An unreachable server counts as neither right nor wrong.
            let got = answer?;
            match want {
                _ if *proof == Some(false) => {
                    self.pool.check_chain_id(member, &request.http, chain_id, &format!("eip155:{got}"))
                }
                Some(want) => {
                    self.pool.check_chain_id(member, &request.http, &want.to_string(), &got.to_string())
                }
                None => Ok(()),
            }
        });
        best_of(checks.collect(), |()| 0)
    }

    /// Whether a server has blocks of the chain of `comet`: one of up to three has the time of the block of `comet` at its
    /// height. Several, because a single reply may be false, or of a history that is given up. `None` if there are no two
    /// blocks to compare.
    async fn is_of_chain(&self, member: &PooledEndpoint, comet: &Comet) -> Option<bool> {
        let (last, _) = self.block_at(member, "latest").await?;
        let last = last.min(comet.pool.tip()).max(1);
        let mut is_same = None;
        for height in [last, last.div_ceil(2), 1] {
            let Some((_, time)) = self.block_at(member, &format!("{height:#x}")).await else { continue };
            let Ok(expected) = comet.block_time(height).await else { continue };
            if u64::try_from(expected.unix_nanos() / 1_000_000_000) == Ok(time) {
                return Some(true);
            }
            is_same = Some(false);
        }
        is_same
    }

    /// Height and time in seconds of a block of one server.
    async fn block_at(&self, member: &PooledEndpoint, block: &str) -> Option<(u64, u64)> {
        let request = &self.request("eth_getBlockByNumber", &format!(r#"["{block}",false]"#));
        let attempt = &async |endpoint: Arc<Endpoint>| request.send_with(&endpoint, classify).await;
        let block = self.pool.send(member, &request.http, attempt).await.ok()?;
        let block: Value = serde_json::from_slice(&block).ok()?;
        let number = |name: &str| quantity(block.get(name)?.to_string().as_bytes());
        Some((number("number").filter(|height| *height > 0)?, number("timestamp")?))
    }
}

/// The first of the greatest values, or the most informative failure if there is no value.
fn best_of<T, K: Ord>(outcomes: Vec<Result<T, Error>>, key: impl Fn(&T) -> K) -> Result<T, Error> {
    let (mut values, mut failure) = (Vec::new(), None);
    for outcome in outcomes {
        match outcome {
            Ok(value) => values.push(value),
            Err(error) => failure = Some(better(failure, error)),
        }
    }
    // `max_by_key` takes the last of equals.
    let best = values.into_iter().rev().max_by_key(key);
    best.ok_or_else(|| failure.unwrap_or_else(|| no_address(RequestContext::default())))
}

/// The most frequent value; the earliest among equals.
fn most_frequent(all: impl Iterator<Item = u64>) -> Option<u64> {
    let all: Vec<_> = all.collect();
    let count = |value: u64| all.iter().filter(|other| **other == value).count();
    // `max_by_key` takes the last of equals.
    all.iter().copied().rev().max_by_key(|value| count(*value))
}

/// The decided chain id: reported by more than half of all servers, or the most frequent once all have answered.
/// Missing replies leave it undecided; otherwise the only reachable server could permanently decide for a wrong chain.
fn decided(answers: &[Option<u64>]) -> Option<u64> {
    let ids: Vec<u64> = answers.iter().flatten().copied().collect();
    let most = most_frequent(ids.iter().copied())?;
    let count = ids.iter().filter(|id| **id == most).count();
    (count * 2 > answers.len() || ids.len() == answers.len()).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_decides_and_the_first_of_equals() {
        let most = |ids: &[u64]| most_frequent(ids.iter().copied());
        assert_eq!(most(&[1, 2, 2]), Some(2));
        assert_eq!(most(&[1, 2]), Some(1));
        assert_eq!(most(&[3]), Some(3));
        assert_eq!(most(&[]), None);
    }

    #[test]
    fn missing_answers_leave_the_chain_undecided_unless_most_servers_agree() {
        assert_eq!(decided(&[Some(1), Some(2)]), Some(1));
        assert_eq!(decided(&[Some(1), None]), None);
        assert_eq!(decided(&[None, Some(2), Some(2)]), Some(2));
        assert_eq!(decided(&[None, Some(1), Some(2)]), None);
        assert_eq!(decided(&[None, None]), None);
    }
}
