//! Packet memos: forwarding and contract calls on arrival.
//!
//! The packet forward middleware reads `forward`, minievm's IBC hooks read `evm`, those of Move chains `move`.
//! Both reject unknown members, so a memo has no others.

use serde::Serialize;

use crate::amino::{Function, Invocation, json};
use crate::error::BuildError;

/// Maximum memo of ibc-go, in bytes.
const MAX_MEMO: usize = 32_768;
/// Maximum receiver of ibc-go, in bytes.
const MAX_RECEIVER: usize = 2_048;

/// Action of the receiving chain.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Memo {
    Forward(Forward),
    Evm(Hook<Invocation>),
    Move(Hook<Function>),
}

/// Forwards the packet.
#[derive(Serialize)]
pub(crate) struct Forward {
    receiver: String,
    port: String,
    channel: String,
    timeout: &'static str,
    retries: u8,
    /// Action of the next chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Box<Memo>>,
}

/// Calls a contract or module from the packet's own account.
#[derive(Serialize)]
pub(crate) struct Hook<T> {
    message: T,
}

/// Receiver and memo of a packet.
pub(crate) struct Arrival {
    pub(crate) receiver: String,
    pub(crate) memo: Option<Memo>,
}

impl Arrival {
    /// Arrival at an account, without an action.
    pub(crate) fn at(receiver: String) -> Self {
        Self { receiver, memo: None }
    }

    /// Arrival with a call of a contract. The IBC hook requires that the receiver equals the contract's text.
    pub(crate) fn calling(input: Invocation) -> Self {
        Self { receiver: input.contract_addr.clone(), memo: Some(Memo::Evm(Hook { message: input })) }
    }

    /// Arrival with a call of a function of a Move module, from which the IBC hook derives `receiver`.
    pub(crate) fn executing(receiver: String, function: Function) -> Self {
        Self { receiver, memo: Some(Memo::Move(Hook { message: function })) }
    }

    /// Arrival at `receiver`, which forwards the packet over a channel of its chain; the next arrival is `self`.
    ///
    /// There are three attempts of ten minutes. The timeout is a duration: the middleware would read an absolute time
    /// as a duration of decades.
    pub(crate) fn forwarded_by(self, receiver: String, port: &str, channel: &str) -> Self {
        let forward = Forward {
            receiver: self.receiver,
            port: port.to_owned(),
            channel: channel.to_owned(),
            timeout: "10m",
            retries: 2,
            next: self.memo.map(Box::new),
        };
        Self { receiver, memo: Some(Memo::Forward(forward)) }
    }

    /// Receiver and memo as texts, within the limits of ibc-go; the memo is empty if there is none.
    pub(crate) fn texts(self) -> Result<(String, String), BuildError> {
        let memo = self.memo.as_ref().map(json).unwrap_or_default();
        within("receiver of the packet", self.receiver.len(), MAX_RECEIVER)?;
        within("memo of the packet", memo.len(), MAX_MEMO)?;
        Ok((self.receiver, memo))
    }
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<(), BuildError> {
    if size > limit { Err(BuildError::TooLarge { what, size, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_is_as_deep_as_the_packet_travels() {
        let call = Invocation::new("0xB24905344757Bf9CE80442fE1245A9019ee2d749", &[0x1e, 0xfd]);
        let arrival = Arrival::calling(call)
            .forwarded_by("between".to_owned(), "transfer", "channel-97")
            .forwarded_by("middle".to_owned(), "transfer", "channel-3");
        let (receiver, memo) = arrival.texts().unwrap();
        assert_eq!(receiver, "middle");
        assert_eq!(
            memo,
            concat!(
                r#"{"forward":{"receiver":"between","port":"transfer","channel":"channel-3","timeout":"10m","retries":2,"#,
                r#""next":{"forward":{"receiver":"0xB24905344757Bf9CE80442fE1245A9019ee2d749","port":"transfer","#,
                r#""channel":"channel-97","timeout":"10m","retries":2,"next":{"evm":{"message":{"#,
                r#""contract_addr":"0xB24905344757Bf9CE80442fE1245A9019ee2d749","input":"0x1efd","value":"0","#,
                r#""access_list":[]}}}}}}}"#
            )
        );
    }

    #[test]
    fn texts_longer_than_chains_accept_are_refused_with_length_and_limit() {
        let long =
            |length: usize| Arrival::at("r".repeat(length)).texts().map(|(receiver, _)| receiver.len());
        assert_eq!(long(2_048), Ok(2_048));
        assert_eq!(
            long(2_049),
            Err(BuildError::TooLarge { what: "receiver of the packet", size: 2_049, limit: 2_048 })
        );
        let memo = |bytes: usize| Arrival::calling(Invocation::new("0x", &vec![0; bytes])).texts();
        assert_eq!(memo(16_000).unwrap().1.len(), 32_084);
        let most = 16_000 + (MAX_MEMO - 32_084) / 2;
        assert_eq!(memo(most).unwrap().1.len(), MAX_MEMO);
        let refused = memo(most + 1).unwrap_err();
        assert_eq!(
            refused,
            BuildError::TooLarge { what: "memo of the packet", size: MAX_MEMO + 2, limit: MAX_MEMO }
        );
    }
}
