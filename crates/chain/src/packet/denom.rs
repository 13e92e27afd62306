//! The denom that a token of a packet has on this chain.

use sha2::{Digest as _, Sha256};

use super::{End, Side};
use crate::json::push_hex_upper;

/// The denom on this chain of a token with this denom in the data of a packet from `source` to `destination`; the ends have
/// ports in both versions of IBC (ICS-20; ibc-go `ReceiverChainIsSource`, `ExtractDenomFromPath`).
pub fn local_denom(side: Side, source: &End, destination: &End, denom: &str) -> String {
    if side == Side::Sent {
        return on_chain(denom);
    }
    let way_home = format!("{}/{}/", source.port, source.channel);
    match denom.strip_prefix(&way_home) {
        Some(rest) => on_chain(rest),
        None => on_chain(&format!("{}/{}/{denom}", destination.port, destination.channel)),
    }
}

/// The bank's denom of a path: itself without hops, else its hash.
fn on_chain(path: &str) -> String {
    let mut parts = path.split('/');
    let (port, channel, base) = (parts.next(), parts.next(), parts.next());
    let is_hop = port == Some("transfer") || channel.is_some_and(is_channel);
    if !is_hop || base.is_none() {
        return path.to_owned();
    }
    let mut denom = b"ibc/".to_vec();
    push_hex_upper(&mut denom, &Sha256::digest(path));
    denom.into_iter().map(char::from).collect()
}

/// True for a channel, and for a client of IBC v2.
fn is_channel(text: &str) -> bool {
    let digits = text.strip_prefix("channel-").or_else(|| {
        let (kind, digits) = text.rsplit_once('-')?;
        // Such as `07-tendermint-0`.
        kind.starts_with(|first: char| first.is_ascii_digit()).then_some(digits)
    });
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_returns_has_its_own_denom_and_others_that_of_their_path() {
        let end = |port: &str, channel: &str| End { port: port.to_owned(), channel: channel.to_owned() };
        let (here, there) = (end("transfer", "channel-0"), end("transfer", "channel-7"));
        let local = |side, denom: &str| local_denom(side, &there, &here, denom);
        // Recorded on a rollup.
        let uinit = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";
        assert_eq!(local(Side::Received, "uinit"), uinit);
        assert_eq!(local(Side::Received, "transfer/channel-7/uinit"), "uinit");
        assert_eq!(local(Side::Received, "transfer/channel-7/evm/aB"), "evm/aB");
        assert_eq!(
            local(Side::Received, "transfer/channel-7/transfer/channel-1/uosmo"),
            on_chain("transfer/channel-1/uosmo")
        );
        assert_eq!(local(Side::Sent, "uinit"), "uinit");
        assert_eq!(local(Side::Sent, "factory/init1/x"), "factory/init1/x");
        assert!(local(Side::Sent, "transfer/07-tendermint-0/x").starts_with("ibc/"));
        assert_eq!(local(Side::Sent, "transfer/x"), "transfer/x");
    }
}
