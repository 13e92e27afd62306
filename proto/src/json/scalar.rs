//! Numbers: 64-bit integers as strings, 32-bit ones bare, floats as Go prints them.

use crate::descriptor::FieldType;
use crate::json::wire::Value;

/// True if the number is a JSON string: an integer of 64 bits.
pub(crate) fn is_wide(number: FieldType) -> bool {
    use FieldType::{Fixed64, Int64, Sfixed64, Sint64, Uint64};
    matches!(number, Int64 | Uint64 | Sint64 | Fixed64 | Sfixed64)
}

/// Writes the number whose wire value is `raw`.
pub(crate) fn write_number(number: FieldType, raw: u64, out: &mut Vec<u8>) {
    match number {
        FieldType::Bool => out.extend_from_slice(if raw == 0 { b"false" } else { b"true" }),
        FieldType::Float => {
            let value = f32::from_bits(low(raw));
            let plain = (1e-6..1e21).contains(&value.abs());
            write_float(value.into(), plain, &format!("{value:e}"), &format!("{value}"), out);
        }
        FieldType::Double => {
            let value = f64::from_bits(raw);
            let plain = (1e-6..1e21).contains(&value.abs());
            write_float(value, plain, &format!("{value:e}"), &format!("{value}"), out);
        }
        _ => {
            let quote: &[u8] = if is_wide(number) { b"\"" } else { b"" };
            out.extend_from_slice(quote);
            out.extend_from_slice(itoa::Buffer::new().format(integer(number, raw)).as_bytes());
            out.extend_from_slice(quote);
        }
    }
}

/// The whole number whose wire value is `raw`; 0 for other types.
pub(crate) fn integer(number: FieldType, raw: u64) -> i128 {
    match number {
        FieldType::Bool => i128::from(raw != 0),
        FieldType::Int32 | FieldType::Sfixed32 => i128::from(low(raw).cast_signed()),
        FieldType::Uint32 | FieldType::Fixed32 => i128::from(low(raw)),
        FieldType::Sint32 => {
            let low = low(raw);
            i128::from((low >> 1).cast_signed() ^ -(low & 1).cast_signed())
        }
        FieldType::Int64 | FieldType::Sfixed64 => i128::from(raw.cast_signed()),
        FieldType::Uint64 | FieldType::Fixed64 => i128::from(raw),
        FieldType::Sint64 => i128::from((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()),
        _ => 0,
    }
}

/// The number of an enum value or an `int32`: wider varints lose their upper half, as in Go.
pub(crate) fn as_i32(value: Value<'_>) -> i32 {
    low(value.number).cast_signed()
}

/// Go's `encoding/json`: shortest digits, an exponent outside of 1e-6 to 1e21, names for values that are not finite.
fn write_float(value: f64, plain: bool, exponent: &str, digits: &str, out: &mut Vec<u8>) {
    let text = match value {
        _ if value.is_nan() => "\"NaN\"".to_owned(),
        _ if value.is_infinite() => (if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" }).to_owned(),
        _ if plain || value == 0.0 => digits.to_owned(),
        _ if exponent.contains("e-") => exponent.to_owned(),
        _ => exponent.replace('e', "e+"),
    };
    out.extend_from_slice(text.as_bytes());
}

fn low(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::write_number;
    use crate::descriptor::FieldType;

    fn written(number: FieldType, raw: u64) -> String {
        let mut out = Vec::new();
        write_number(number, raw, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_of_64_bits_are_strings_and_of_32_bits_are_not() {
        assert_eq!(written(FieldType::Int64, u64::MAX), "\"-1\"");
        assert_eq!(written(FieldType::Uint64, u64::MAX), "\"18446744073709551615\"");
        assert_eq!(written(FieldType::Int32, u64::MAX), "-1");
        assert_eq!(written(FieldType::Uint32, u64::MAX), "4294967295");
    }

    #[test]
    fn zigzag_covers_the_whole_range() {
        assert_eq!(written(FieldType::Sint32, 3), "-2");
        assert_eq!(written(FieldType::Sint32, u64::from(u32::MAX)), "-2147483648");
        assert_eq!(written(FieldType::Sint64, u64::MAX - 1), "\"9223372036854775807\"");
        assert_eq!(written(FieldType::Sint64, u64::MAX), "\"-9223372036854775808\"");
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        let double = |value: f64| written(FieldType::Double, value.to_bits());
        assert_eq!(double(0.1), "0.1");
        assert_eq!(double(-0.0), "-0");
        assert_eq!(double(1e20), "100000000000000000000");
        assert_eq!(double(1.5e21), "1.5e+21");
        assert_eq!(double(1e-7), "1e-7");
        assert_eq!(double(f64::NEG_INFINITY), "\"-Infinity\"");
        assert_eq!(double(f64::NAN), "\"NaN\"");
        assert_eq!(written(FieldType::Float, u64::from(0.1f32.to_bits())), "0.1");
    }
}
