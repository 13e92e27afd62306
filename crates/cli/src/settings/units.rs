//! Parsers of durations, byte sizes, rates and choices. Each error has the text and the allowed form.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use web::limits::Rate;

/// A text that does not parse.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub(crate) struct BadText {
    text: String,
    wanted: String,
}

impl BadText {
    pub(crate) fn new(text: &str, wanted: impl Into<String>) -> Self {
        Self { text: text.to_owned(), wanted: wanted.into() }
    }
}

/// A length of time such as `250ms`, `2s`, `1m`, `6h` or `30d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DurationArg(pub(crate) Duration);

impl FromStr for DurationArg {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(split);
        let millis = match unit {
            "ms" => Some(1),
            "s" => Some(1_000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            "d" => Some(86_400_000),
            _ => None,
        };
        let parse = |per_unit| digits.parse::<u64>().ok()?.checked_mul(per_unit);
        let millis = millis
            .and_then(parse)
            .ok_or_else(|| BadText::new(text, "a time such as 250ms, 2s, 1m, 6h or 30d"))?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

/// A number of bytes such as `1048576`, `512KiB`, `256MiB` or `2GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) usize);

impl FromStr for ByteSize {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(split);
        let bytes = match unit.trim_start() {
            "" => Some(1),
            "KiB" => Some(1 << 10),
            "MiB" => Some(1 << 20),
            "GiB" => Some(1 << 30),
            _ => None,
        };
        let parse = |per_unit| digits.parse::<usize>().ok()?.checked_mul(per_unit);
        let bytes =
            bytes.and_then(parse).ok_or_else(|| BadText::new(text, "a number of bytes, KiB, MiB or GiB"))?;
        Ok(Self(bytes))
    }
}

/// Requests a second, `50/s`, and how many at once if that is not the same number, `50/s:200`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerSecond(pub(crate) Rate);

impl FromStr for PerSecond {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let (per_second, burst) =
            text.split_once(':').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let number = |digits: &str| digits.parse::<NonZeroU32>().ok().filter(|_| !digits.starts_with('+'));
        let per_second = per_second.strip_suffix("/s").and_then(number);
        let burst = burst.map_or(per_second, number);
        let rate = per_second.zip(burst).map(|(per_second, burst)| Self(Rate { per_second, burst }));
        rate.ok_or_else(|| {
            BadText::new(text, "a rate such as 50/s or 50/s:200, of numbers from 1 to 4294967295")
        })
    }
}

/// `bytes` for a reader: `17.3 MiB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    // Tenths, so that no float is needed.
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// `text` as one of `choices`.
pub(crate) fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, BadText> {
    if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(*value);
    }
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    Err(BadText::new(text, format!("one of {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bytes_are_read_with_their_units() {
        assert_eq!("250ms".parse(), Ok(DurationArg(Duration::from_millis(250))));
        assert_eq!("2m".parse(), Ok(DurationArg(Duration::from_mins(2))));
        assert_eq!("6h".parse(), Ok(DurationArg(Duration::from_hours(6))));
        assert_eq!("30d".parse(), Ok(DurationArg(Duration::from_hours(720))));
        assert_eq!("64KiB".parse(), Ok(ByteSize(65_536)));
        assert_eq!("12".parse(), Ok(ByteSize(12)));
    }

    #[test]
    fn texts_without_unit_or_number_are_refused() {
        for text in ["", "5", "ms", "-1s", "1w", "1.5s", "99999999999999999999s", "18446744073709551615m"] {
            assert!(text.parse::<DurationArg>().is_err(), "{text}");
        }
        for text in ["", "MiB", "1MB", "-1", "99999999999GiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_have_a_second_and_maybe_a_burst() {
        let rate = |per_second, burst| {
            let some = |n| NonZeroU32::new(n).unwrap();
            Ok(PerSecond(Rate { per_second: some(per_second), burst: some(burst) }))
        };
        assert_eq!("50/s".parse(), rate(50, 50));
        assert_eq!("50/s:200".parse(), rate(50, 200));
        for text in
            ["", "50", "0/s", "50/s:", "50/s:0", "50/m", "-1/s", "+1/s", "1.5/s", "4294967296/s", "50/s:1:2"]
        {
            assert!(text.parse::<PerSecond>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_with_one_decimal() {
        let cases =
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (1 << 40, "1.0 TiB")];
        for (bytes, text) in cases {
            assert_eq!(bytes_text(bytes), text);
        }
        assert_eq!(bytes_text(u64::MAX), "16777215.9 TiB");
    }
}
