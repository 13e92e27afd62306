//! SDK accounts: the address and the sequence of an account of any kind.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tracing::warn;

use crate::error::Error;
use crate::pool::endpoint::{Endpoint, Request};
use crate::rest::gateway::answer_of;

/// Characters that are not encoded in a struct tag, an address or a denom.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b':').remove(b'_').remove(b'-').remove(b'.');

/// Percent-encodes one segment or parameter.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// An account of any kind: the kinds wrap each other (SDK `auth`, `vesting`; Initia's contract and object accounts).
#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the SDK's JSON")]
pub(crate) struct Account {
    #[serde(rename = "@type", default)]
    kind: String,
    address: Option<String>,
    #[serde(default)]
    sequence: Option<String>,
    base_account: Option<Box<Account>>,
    base_vesting_account: Option<Box<Account>>,
}

impl Account {
    pub(crate) fn address(self) -> Option<String> {
        let kind = self.kind.clone();
        if let Some(address) = self.find(|entry| entry.address.take()) {
            return Some(address);
        }
        warn!(kind, "an account of an unknown kind has no address and is left out");
        None
    }

    /// A member of the outermost account that has it.
    fn find(self, member: impl Fn(&mut Self) -> Option<String>) -> Option<String> {
        let mut next = Some(Box::new(self));
        while let Some(mut entry) = next {
            if let Some(found) = member(&mut entry) {
                return Some(found);
            }
            next = entry.base_account.or(entry.base_vesting_account);
        }
        None
    }
}

/// `/cosmos/auth/v1beta1/accounts/{address}`: the next sequence of an account; 0 where there is no such account.
pub(crate) async fn sequence_of(
    endpoint: &Endpoint,
    address: &str,
    height: Option<u64>,
) -> Result<u64, Error> {
    #[derive(Deserialize)]
    struct Reply {
        account: Account,
    }
    let path = format!("/cosmos/auth/v1beta1/accounts/{}", encoded(address));
    let request = Request::get(&path, path.clone()).in_state(height);
    let answer = match answer_of(endpoint, &request).await {
        Err(Error::Refused { .. }) => return Ok(0),
        answer => answer?,
    };
    let answer: Reply = endpoint.parse(&request, &answer)?;
    let sequence = answer.account.find(|entry| entry.sequence.take()).and_then(|text| text.parse().ok());
    let reason = || "an account without a sequence".to_owned();
    sequence.ok_or_else(|| endpoint.malformed(&request, reason()))
}
