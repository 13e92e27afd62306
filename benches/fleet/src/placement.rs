//! Chains on servers, by rendezvous hashing: a chain is on the servers whose hashes with it are the highest, so a server
//! that is added or lost moves only its own share of the chains.

use std::cmp::Reverse;

use crate::cache::mix;

/// The servers of each chain, of `servers` in total; chain `i` is on `replicas[i]` of them, and on all if there are fewer.
pub(crate) fn place(replicas: &[u32], servers: u32) -> Vec<Vec<u32>> {
    let of = |(chain, &replicas): (u64, &u32)| {
        let number = usize::try_from(replicas.min(servers)).unwrap_or(usize::MAX);
        let hash = |server: u32| mix(mix(chain + 1) ^ mix(u64::from(server) << 32 | 1));
        let mut places: Vec<_> = (0..servers).map(|server| (Reverse(hash(server)), server)).collect();
        if number < places.len() {
            places.select_nth_unstable(number);
        }
        places.into_iter().take(number).map(|(_, server)| server).collect()
    };
    (0..).zip(replicas).map(of).collect()
}
