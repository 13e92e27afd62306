//! Block times: read as `CometBFT` writes them, written as the API shows them.
//!
//! A time is a whole number of nanoseconds since 1970 in UTC, and nothing is rounded.

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;
use cosmrs::proto;
use serde::de::{Deserialize as _, Deserializer, Error as _};
use thiserror::Error;

use crate::serde_lenient::JsonText;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Nanoseconds since 1970 in UTC; reaches from 1677 to 2262.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is not an RFC 3339 time between 1677 and 2262.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not an RFC 3339 time between the years 1677 and 2262")]
pub struct BadTime(String);

impl Timestamp {
    /// Reads RFC 3339 with up to nine digits of a second, `Z` or an offset.
    pub fn parse(text: &str) -> Result<Self, BadTime> {
        OffsetDateTime::parse(text, &Rfc3339)
            .ok()
            .and_then(|time| i64::try_from(time.unix_timestamp_nanos()).ok())
            .map(Self)
            .ok_or_else(|| BadTime(text.to_owned()))
    }

    /// A time from nanoseconds since 1970.
    pub fn from_unix_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    pub fn unix_nanos(self) -> i64 {
        self.0
    }

    /// Whole seconds, truncated: `2026-03-14T09:26:53Z`.
    pub fn seconds(self) -> String {
        let second = i128::from(NANOS_PER_SECOND);
        format(i128::from(self.0).div_euclid(second) * second)
    }

    /// To the nanosecond, without trailing zeros: `2026-03-14T09:26:53.5Z`, `2026-03-14T09:26:53Z`.
    pub fn nanos(self) -> String {
        format(self.0.into())
    }

    /// Whole milliseconds from `earlier` to this time; 0 if that is later.
    pub fn millis_since(self, earlier: Self) -> u64 {
        let nanos = i128::from(self.0) - i128::from(earlier.0);
        u64::try_from(nanos / i128::from(NANOS_PER_MILLI)).unwrap_or(0)
    }
}

impl TryFrom<proto::Timestamp> for Timestamp {
    type Error = BadTime;

    fn try_from(time: proto::Timestamp) -> Result<Self, BadTime> {
        let nanos = time.seconds.checked_mul(NANOS_PER_SECOND);
        let nanos = nanos.and_then(|nanos| nanos.checked_add(time.nanos.into()));
        nanos.map(Self).ok_or_else(|| BadTime(format!("{} seconds after 1970", time.seconds)))
    }
}

/// Reads RFC 3339 as the protobuf message: any time that `CometBFT` writes, also the year 1 of a validator that did not
/// sign, which no [`Timestamp`] holds.
pub(crate) fn rfc3339<'de, D: Deserializer<'de>>(from: D) -> Result<proto::Timestamp, D::Error> {
    let text = JsonText::deserialize(from)?;
    let time = OffsetDateTime::parse(&text, &Rfc3339)
        .map_err(|error| D::Error::custom(format!("{:?} is not an RFC 3339 time: {error}", &*text)))?;
    let nanos = time.nanosecond().cast_signed();
    Ok(proto::Timestamp { seconds: time.unix_timestamp(), nanos })
}

fn format(unix_nanos: i128) -> String {
    // 64-bit nanoseconds always fit the years of RFC 3339, so the default is never used.
    let time = OffsetDateTime::from_unix_timestamp_nanos(unix_nanos).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_to_seconds_for_blocks_and_kept_to_the_nanosecond_for_transactions() {
        for (text, seconds, nanos) in [
            ("2026-03-14T09:26:53.589793238Z", "2026-03-14T09:26:53Z", "2026-03-14T09:26:53.589793238Z"),
            ("2026-03-14T09:26:53.999999999Z", "2026-03-14T09:26:53Z", "2026-03-14T09:26:53.999999999Z"),
            ("2026-03-14T09:26:53.500000000Z", "2026-03-14T09:26:53Z", "2026-03-14T09:26:53.5Z"),
            ("2026-03-14T09:26:53.000000001Z", "2026-03-14T09:26:53Z", "2026-03-14T09:26:53.000000001Z"),
            ("2026-03-14T09:26:53Z", "2026-03-14T09:26:53Z", "2026-03-14T09:26:53Z"),
            ("2026-03-14T11:26:53.25+02:00", "2026-03-14T09:26:53Z", "2026-03-14T09:26:53.25Z"),
            ("1969-12-31T23:59:59.25Z", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.25Z"),
        ] {
            let time = Timestamp::parse(text).unwrap();
            assert_eq!((time.seconds().as_str(), time.nanos().as_str()), (seconds, nanos), "{text}");
            assert_eq!(Timestamp::from_unix_nanos(time.unix_nanos()), time);
        }
    }

    #[test]
    fn an_out_of_range_or_malformed_time_is_an_error_with_the_text() {
        for text in ["", "0001-01-01T00:00:00Z", "2026-03-14", "2300-01-01T00:00:00Z", "yesterday"] {
            assert_eq!(Timestamp::parse(text), Err(BadTime(text.to_owned())));
        }
    }

    #[test]
    fn the_time_between_blocks_is_whole_milliseconds_and_never_negative() {
        let (a, b) = (Timestamp(1_000_000), Timestamp(4_999_999));
        assert_eq!((b.millis_since(a), a.millis_since(b), a.millis_since(a)), (3, 0, 0));
        assert_eq!(Timestamp(i64::MAX).millis_since(Timestamp(i64::MIN)), 18_446_744_073_709);
    }
}
