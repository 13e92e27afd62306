//! The heights that the conditions of a search allow.

use std::ops::RangeInclusive;

use super::conditions::{Condition, Test};

/// A range of heights, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heights {
    first: u64,
    last: u64,
}

impl Heights {
    /// The range of the conditions of `tag`, which is a height; otherwise the reason why it is not clear, and the remedy.
    pub(crate) fn of(conditions: &[Condition<'_>], tag: &str) -> Result<Self, (String, String)> {
        let mut all = Self { first: 1, last: u64::MAX };
        let (mut lower, mut upper, mut exact) = (0, 0, None);
        let is_alone = conditions.len() == 1;
        for condition in conditions.iter().filter(|condition| condition.tag == tag) {
            match condition.test {
                Test::Exists if is_alone => {}
                // Of several, a node takes the first. Alone, one that is no height is that of no block.
                Test::Equals(text) | Test::EqualsNumber(text) if is_alone || is_height(text) => {
                    let height = if is_height(text) { text.parse().unwrap_or(u64::MAX) } else { 0 };
                    exact = exact.or(Some(height));
                }
                Test::Exists | Test::Equals(_) | Test::EqualsNumber(_) => {
                    let remedy = format!("compare {tag} with a whole number from 1, or leave it out");
                    return Err((
                        format!("nodes ignore what it demands of {tag} with other conditions"),
                        remedy,
                    ));
                }
                Test::Greater(text) => {
                    lower += 1;
                    all.first = all.first.max(whole(text).0.saturating_add(1));
                }
                Test::GreaterOrEqual(text) => {
                    lower += 1;
                    let (height, has_fraction) = whole(text);
                    all.first = all.first.max(height.saturating_add(u64::from(has_fraction)));
                }
                Test::Less(text) => {
                    upper += 1;
                    let (height, has_fraction) = whole(text);
                    all.last = all.last.min(height.saturating_sub(u64::from(!has_fraction)));
                }
                Test::LessOrEqual(text) => {
                    upper += 1;
                    all.last = all.last.min(whole(text).0);
                }
                Test::Contains(_) | Test::Time => {
                    let remedy = format!("compare {tag} by =, <, <=, > or >= with a number");
                    return Err((format!("it compares {tag} in another way"), remedy));
                }
            }
        }
        if lower > 1 || upper > 1 || exact.is_some() && lower + upper > 0 {
            let remedy = "give one height, or one lower and one upper bound";
            return Err((format!("nodes do not combine its bounds of {tag}"), remedy.to_owned()));
        }
        Ok(exact.map_or(all, |height| Self { first: height, last: height }))
    }

    /// Those up to `last`; `None` if there are none.
    pub(crate) fn within(self, last: u64) -> Option<RangeInclusive<u64>> {
        let (first, last) = (self.first, self.last.min(last));
        (1..=last).contains(&first).then_some(first..=last)
    }
}

/// Whether a text is a height as a node writes it.
fn is_height(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('0') && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// The whole part of a number of a query, and whether it has more; the largest height for a larger number.
fn whole(text: &str) -> (u64, bool) {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    (whole.parse().unwrap_or(u64::MAX), fraction.bytes().any(|digit| digit != b'0'))
}

#[cfg(test)]
mod tests {
    use super::super::conditions::parse;
    use super::*;

    fn within(query: &str) -> Option<RangeInclusive<u64>> {
        Heights::of(&parse(query).unwrap(), "tx.height").unwrap().within(50)
    }

    #[test]
    fn bounds_are_whole_heights() {
        assert_eq!(within("tx.height > 5 AND tx.height <= 9"), Some(6..=9));
        assert_eq!(within("tx.height >= 5.5 AND tx.height < 9.5"), Some(6..=9));
        assert_eq!(within("tx.height < 9"), Some(1..=8));
        assert_eq!(within("tx.height = 7 AND tx.height = 8"), Some(7..=7));
        assert_eq!(within("a.b = 'c'"), Some(1..=50));
        for empty in [
            "tx.height = 'x'",
            "tx.height = 0",
            "tx.height = 007",
            "tx.height > 50",
            "tx.height = 99999999999999999999",
            "tx.height < 1",
        ] {
            assert_eq!(within(empty), None, "{empty}");
        }
        for unclear in [
            "tx.height > 1 AND tx.height > 2",
            "tx.height = 0 AND a.b = 'c'",
            "a.b = 'c' AND tx.height = '007'",
            "a.b = 'c' AND tx.height EXISTS",
        ] {
            assert!(Heights::of(&parse(unclear).unwrap(), "tx.height").is_err(), "{unclear}");
        }
    }
}
