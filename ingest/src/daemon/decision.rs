//! The daemon's decisions: the chain's height, conflicts of endpoints with the index, and the recovery from the error
//! that ended the lanes. Pure: no IO, no clock.

use std::time::Duration;

use node::{EndpointState, EndpointStatus, Origin};

use crate::Error;

/// The chain's height according to its endpoints. As for requests, a distrusted endpoint counts only if all are
/// distrusted.
pub(super) fn chain_height(endpoints: &[EndpointState]) -> Option<u64> {
    let highest = |counts: fn(&EndpointState) -> bool| {
        endpoints.iter().filter(|endpoint| counts(endpoint)).filter_map(|endpoint| endpoint.height).max()
    };
    highest(EndpointState::is_trusted)
        .or_else(|| highest(|endpoint| endpoint.status != EndpointStatus::WrongChain))
}

/// The highest height whose block hash the endpoint has announced, and the hash.
pub(super) fn announced_block(endpoint: &EndpointState) -> Option<(u64, [u8; 32])> {
    let tip = endpoint.height?;
    match endpoint.hash {
        Some(hash) => Some((tip, hash)),
        None => tip.checked_sub(1).zip(endpoint.parent),
    }
}

/// The recovery from an error that ended the lanes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// Choose between the indexed block of `height` and that of `origin`. If `origin` contradicts itself, distrust it
    /// for `reason`; a single endpoint is an error if `needs_another`.
    ChooseFork { height: u64, origin: Origin, reason: &'static str, needs_another: bool },
    /// Remove the rows above this height.
    Rewind { to: u64 },
    /// Wait until the disk has room.
    WaitForRoom,
    /// Restart the lanes after this pause.
    Restart { after: Duration },
    /// An operator is needed.
    GiveUp,
}

/// The recovery from `error`; `keep_trying` is the pause before a restart after an error of the node, if restarts are
/// enabled.
pub(super) fn recovery(error: &Error, keep_trying: Option<Duration>) -> Recovery {
    match error {
        Error::Fork { height, origin: Some(origin), .. } => Recovery::ChooseFork {
            height: height.saturating_sub(1),
            origin: origin.clone(),
            reason: "its block names a parent that it does not serve",
            needs_another: true,
        },
        Error::ConflictingBlock { height, origin } => Recovery::ChooseFork {
            height: *height,
            origin: origin.clone(),
            reason: "the hash of its tip differs from that of its block at the same height",
            needs_another: false,
        },
        Error::InvalidBlock { height, .. } => Recovery::Rewind { to: height.saturating_sub(1) },
        error if error.is_full() => Recovery::WaitForRoom,
        error => after_failed_recovery(error, keep_trying),
    }
}

/// The same for an error during a recovery.
pub(super) fn after_failed_recovery(error: &Error, keep_trying: Option<Duration>) -> Recovery {
    match keep_trying.filter(|_| error.is_the_nodes()) {
        Some(after) => Recovery::Restart { after },
        None => Recovery::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(of: &[(EndpointStatus, Option<u64>)]) -> Vec<EndpointState> {
        let comet = (1..=of.len()).map(|port| format!("http://127.0.0.1:{port}").parse().unwrap()).collect();
        let endpoints = node::Endpoints { comet, ..node::Endpoints::default() };
        let node = node::Node::new(endpoints, node::Limits::default()).unwrap();
        let states = node.comet.endpoints().iter().cloned().collect::<Vec<_>>();
        let with = |(state, (status, height)): (EndpointState, &(EndpointStatus, Option<u64>))| {
            EndpointState { status: *status, height: *height, ..state }
        };
        states.into_iter().zip(of).map(with).collect()
    }

    #[tokio::test]
    async fn the_chain_is_as_high_as_the_highest_trusted_endpoint() {
        use EndpointStatus::{Distrusted, Healthy, NeverSeen, WrongChain};
        let rows = [
            (vec![(NeverSeen, None)], None),
            (vec![(Healthy, Some(5)), (Healthy, Some(7))], Some(7)),
            (vec![(Healthy, Some(5)), (Distrusted, Some(9))], Some(5)),
            (vec![(NeverSeen, None), (Distrusted, Some(9))], Some(9)),
            (vec![(WrongChain, Some(9)), (Healthy, Some(5))], Some(5)),
            (vec![(WrongChain, Some(9))], None),
        ];
        assert_eq!(chain_height(&[]), None);
        for (of, height) in rows {
            assert_eq!(chain_height(&endpoints(&of)), height, "{of:?}");
        }
    }

    #[tokio::test]
    async fn an_endpoint_announces_its_tip_or_else_the_parent_of_its_tip() {
        let state = endpoints(&[(EndpointStatus::Healthy, Some(7))]).remove(0);
        let (hash, parent) = (Some([1; 32]), Some([2; 32]));
        let rows = [
            (Some(7), hash, parent, Some((7, [1; 32]))),
            (Some(7), None, parent, Some((6, [2; 32]))),
            (Some(7), None, None, None),
            (Some(0), None, parent, None),
            (None, hash, parent, None),
        ];
        for (height, hash, parent, announced) in rows {
            let state = EndpointState { height, hash, parent, ..state.clone() };
            assert_eq!(announced_block(&state), announced, "{height:?} {hash:?} {parent:?}");
        }
    }

    #[tokio::test]
    async fn every_error_has_one_recovery() {
        let origin = endpoints(&[(EndpointStatus::Healthy, None)]).remove(0).origin;
        let choose = |height, needs_another| {
            move |recovery: &Recovery| {
                matches!(recovery, Recovery::ChooseFork { height: at, needs_another: needs, .. }
                if *at == height && *needs == needs_another)
            }
        };
        let minute = Duration::from_mins(1);
        let fork = |origin| Error::fork(8, Some([1; 32]), &[2; 32], origin);
        let conflict = Error::ConflictingBlock { height: 8, origin: origin.clone() };
        let full = store::Error::NoSpace { path: "/data".into(), free: 1, reserve: 2 };
        assert!(choose(7, true)(&recovery(&fork(Some(origin)), None)));
        assert!(choose(8, false)(&recovery(&conflict, None)));
        let rows = [
            (fork(None), None, Recovery::GiveUp),
            (fork(None), Some(minute), Recovery::Restart { after: minute }),
            (Error::invalid_block(8, String::new()), None, Recovery::Rewind { to: 7 }),
            (full.into(), None, Recovery::WaitForRoom),
            (Error::Gap { next: 5, earliest: 9 }, None, Recovery::GiveUp),
            (Error::Gap { next: 5, earliest: 9 }, Some(minute), Recovery::Restart { after: minute }),
            (Error::OtherHistory { last: 5 }, Some(minute), Recovery::GiveUp),
            (Error::Setup("set `rest`"), Some(minute), Recovery::GiveUp),
        ];
        for (error, keep_trying, expected) in rows {
            assert_eq!(recovery(&error, keep_trying), expected, "{error}");
        }
    }
}
