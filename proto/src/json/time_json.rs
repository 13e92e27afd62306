//! Timestamps in RFC 3339 and durations in seconds, with 0, 3, 6 or 9 digits after the point.

use time::OffsetDateTime;

use crate::json::wire::{Cursor, Wire, WireError};

/// The JSON of an unset `time.Time` in Go.
pub(crate) const ZERO_TIME: &[u8] = b"\"0001-01-01T00:00:00Z\"";

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds since 1970.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

/// Maximum absolute value of a Duration in seconds (`google/protobuf/duration.proto`).
const MAX_DURATION: i64 = 315_576_000_000;

const NANOS: i32 = 1_000_000_000;

/// Writes a `google.protobuf.Timestamp`, whatever its Go type.
pub(crate) fn write_timestamp(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let (seconds, nanos) = seconds_and_nanos(bytes)?;
    if !(FIRST_SECOND..=LAST_SECOND).contains(&seconds) {
        return Err("a time outside of the years 1 to 9999");
    }
    if !(0..NANOS).contains(&nanos) {
        return Err("a time with nanoseconds out of range");
    }
    let time =
        OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| "a time outside of the years 1 to 9999")?;
    let date = format!("\"{:04}-{:02}-{:02}", time.year(), u8::from(time.month()), time.day());
    let clock = format!("T{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    out.extend_from_slice(date.as_bytes());
    out.extend_from_slice(clock.as_bytes());
    push_fraction(nanos.unsigned_abs(), out);
    out.extend_from_slice(b"Z\"");
    Ok(())
}

/// Writes a `google.protobuf.Duration` whose Go type is the message.
pub(crate) fn write_duration(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let (seconds, nanos) = seconds_and_nanos(bytes)?;
    if seconds.unsigned_abs() > MAX_DURATION.unsigned_abs() || nanos.unsigned_abs() >= NANOS.unsigned_abs() {
        return Err("a duration out of range");
    }
    if (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0) {
        return Err("a duration whose seconds and nanoseconds differ in sign");
    }
    out.push(b'"');
    if seconds < 0 || nanos < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(itoa::Buffer::new().format(seconds.unsigned_abs()).as_bytes());
    push_fraction(nanos.unsigned_abs(), out);
    out.extend_from_slice(b"s\"");
    Ok(())
}

/// Writes a Duration whose Go type is `time.Duration`: nanoseconds in 64 bits.
pub(crate) fn write_span(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let (seconds, nanos) = seconds_and_nanos(bytes)?;
    seconds
        .checked_mul(i64::from(NANOS))
        .and_then(|whole| whole.checked_add(i64::from(nanos)))
        .ok_or("a duration of more than 292 years")?;
    write_duration(bytes, out)
}

/// Fields 1 and 2 of a Timestamp or Duration.
fn seconds_and_nanos(bytes: &[u8]) -> Result<(i64, i32), WireError> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut cursor = Cursor::new(bytes);
    while let Some((number, value)) = cursor.field()? {
        match (number, value.wire) {
            (1, Wire::Varint) => seconds = value.number.cast_signed(),
            (2, Wire::Varint) => nanos = crate::json::scalar::as_i32(value),
            _ => return Err("a field that times and durations do not have"),
        }
    }
    Ok((seconds, nanos))
}

fn push_fraction(nanos: u32, out: &mut Vec<u8>) {
    let fraction = match nanos {
        0 => return,
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => format!(".{:06}", n / 1_000),
        n => format!(".{n:09}"),
    };
    out.extend_from_slice(fraction.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{FIRST_SECOND, LAST_SECOND, write_duration, write_span, write_timestamp};
    use crate::json::wire::WireError;

    fn message(seconds: i64, nanos: i32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, value) in [(8u8, seconds.cast_unsigned()), (16, i64::from(nanos).cast_unsigned())] {
            bytes.push(tag);
            let mut rest = value;
            while rest >= 0x80 {
                bytes.push(0x80 | u8::try_from(rest & 0x7f).unwrap());
                rest >>= 7;
            }
            bytes.push(u8::try_from(rest).unwrap());
        }
        bytes
    }

    fn written(
        write: fn(&[u8], &mut Vec<u8>) -> Result<(), WireError>,
        seconds: i64,
        nanos: i32,
    ) -> Option<String> {
        let mut out = Vec::new();
        write(&message(seconds, nanos), &mut out).ok()?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn times_have_no_three_six_or_nine_digits() {
        let time = |seconds, nanos| written(write_timestamp, seconds, nanos).unwrap();
        assert_eq!(time(0, 0), "\"1970-01-01T00:00:00Z\"");
        assert_eq!(time(1_709_164_800, 500_000_000), "\"2024-02-29T00:00:00.500Z\"");
        assert_eq!(time(1_709_164_799, 1_000), "\"2024-02-28T23:59:59.000001Z\"");
        assert_eq!(time(-1, 1), "\"1969-12-31T23:59:59.000000001Z\"");
        assert_eq!(time(FIRST_SECOND, 0), "\"0001-01-01T00:00:00Z\"");
        assert_eq!(time(LAST_SECOND, 999_999_999), "\"9999-12-31T23:59:59.999999999Z\"");
    }

    #[test]
    fn times_out_of_range_are_refused() {
        for (seconds, nanos) in
            [(FIRST_SECOND - 1, 0), (LAST_SECOND + 1, 0), (0, -1), (0, 1_000_000_000), (i64::MAX, 0)]
        {
            assert_eq!(written(write_timestamp, seconds, nanos), None);
        }
    }

    #[test]
    fn durations_are_seconds_with_a_sign_in_front() {
        let duration = |seconds, nanos| written(write_duration, seconds, nanos).unwrap();
        assert_eq!(duration(3, 500_000_000), "\"3.500s\"");
        assert_eq!(duration(0, -1_000), "\"-0.000001s\"");
        assert_eq!(duration(-3, -1), "\"-3.000000001s\"");
        assert_eq!(duration(1_209_600, 0), "\"1209600s\"");
    }

    #[test]
    fn durations_out_of_range_are_refused() {
        for (seconds, nanos) in [(315_576_000_001, 0), (1, -1), (-1, 1), (0, 1_000_000_000), (i64::MIN, 0)] {
            assert_eq!(written(write_duration, seconds, nanos), None);
        }
        assert_eq!(written(write_span, 9_223_372_037, 0), None, "64 bits of nanoseconds end before");
        assert!(written(write_duration, 9_223_372_037, 0).is_some());
    }
}
