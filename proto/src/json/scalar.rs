//! Numbers: 64-bit integers as strings, 32-bit ones bare, floats as Go prints them.

use crate::json::table::Number;
use crate::json::wire::Value;

/// Writes the number that stands on the wire as `raw`.
pub(crate) fn write_number(number: Number, raw: u64, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    match number {
        Number::Bool => out.extend_from_slice(if raw == 0 { b"false" } else { b"true" }),
        Number::Float => {
            let value = f32::from_bits(low(raw));
            let magnitude = value.abs();
            let plain = magnitude == 0.0 || (1e-6..1e21).contains(&magnitude);
            write_float(f64::from(value), &format!("{value:e}"), &format!("{value}"), plain, out);
        }
        Number::Double => {
            let value = f64::from_bits(raw);
            let magnitude = value.abs();
            let plain = magnitude == 0.0 || (1e-6..1e21).contains(&magnitude);
            write_float(value, &format!("{value:e}"), &format!("{value}"), plain, out);
        }
        _ => {
            let digits = buffer.format(integer(number, raw)).as_bytes();
            if number.is_wide() {
                out.push(b'"');
                out.extend_from_slice(digits);
                out.push(b'"');
            } else {
                out.extend_from_slice(digits);
            }
        }
    }
}

/// The whole number that stands on the wire as `raw`; 0 for floats.
pub(crate) fn integer(number: Number, raw: u64) -> i128 {
    match number {
        Number::Bool => i128::from(raw != 0),
        Number::Int32 | Number::Sfixed32 => i128::from(low(raw).cast_signed()),
        Number::Uint32 | Number::Fixed32 => i128::from(low(raw)),
        Number::Sint32 => {
            let low = low(raw);
            i128::from((low >> 1).cast_signed() ^ -(low & 1).cast_signed())
        }
        Number::Int64 | Number::Sfixed64 => i128::from(raw.cast_signed()),
        Number::Uint64 | Number::Fixed64 => i128::from(raw),
        Number::Sint64 => i128::from((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()),
        Number::Float | Number::Double => 0,
    }
}

/// Writes a bare 32-bit number.
pub(crate) fn write_i32(value: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The number that an enum value or an `int32` has: wider varints lose their upper half, as in Go.
pub(crate) fn as_i32(value: Value<'_>) -> i32 {
    low(value.number).cast_signed()
}

/// Go's `encoding/json`: shortest digits, an exponent outside of 1e-6 to 1e21, names for what is not finite.
fn write_float(value: f64, exponent: &str, digits: &str, plain: bool, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
    } else if plain {
        out.extend_from_slice(digits.as_bytes());
    } else {
        let signed = if exponent.contains("e-") { exponent.to_owned() } else { exponent.replace('e', "e+") };
        out.extend_from_slice(signed.as_bytes());
    }
}

fn low(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::write_number;
    use crate::json::table::Number;

    fn written(number: Number, raw: u64) -> String {
        let mut out = Vec::new();
        write_number(number, raw, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_of_64_bits_are_strings_and_of_32_bits_are_not() {
        assert_eq!(written(Number::Int64, u64::MAX), "\"-1\"");
        assert_eq!(written(Number::Uint64, u64::MAX), "\"18446744073709551615\"");
        assert_eq!(written(Number::Int32, u64::MAX), "-1");
        assert_eq!(written(Number::Uint32, u64::MAX), "4294967295");
    }

    #[test]
    fn zigzag_covers_the_whole_range() {
        assert_eq!(written(Number::Sint32, 3), "-2");
        assert_eq!(written(Number::Sint32, u64::from(u32::MAX)), "-2147483648");
        assert_eq!(written(Number::Sint64, u64::MAX - 1), "\"9223372036854775807\"");
        assert_eq!(written(Number::Sint64, u64::MAX), "\"-9223372036854775808\"");
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        let double = |value: f64| written(Number::Double, value.to_bits());
        assert_eq!(double(0.1), "0.1");
        assert_eq!(double(-0.0), "-0");
        assert_eq!(double(1e20), "100000000000000000000");
        assert_eq!(double(1.5e21), "1.5e+21");
        assert_eq!(double(1e-7), "1e-7");
        assert_eq!(double(f64::NEG_INFINITY), "\"-Infinity\"");
        assert_eq!(double(f64::NAN), "\"NaN\"");
        assert_eq!(written(Number::Float, u64::from(0.1f32.to_bits())), "0.1");
    }
}
