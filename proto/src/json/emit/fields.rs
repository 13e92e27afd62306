//! Which values each field of a message has on the wire.
//!
//! One stack serves all nested messages of a run: a message takes a frame on top and gives it back, so printing
//! a transaction allocates twice and not once per message. A frame holds at most one entry per wire field.

use crate::json::wire::Value;

const NONE: usize = usize::MAX;

/// The stack of frames.
#[derive(Default)]
pub(crate) struct Scratch<'a> {
    slots: Vec<Slot>,
    seen: Vec<Seen<'a>>,
}

/// The first and last value of a field; the values in between are chained.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    first: usize,
    last: usize,
}

/// Where a frame begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    slots: usize,
    seen: usize,
}

struct Seen<'a> {
    value: Value<'a>,
    next: usize,
}

impl Slot {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    pub(super) fn is_empty(self) -> bool {
        self.first == NONE
    }

    pub(super) fn has_several(self) -> bool {
        self.first != self.last
    }
}

impl<'a> Scratch<'a> {
    /// Where the next frame will begin.
    pub(super) fn mark(&self) -> Mark {
        Mark { slots: self.slots.len(), seen: self.seen.len() }
    }

    /// Takes a frame with an empty slot per field.
    pub(super) fn reserve(&mut self, fields: usize) -> Mark {
        let mark = self.mark();
        self.slots.resize(mark.slots + fields, Slot::EMPTY);
        mark
    }

    /// Gives back the frame at `mark` and all above it.
    pub(super) fn release(&mut self, mark: Mark) {
        self.slots.truncate(mark.slots);
        self.seen.truncate(mark.seen);
    }

    /// The slot of a field by its position in the message.
    pub(super) fn slot(&self, mark: Mark, position: usize) -> Slot {
        self.slots[mark.slots + position]
    }

    /// Adds a value to a field.
    pub(super) fn push(&mut self, mark: Mark, position: usize, value: Value<'a>) {
        let index = self.seen.len();
        self.seen.push(Seen { value, next: NONE });
        let slot = &mut self.slots[mark.slots + position];
        if slot.first == NONE {
            slot.first = index;
        } else {
            self.seen[slot.last].next = index;
        }
        slot.last = index;
    }

    /// Forgets the values of the chosen fields.
    pub(super) fn clear(&mut self, mark: Mark, chosen: impl Iterator<Item = bool>) {
        for (slot, chosen) in self.slots[mark.slots..].iter_mut().zip(chosen) {
            if chosen {
                *slot = Slot::EMPTY;
            }
        }
    }

    /// The last value of a field.
    pub(super) fn last(&self, slot: Slot) -> Option<Value<'a>> {
        self.seen.get(slot.last).map(|seen| seen.value)
    }

    /// The next value of a field; `rest` starts as the field's slot.
    pub(super) fn step(&self, rest: &mut Slot) -> Option<Value<'a>> {
        let seen = self.seen.get(rest.first)?;
        rest.first = seen.next;
        Some(seen.value)
    }

    /// All values of a field in wire order.
    pub(super) fn values(&self, slot: Slot) -> impl Iterator<Item = Value<'a>> {
        let mut rest = slot;
        std::iter::from_fn(move || self.step(&mut rest))
    }
}
