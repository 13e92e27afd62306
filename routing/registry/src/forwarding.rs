//! List of the chains that run the packet forward middleware, for registries that do not say it.
//!
//! `forwards` in our own format has precedence, then the chain's answer ([`crate::Facts::forwards()`]), then this list. A
//! wrong entry costs a refund: the first packet has a receiver that is no address, so a chain without the middleware
//! refuses it.

/// A line is chain id, date and source; `#` begins a comment.
const LIST: &str = include_str!("forwarding.txt");

/// Whether a chain is in the list.
pub(crate) fn is_listed(chain_id: &str) -> bool {
    entries().any(|mut entry| entry.next() == Some(chain_id))
}

fn entries() -> impl Iterator<Item = std::str::SplitWhitespace<'static>> {
    LIST.lines().filter(|line| !line.starts_with('#')).map(str::split_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_has_a_date_and_a_source_and_is_there_once() {
        let entries: Vec<Vec<&str>> = entries().map(Iterator::collect).collect();
        assert!(entries.is_sorted_by(|a, b| a[0] < b[0]));
        for entry in &entries {
            let [_, date, source] = entry[..] else { panic!("{entry:?}") };
            assert!(date.len() == 10 && date.starts_with("20"), "{entry:?}");
            assert!(source.starts_with("https://github.com/") && source.contains("/blob/"), "{entry:?}");
        }
        assert!(is_listed("noble-1") && !is_listed("noble") && !is_listed("#"));
    }
}
