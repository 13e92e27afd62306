//! Normalized names of collections, for substring search.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// Only the letters, marks and numbers of a name, lower-case: a search tests whether one normalized text is part of
/// another.
///
/// Each character is normalized by itself, so that a part of a name gets the same form alone as within the whole.
pub fn normalized_name(name: &str) -> String {
    name.chars().filter(|&c| counts(c)).flat_map(char::to_lowercase).collect()
}

fn counts(c: char) -> bool {
    use GeneralCategoryGroup::{Letter, Mark, Number};
    // The standard library's `is_alphanumeric` excludes most marks and includes some symbols.
    c.is_ascii_alphanumeric()
        || (!c.is_ascii() && matches!(c.general_category_group(), Letter | Mark | Number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_marks_and_numbers_stay_and_are_lower_case() {
        for (name, normal) in [
            ("Alpha Cats II!", "alphacatsii"),
            ("#1 — №½ Ⅻ ٣", "1½ⅻ٣"),
            ("ÄÖ e\u{301}", "äöe\u{301}"),
            ("नमस्ते", "नमस्ते"),
            ("ΣΑΣ", "σασ"),
            ("猫🐱Ⓐ_猫", "猫猫"),
            (" \0\t/'\"", ""),
        ] {
            assert_eq!(normalized_name(name), normal);
        }
    }

    proptest! {
        #[test]
        fn a_part_of_a_name_is_found_in_the_whole(before: String, part: String, after: String) {
            let whole = normalized_name(&format!("{before}{part}{after}"));
            prop_assert!(whole.contains(&normalized_name(&part)));
        }
    }
}
