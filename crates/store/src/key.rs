//! Order-preserving key encoding: tuples of components whose bytes sort like the values.
//!
//! # Invariants
//!
//! Checked by `tests/engine/keys.rs`: encodings compare like their values; no encoding is a prefix of another of its
//! type; `take` consumes exactly what `put` wrote. Components can therefore be concatenated, and every leading part of
//! a key is a valid scan prefix.
//!
//! | Component | Bytes |
//! |---|---|
//! | `u8`, `u16`, `u32`, `u64` | big-endian |
//! | `[u8; N]` | unchanged |
//! | [`Bytes`] | length byte, then the bytes: `14` + 20 bytes of an account (sorts by length first) |
//! | [`Text`] | UTF-8 with `00` as `00 ff`, then `00 01`: `"ab"` is `61 62 00 01` |
//! | [`Desc`] | complement of the component's bytes |
//! | `()`, tuples | empty; the concatenated members |

use std::borrow::Cow;

use serde_json::Value as Json;

/// A key or a component of one.
pub trait Key: Sized {
    /// Appends the encoding to `out`.
    fn put(&self, out: &mut Vec<u8>);

    /// Decodes one component from the front of `input`. Returns `None` if it does not decode; `input` is then
    /// unspecified.
    fn take(input: &mut &[u8]) -> Option<Self>;

    /// Appends its components for other programs: those of a tuple one by one, bytes as hexadecimal digits.
    fn put_json(&self, out: &mut Vec<Json>);

    /// The encoding alone.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(40); // An account of 32 bytes and a sequence fit.
        self.put(&mut out);
        out
    }

    /// The key whose encoding is all of `bytes`.
    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let key = Self::take(&mut bytes)?;
        bytes.is_empty().then_some(key)
    }
}

/// The smallest key above `key`.
pub fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

macro_rules! big_endian {
    ($($number:ty),*) => {$(
        impl Key for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn put_json(&self, out: &mut Vec<Json>) {
                out.push((*self).into());
            }

            fn take(input: &mut &[u8]) -> Option<Self> {
                <[u8; size_of::<$number>()]>::take(input).map(<$number>::from_be_bytes)
            }
        }
    )*};
}

big_endian!(u8, u16, u32, u64);

impl<const N: usize> Key for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(hex::encode(self).into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = input.split_first_chunk()?;
        *input = rest;
        Some(*bytes)
    }
}

/// Up to 255 bytes of variable length, such as an account: a length byte, then the bytes.
///
/// Shorter values sort first, so use it where the order of values has no meaning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes {
    /// Length byte and bytes.
    encoded: Box<[u8]>,
}

impl Bytes {
    /// `None` if there are more than 255 bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let Ok(length) = u8::try_from(bytes.len()) else { return None };
        Some(Self { encoded: [&[length], bytes].concat().into() })
    }

    /// The bytes without their length.
    pub fn as_slice(&self) -> &[u8] {
        &self.encoded[1..]
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Key for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encoded);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(hex::encode(self.as_slice()).into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let length = usize::from(*input.first()?);
        let (encoded, rest) = input.split_at_checked(1 + length)?;
        *input = rest;
        Some(Self { encoded: encoded.into() })
    }
}

/// Text of any length that sorts like its bytes do: `00` becomes `00 ff`, and `00 01` ends it.
///
/// A single `00` cannot terminate it, because the next component may start with any byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(pub String);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Key for Text {
    fn put(&self, out: &mut Vec<u8>) {
        let mut pieces = self.0.as_bytes().split(|&byte| byte == 0);
        out.extend_from_slice(pieces.next().unwrap_or_default());
        for piece in pieces {
            out.extend_from_slice(&[0, 0xff]);
            out.extend_from_slice(piece);
        }
        out.extend_from_slice(&[0, 1]);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(self.0.as_str().into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let mut text = Cow::Borrowed([].as_slice());
        loop {
            let zero = input.iter().position(|&byte| byte == 0)?;
            let (piece, rest) = input.split_at(zero);
            let (&mark, after) = rest[1..].split_first()?;
            *input = after;
            if text.is_empty() {
                text = Cow::Borrowed(piece);
            } else {
                text.to_mut().extend_from_slice(piece);
            }
            match mark {
                0x01 => return String::from_utf8(text.into_owned()).map_or(None, |text| Some(Self(text))),
                0xff => text.to_mut().push(0),
                _ => return None,
            }
        }
    }
}

/// `T` in descending order: the complement of its bytes.
///
/// Needed only for keys with one ascending and one descending part, because every scan can run backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Desc<T>(pub T);

impl<T: Ord> Ord for Desc<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.cmp(&self.0)
    }
}

impl<T: Ord> PartialOrd for Desc<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Key> Key for Desc<T> {
    fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.0.put(out);
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        self.0.put_json(out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let plain: Vec<u8> = input.iter().map(|byte| !byte).collect();
        let mut rest = plain.as_slice();
        let value = T::take(&mut rest)?;
        *input = &input[input.len() - rest.len()..];
        Some(Self(value))
    }
}

impl Key for () {
    fn put(&self, _: &mut Vec<u8>) {}

    fn put_json(&self, _: &mut Vec<Json>) {}

    fn take(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

macro_rules! tuple {
    ($($member:ident $at:tt),*) => {
        impl<$($member: Key),*> Key for ($($member,)*) {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$at.put(out);)*
            }

            fn put_json(&self, out: &mut Vec<Json>) {
                $(self.$at.put_json(out);)*
            }

            fn take(input: &mut &[u8]) -> Option<Self> {
                Some(($($member::take(input)?,)*))
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);

/// `Self` is a leading part of the key `K`: rejects wrong scan prefixes at compile time.
///
/// For a key `(A, B, C)` these are [`All`], `A` and `(A, B)`.
pub trait PrefixOf<K: Key> {
    /// The encoded prefix.
    fn prefix(&self) -> Vec<u8>;
}

/// The prefix of every key: a whole table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct All;

impl<K: Key> PrefixOf<K> for All {
    fn prefix(&self) -> Vec<u8> {
        Vec::new()
    }
}

macro_rules! prefix {
    ($prefix:ty => $key:ty; $($member:ident)*) => {
        impl<$($member: Key),*> PrefixOf<$key> for $prefix {
            fn prefix(&self) -> Vec<u8> {
                self.to_bytes()
            }
        }
    };
}

prefix!(A => (A, B); A B);
prefix!(A => (A, B, C); A B C);
prefix!((A, B) => (A, B, C); A B C);
prefix!(A => (A, B, C, D); A B C D);
prefix!((A, B) => (A, B, C, D); A B C D);
prefix!((A, B, C) => (A, B, C, D); A B C D);
prefix!(A => (A, B, C, D, E); A B C D E);
prefix!((A, B) => (A, B, C, D, E); A B C D E);
prefix!((A, B, C) => (A, B, C, D, E); A B C D E);
prefix!((A, B, C, D) => (A, B, C, D, E); A B C D E);
