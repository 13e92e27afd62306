//! Trigram index: for each three consecutive bytes, the numbers of the texts that contain them.
//!
//! # Invariants
//!
//! Postings are ascending, without duplicates; none is empty.

use std::collections::{BTreeSet, HashMap};

type Trigram = [u8; 3];

/// An index of texts by number; a number has two texts.
#[derive(Default)]
pub(super) struct Trigrams {
    postings: HashMap<Trigram, Vec<usize>>,
}

impl Trigrams {
    /// Adds the texts of `number`.
    pub(super) fn insert(&mut self, number: usize, texts: [&str; 2]) {
        for trigram in distinct(texts) {
            let posting = self.postings.entry(trigram).or_default();
            if let Err(at) = posting.binary_search(&number) {
                posting.insert(at, number);
            }
        }
    }

    /// Removes the texts of `number`, which were inserted.
    pub(super) fn remove(&mut self, number: usize, texts: [&str; 2]) {
        for trigram in distinct(texts) {
            let Some(posting) = self.postings.get_mut(&trigram) else { continue };
            if let Ok(at) = posting.binary_search(&number) {
                posting.remove(at);
            }
            if posting.is_empty() {
                self.postings.remove(&trigram);
            }
        }
    }

    /// The numbers of the texts with the rarest trigram of `part`: all that contain `part`, and some that do not.
    /// `None` if `part` has less than three bytes.
    pub(super) fn candidates(&self, part: &str) -> Option<&[usize]> {
        let posting = |trigram: &[u8]| self.postings.get(trigram).map_or(&[][..], Vec::as_slice);
        part.as_bytes().windows(3).map(posting).min_by_key(|posting| posting.len())
    }
}

fn distinct(texts: [&str; 2]) -> BTreeSet<Trigram> {
    let trigrams = |text: &str| -> Vec<Trigram> {
        text.as_bytes().windows(3).filter_map(|bytes| bytes.try_into().ok()).collect()
    };
    texts.into_iter().flat_map(trigrams).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_that_contains_a_part_is_a_candidate_and_removed_texts_are_not(
            texts in prop::collection::vec(("[abé]{0,6}", "[ab]{0,4}", any::<bool>()), 0..20),
            part in "[abé]{0,4}",
        ) {
            let mut index = Trigrams::default();
            for (number, (a, b, _)) in texts.iter().enumerate() { index.insert(number, [a, b]); }
            for (number, (a, b, stays)) in texts.iter().enumerate() {
                if !stays { index.remove(number, [a, b]); }
            }
            let candidates = index.candidates(&part);
            prop_assert_eq!(candidates.is_none(), part.len() < 3);
            let Some(candidates) = candidates else { return Ok(()) };
            for (number, (a, b, stays)) in texts.iter().enumerate() {
                let contains = *stays && (a.contains(&part) || b.contains(&part));
                prop_assert!(!contains || candidates.contains(&number));
                prop_assert!(*stays || !candidates.contains(&number));
            }
            prop_assert!(candidates.is_sorted_by(|a, b| a < b));
        }
    }
}
