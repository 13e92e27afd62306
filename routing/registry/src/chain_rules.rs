//! Rules of single chains that no public registry states, from one list with a date and a source for each.
//!
//! `forwards` in our own format has precedence, then the chain's answer ([`crate::Facts::forwards()`]), then this list. If a
//! chain does not forward although the list says so, it pays the packet to its receiver: see `messages`.

/// A line is chain id, rule, date and source; `#` begins a comment.
const LIST: &str = include_str!("chain_rules.txt");

/// Whether the chain runs the packet forward middleware.
pub(crate) fn forwards(chain_id: &str) -> bool {
    has(chain_id, "forwards")
}

/// Whether the contracts of the chain take encrypted messages only.
pub(crate) fn encrypts_calls(chain_id: &str) -> bool {
    has(chain_id, "encrypts-calls")
}

/// The ids of the chains with a rule.
pub(crate) fn chain_ids() -> impl Iterator<Item = &'static str> {
    entries().filter_map(|mut entry| entry.next())
}

fn has(chain_id: &str, rule: &str) -> bool {
    entries().any(|mut entry| entry.next() == Some(chain_id) && entry.next() == Some(rule))
}

fn entries() -> impl Iterator<Item = std::str::SplitWhitespace<'static>> {
    LIST.lines().filter(|line| !line.starts_with('#')).map(str::split_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_has_a_rule_a_date_and_a_source_and_is_there_once() {
        let entries: Vec<Vec<&str>> = entries().map(Iterator::collect).collect();
        assert!(entries.is_sorted_by(|a, b| a[..2] < b[..2]));
        for entry in &entries {
            let [_, rule, date, source] = entry[..] else { panic!("{entry:?}") };
            assert!(["forwards", "encrypts-calls"].contains(&rule), "{entry:?}");
            assert!(date.len() == 10 && date.starts_with("20"), "{entry:?}");
            assert!(source.starts_with("https://github.com/") && source.contains("/blob/"), "{entry:?}");
        }
        assert!(forwards("noble-1") && !forwards("noble") && !forwards("#"));
        assert!(encrypts_calls("secret-4") && forwards("secret-4") && !encrypts_calls("noble-1"));
    }
}
