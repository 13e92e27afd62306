//! What a search demands of one event.

use std::cmp::Ordering;

use chain::comet::Event;

use super::conditions::{Condition, Test};
use super::number::{self, Number, Reading};
use super::{Error, refused};
use crate::params::shown;

/// The conditions of a search but those of the height: all must hold in one event.
#[derive(Default)]
pub(crate) struct Criteria<'q> {
    pub(super) conditions: Vec<Condition<'q>>,
    ranges: Vec<Range<'q>>,
}

/// Bounds of a number, between which one value of an event must be.
struct Range<'q> {
    tag: &'q str,
    lower: Option<Bound<'q>>,
    upper: Option<Bound<'q>>,
}

#[derive(Clone, Copy)]
struct Bound<'q> {
    number: Number<'q>,
    is_included: bool,
}

impl<'q> Criteria<'q> {
    /// Those of `conditions`, of which those of the tag `height` are left out; an error for one that the index cannot test as a node does.
    pub(crate) fn of(conditions: &[Condition<'q>], height: &str) -> Result<Self, Error> {
        let mut all = Self::default();
        for condition in conditions.iter().filter(|condition| condition.tag != height) {
            let tag = condition.tag;
            match condition.test {
                Test::Less(text) => all.bound(tag, text, false, true)?,
                Test::LessOrEqual(text) => all.bound(tag, text, true, true)?,
                Test::Greater(text) => all.bound(tag, text, false, false)?,
                Test::GreaterOrEqual(text) => all.bound(tag, text, true, false)?,
                test => {
                    supported(tag, test)?;
                    all.conditions.push(condition.clone());
                }
            }
        }
        Ok(all)
    }

    fn bound(&mut self, tag: &'q str, text: &'q str, is_included: bool, is_upper: bool) -> Result<(), Error> {
        let Reading::Number(number) = number::read(text) else {
            let reason = format!("the number that it compares {} with has too many digits", shown(tag));
            return Err(refused(&reason, "give at most 37 digits"));
        };
        let known = self.ranges.iter().position(|range| range.tag == tag).unwrap_or(self.ranges.len());
        if known == self.ranges.len() {
            self.ranges.push(Range { tag, lower: None, upper: None });
        }
        let range = &mut self.ranges[known];
        let place = if is_upper { &mut range.upper } else { &mut range.lower };
        if place.replace(Bound { number, is_included }).is_some() {
            let reason = format!("nodes do not combine its bounds of {}", shown(tag));
            return Err(refused(&reason, "give one lower and one upper bound"));
        }
        Ok(())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.conditions.len() + self.ranges.len()
    }

    /// True if any event will do, and none is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all hold in an event; an error if its values do not tell it.
    pub(crate) fn hold(&self, event: &Event<'_>) -> Result<bool, Error> {
        let holds = |condition: &Condition<'_>| {
            values(event, condition.tag).any(|value| match condition.test {
                Test::Exists => true,
                // A node leaves out blanks around a value.
                Test::Contains(part) => value.trim().contains(part),
                Test::Equals(text) | Test::EqualsNumber(text) => value == text,
                _ => false,
            })
        };
        if !self.conditions.iter().all(holds) {
            return Ok(false);
        }
        let mut unclear = None;
        for range in &self.ranges {
            match range.holds(event) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(value) => unclear = Some((range.tag, value)),
            }
        }
        let Some((tag, value)) = unclear else { return Ok(true) };
        let reason = format!("a value of {} is {}, whose order a node rounds", shown(tag), shown(value));
        Err(refused(&reason, "leave its block out with tx.height, or ask a node"))
    }
}

impl Range<'_> {
    /// Whether a value of an event is within; the value that may be, if none is.
    fn holds<'e>(&self, event: &'e Event<'_>) -> Result<bool, &'e str> {
        let mut unclear = None;
        for value in values(event, self.tag) {
            match number::read(value.trim()) {
                Reading::Number(number) if self.has(number) => return Ok(true),
                Reading::Number(_) | Reading::Nothing => {}
                Reading::Unclear => unclear = Some(value),
            }
        }
        unclear.map_or(Ok(false), Err)
    }

    fn has(&self, number: Number<'_>) -> bool {
        let is_within = |bound: &Bound<'_>, outside| match number.order(bound.number) {
            Ordering::Equal => bound.is_included,
            order => order != outside,
        };
        self.lower.as_ref().is_none_or(|bound| is_within(bound, Ordering::Less))
            && self.upper.as_ref().is_none_or(|bound| is_within(bound, Ordering::Greater))
    }
}

/// The values of the attribute `tag`, which is `type.key`.
fn values<'e>(event: &'e Event<'_>, tag: &str) -> impl Iterator<Item = &'e str> {
    let key = tag.strip_prefix(&*event.kind).and_then(|rest| rest.strip_prefix('.'));
    event
        .attributes
        .iter()
        .filter(move |attribute| Some(&*attribute.key) == key)
        .map(|attribute| &*attribute.value)
}

/// An error for a test that the index cannot do as a node does.
fn supported(tag: &str, test: Test<'_>) -> Result<(), Error> {
    let tag = shown(tag);
    match test {
        Test::Equals("") => Err(refused(
            &format!("nodes take the empty value of {tag} for the beginning of one with a slash"),
            "compare by CONTAINS or EXISTS, or with a whole value",
        )),
        // A node compares the digits as it prints the number.
        Test::EqualsNumber(digits) if digits != "0" && (digits.starts_with('0') || digits.contains('.')) => {
            Err(refused(&format!("the number of {tag} has another form"), "quote it"))
        }
        Test::Time => Err(refused(
            &format!("it compares {tag} with a time"),
            "compare by =, CONTAINS or EXISTS, or with a number",
        )),
        _ => Ok(()),
    }
}
