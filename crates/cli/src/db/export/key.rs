//! Keys as arrays: numbers as numbers, texts as texts, bytes as hexadecimal digits.

use schema::keys::{Owner, Role};
use serde_json::Value;
use store::key::Text;

/// A key, or a component of one.
pub(super) trait Components {
    /// Appends what it is made of.
    fn put(&self, out: &mut Vec<Value>);
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Components for $number {
            fn put(&self, out: &mut Vec<Value>) {
                out.push((*self).into());
            }
        }
    )*};
}

numbers!(u16, u32, u64);

impl Components for () {
    fn put(&self, _: &mut Vec<Value>) {}
}

impl<const N: usize> Components for [u8; N] {
    fn put(&self, out: &mut Vec<Value>) {
        out.push(hex::encode(self).into());
    }
}

impl Components for Text {
    fn put(&self, out: &mut Vec<Value>) {
        out.push(self.0.clone().into());
    }
}

impl Components for Owner {
    fn put(&self, out: &mut Vec<Value>) {
        out.push(hex::encode(self.0.as_bytes()).into());
    }
}

impl Components for Role {
    fn put(&self, out: &mut Vec<Value>) {
        let role = match self {
            Self::Involved => "involved",
            Self::Signer => "signer",
        };
        out.push(role.into());
    }
}

impl<A: Components, B: Components> Components for (A, B) {
    fn put(&self, out: &mut Vec<Value>) {
        self.0.put(out);
        self.1.put(out);
    }
}

impl<A: Components, B: Components, C: Components> Components for (A, B, C) {
    fn put(&self, out: &mut Vec<Value>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }
}
