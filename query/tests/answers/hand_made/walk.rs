//! A client's walk through a list, against the expected rows.

use serde_json::Value;

use super::HandMade;

/// A list of the API, with filters, and its rows ascending.
pub(crate) struct Listing {
    /// Path and query, with `?` at the end or with parameters after it.
    pub(crate) target: String,
    pub(crate) member: &'static str,
    pub(crate) rows: Vec<Value>,
}

/// A page as decoded by a client.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Value>,
    pub(crate) next: Option<String>,
    pub(crate) previous: Option<String>,
    pub(crate) total: String,
}

impl Listing {
    /// The page for the parameters `paging`.
    pub(crate) fn page(&self, made: &HandMade, paging: &str) -> Page {
        let target = format!("{}&{paging}", self.target);
        let (status, body) = made.get(&target);
        assert_eq!(status, 200, "{target}: {body}");
        let key = |name: &str| body["pagination"][name].as_str().map(str::to_owned);
        Page {
            rows: body[self.member].as_array().unwrap().clone(),
            next: key("next_key"),
            previous: key("previous_key"),
            total: body["pagination"]["total"].as_str().unwrap().to_owned(),
        }
    }

    /// The rows in the order of a request.
    pub(crate) fn ordered(&self, reverse: bool) -> Vec<Value> {
        let mut rows = self.rows.clone();
        if reverse {
            rows.reverse();
        }
        rows
    }

    /// Walks all pages by `next_key`, and back from each by `previous_key`; reverses at the first; tries offsets.
    pub(crate) fn check(&self, made: &HandMade, limit: usize, reverse: bool) {
        let (wanted, target) = (self.ordered(reverse), &self.target);
        let paging = format!("pagination.limit={limit}&pagination.reverse={reverse}");
        let mut pages = vec![self.page(made, &paging)];
        while let Some(key) = &pages[pages.len() - 1].next {
            assert!(pages.len() <= wanted.len(), "{target}: pages without end");
            pages.push(self.page(made, &format!("{paging}&pagination.key={key}")));
        }
        for (i, one) in pages.iter().enumerate() {
            assert_eq!(one.total, wanted.len().to_string(), "{target}");
            assert!(
                i + 1 == pages.len() || one.rows.len() == limit,
                "{target}: a page before the last is full"
            );
            assert_eq!(one.previous.is_some(), i > 0, "{target}");
            if let Some(key) = &one.previous {
                let before = self.page(made, &format!("{paging}&pagination.key={key}"));
                assert_eq!(before, pages[i - 1], "{target}");
            }
        }
        let seen: Vec<Value> = pages.iter().flat_map(|page| page.rows.clone()).collect();
        assert_eq!(seen, wanted, "{target} {paging}");
        if let Some(key) = &pages[0].next {
            let turned = self.page(
                made,
                &format!("pagination.limit={limit}&pagination.reverse={}&pagination.key={key}", !reverse),
            );
            assert_eq!(
                turned.rows,
                wanted[..limit - 1].iter().rev().cloned().collect::<Vec<_>>(),
                "{target}"
            );
        }
        for offset in 0..wanted.len() + 3 {
            self.check_offset(made, &paging, limit, offset, &wanted);
        }
    }

    fn check_offset(&self, made: &HandMade, paging: &str, limit: usize, offset: usize, wanted: &[Value]) {
        let target = &self.target;
        let at = self.page(made, &format!("{paging}&pagination.offset={offset}"));
        let rows: Vec<Value> = wanted.iter().skip(offset).take(limit).cloned().collect();
        assert_eq!(
            (&at.rows, at.total.clone()),
            (&rows, wanted.len().to_string()),
            "{target} {paging} {offset}"
        );
        let there = (at.previous.is_some(), at.next.is_some());
        assert_eq!(
            there,
            (offset > 0 && !wanted.is_empty(), offset + limit < wanted.len()),
            "{target} {offset}"
        );
        let Some(key) = &at.previous else { return };
        let before = self.page(made, &format!("{paging}&pagination.key={key}"));
        let end = offset.min(wanted.len());
        assert_eq!(before.rows, wanted[end.saturating_sub(limit)..end], "{target} {offset}");
    }
}
