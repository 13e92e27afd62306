//! The records of a page as JSON, up to a number of bytes.
//!
//! # Invariants
//! * A page has its first record, and further ones as long as all of them are within the limit.
//! * Work is counted before it is done ([`web::limits::lane`]).

use std::ops::ControlFlow;

use web::http_error::HttpError;
use web::limits::lane;

/// Bytes of a stored row of several records, at most; a larger row has a single record.
const SMALL_ROW: u64 = 64 << 10;

/// Bytes of a response after its records: the pagination object.
const AFTER_RECORDS: usize = 256;

/// Whether a page takes more records.
pub(crate) type More = Result<ControlFlow<()>, HttpError>;

/// The beginning of a response, up to its last record.
pub(crate) struct PageWriter {
    out: Vec<u8>,
    /// Length of `out` before the first record.
    lead: usize,
    /// Length of `out` after each record.
    ends: Vec<usize>,
    max: usize,
    /// Number of records that the page would have.
    wanted: usize,
}

impl PageWriter {
    /// A page of `wanted` records after `lead`, of at most `max` bytes.
    pub(crate) fn new(lead: Vec<u8>, wanted: usize, max: usize) -> Self {
        Self { lead: lead.len(), out: lead, ends: Vec::new(), max, wanted }
    }

    fn has_room(&self, bytes: usize) -> bool {
        // Less, because a comma comes before it.
        self.ends.is_empty() || self.out.len() - self.lead + bytes < self.max
    }

    /// Announces a stored row of `bytes` before it is decompressed.
    pub(crate) fn row(&mut self, bytes: u64) -> More {
        if bytes <= SMALL_ROW {
            return Ok(ControlFlow::Continue(()));
        }
        if !self.has_room(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            return Ok(ControlFlow::Break(()));
        }
        lane::spend(bytes)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Appends a record.
    pub(crate) fn record(&mut self, record: &[u8]) -> More {
        if !self.has_room(record.len()) {
            return Ok(ControlFlow::Break(()));
        }
        lane::spend(record.len() as u64)?;
        if self.ends.is_empty() {
            // Records of a page have about the same length.
            let all = (record.len() + 1).saturating_mul(self.wanted);
            self.out.reserve(all.min(self.max.max(record.len())) + AFTER_RECORDS);
        } else {
            self.out.push(b',');
        }
        self.out.extend_from_slice(record);
        self.ends.push(self.out.len());
        Ok(ControlFlow::Continue(()))
    }

    /// The beginning of the response and its number of records, which are in the other order if they were `reversed`.
    pub(crate) fn finish(self, reversed: bool) -> (Vec<u8>, usize) {
        let Self { out, lead, ends, .. } = self;
        let n = ends.len();
        if !reversed {
            return (out, n);
        }
        let mut turned = Vec::with_capacity(out.len() + AFTER_RECORDS);
        turned.extend_from_slice(&out[..lead]);
        for (i, end) in ends.iter().enumerate().rev() {
            let start = i.checked_sub(1).map_or(lead, |before| ends[before] + 1);
            turned.extend_from_slice(&out[start..*end]);
            if i > 0 {
                turned.push(b',');
            }
        }
        (turned, n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(records: &[&str], max: usize, reversed: bool) -> (String, usize) {
        let mut page = PageWriter::new(b"[".to_vec(), records.len(), max);
        for record in records {
            if page.record(record.as_bytes()).unwrap().is_break() {
                break;
            }
        }
        let (out, n) = page.finish(reversed);
        (String::from_utf8(out).unwrap(), n)
    }

    #[test]
    fn a_page_ends_before_the_record_that_does_not_fit() {
        assert_eq!(written(&["10", "20", "30"], 8, false), ("[10,20,30".to_owned(), 3));
        assert_eq!(written(&["10", "20", "30"], 7, false), ("[10,20".to_owned(), 2));
        assert_eq!(written(&["10", "20", "30"], 7, true), ("[20,10".to_owned(), 2));
        assert_eq!(
            written(&["10", "20"], 1, true),
            ("[10".to_owned(), 1),
            "the first record is always there"
        );
        assert_eq!(written(&[], 1, true), ("[".to_owned(), 0));
    }

    #[test]
    fn a_large_row_is_refused_before_it_is_read_unless_it_is_the_first() {
        let mut page = PageWriter::new(Vec::new(), 2, 100_000);
        assert!(page.row(1 << 40).unwrap().is_continue());
        assert!(page.record(b"1").unwrap().is_continue());
        assert!(page.row(SMALL_ROW).unwrap().is_continue());
        assert!(page.row(100_000).unwrap().is_break());
    }
}
