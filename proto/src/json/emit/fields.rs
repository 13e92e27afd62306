//! Index of a message: the values of each field on the wire.
//!
//! All nested messages of a run share one stack: a message pushes a frame and pops it, so printing a transaction
//! allocates twice and not once per message. A frame has at most one entry per wire field.

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

/// The start of a frame.
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
    /// The start of the next frame.
    pub(super) fn mark(&self) -> Mark {
        Mark { slots: self.slots.len(), seen: self.seen.len() }
    }

    /// Pushes a frame with an empty slot per field.
    pub(super) fn reserve(&mut self, fields: usize) -> Mark {
        let mark = self.mark();
        self.slots.resize(mark.slots + fields, Slot::EMPTY);
        mark
    }

    /// Pops the frame at `mark` and all above it.
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

    /// Clears the values of the chosen fields.
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
