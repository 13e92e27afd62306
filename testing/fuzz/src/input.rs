//! The bytes of an input, taken from its front as numbers and choices.
//!
//! # Invariants
//!
//! - An input of any length is valid: missing bytes are zero, so that a finding can be minimised by truncation.

/// The unread rest of an input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// An input of all of `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// The next two bytes, BE.
    pub fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// The next eight bytes, BE.
    pub fn long(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// One of `choices`, chosen by two bytes.
    ///
    /// # Panics
    /// If `choices` is empty.
    pub fn one_of<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(self.short()) % choices.len()]
    }

    /// The next bytes: as many as the preceding byte states, or as remain.
    pub fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(length);
        self.rest = rest;
        piece
    }

    /// All remaining bytes.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
