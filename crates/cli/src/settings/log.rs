//! The settings of logging: filter and format.

use std::str::FromStr;

use tracing_subscriber::EnvFilter;

use super::units::{BadText, choice};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Filter and format of the log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
}

/// A valid log filter, kept as text because [`EnvFilter`] cannot be cloned.
pub(super) struct Filter(pub(super) String);

impl FromStr for Filter {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        match EnvFilter::try_new(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => {
                Err(BadText::new(text, format!("a log filter such as info or info,ingest=debug: {error}")))
            }
        }
    }
}

impl FromStr for LogFormat {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        choice(text, &[("text", Self::Text), ("json", Self::Json)])
    }
}
