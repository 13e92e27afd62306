//! What others see of an error: clients of this program its outline, the operator's log its texts without the secrets of
//! the address, which a server may repeat.

use crate::error::Error;
use crate::url::Url;

impl Error {
    /// What failed, in words for strangers: without an address and without a text of the node.
    pub fn outline(&self) -> &'static str {
        match self {
            Self::NotYet { .. } => "it has not reached the height",
            Self::Unreachable { .. } => "it cannot be reached",
            Self::TimedOut { .. } | Self::Stalled { .. } => "it does not answer in time",
            Self::Busy { .. } | Self::RateLimited { .. } => "it is unavailable or limits requests",
            Self::Cut { .. }
            | Self::Unreadable { .. }
            | Self::Malformed { .. }
            | Self::Redirected { .. }
            | Self::TooLarge { .. } => "its replies cannot be read",
            Self::Faulty { .. } | Self::Corrupt { .. } => "it reports a fault of its own",
            Self::Pruned { .. } | Self::ResultsMissing { .. } | Self::ResultsDiscarded { .. } => {
                "it lacks old heights"
            }
            // What to change is no text of the node.
            Self::MethodMissing { advice, .. } => advice,
            Self::NotIndexed { .. } | Self::RangeRequired { .. } | Self::Untraceable { .. } => {
                "it does not serve a request"
            }
            Self::WrongChain { .. } => "it serves another chain",
            Self::Refused { .. } | Self::InvalidRequest { .. } => "it refuses a request",
        }
    }

    /// Applies `change` to every text that may come from a server.
    pub(crate) fn change_texts(&mut self, change: impl Fn(&mut String)) {
        match self {
            Self::NotYet { message, .. }
            | Self::Faulty { message, .. }
            | Self::Pruned { message, .. }
            | Self::RangeRequired { message, .. }
            | Self::Corrupt { message, .. }
            | Self::MethodMissing { message, .. }
            | Self::Refused { message, .. } => change(message),
            Self::Unreachable { reason, .. }
            | Self::Cut { reason, .. }
            | Self::Malformed { reason, .. }
            | Self::InvalidRequest { reason, .. } => change(reason),
            Self::Unreadable { reason, message, .. } => {
                change(reason);
                change(message);
            }
            Self::Redirected { to, .. } => change(to),
            Self::WrongChain { got, .. } => change(got),
            Self::TimedOut { .. }
            | Self::Busy { .. }
            | Self::RateLimited { .. }
            | Self::Stalled { .. }
            | Self::ResultsMissing { .. }
            | Self::ResultsDiscarded { .. }
            | Self::NotIndexed { .. }
            | Self::Untraceable { .. }
            | Self::TooLarge { .. } => {}
        }
    }
}

impl Url {
    /// Replaces the secrets of this address in a text: its credentials, path and query.
    pub(crate) fn redact(&self, text: &mut String) {
        for secret in self.secrets().filter(|secret| text.contains(*secret)).collect::<Vec<_>>() {
            *text = text.replace(secret, "***");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RequestContext;

    #[test]
    fn a_text_that_repeats_the_address_is_shown_without_its_secrets() {
        let url: Url = "https://me:hunter2@node/v1/key-in-path/?key=key-in-query&a=1".parse().unwrap();
        let mut error = Error::Refused {
            at: RequestContext::default(),
            code: 3,
            message: "GET /v1/key-in-path/status?key=key-in-query&a=1 by Basic bWU6aHVudGVyMg== me:hunter2: \
                      key-in-path, key-in-query and hunter2"
                .to_owned(),
        };
        error.change_texts(|text| url.redact(text));
        let shown = error.to_string();
        for secret in ["hunter2", "key-in-path", "key-in-query", "bWU6"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("status"), "{shown}");
        let mut plain = "a node without secrets: /".to_owned();
        "http://node:1".parse::<Url>().unwrap().redact(&mut plain);
        assert_eq!(plain, "a node without secrets: /");
    }
}
