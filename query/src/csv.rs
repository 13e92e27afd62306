//! Lists as CSV (RFC 4180), for spreadsheets.
//!
//! # Invariants
//!
//! * No cell is a formula: one that begins with a character by which spreadsheets know formulas gets an apostrophe before it.
//! * A body has at least one row of its page, and no more than a page of JSON may have in bytes; `Link` leads to the others.

use std::ops::ControlFlow;

use chain::U256;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use web::call::Call;
use web::http_error::HttpError;
use web::limits::lane;
use web::openapi::schema::Text;
use web::reply::Reply;

use crate::cursor::{self, Row, Space};
use crate::page::Page;
use crate::page_writer::More;

/// Rows of a page, at most and by default.
pub(crate) const MAX_ROWS: u64 = 10_000;

/// The body.
pub(crate) const TEXT: Text = Text {
    content_type: "text/csv",
    doc: "Lines of cells (RFC 4180), the names of the columns in the first one.",
};

const CONTENT_TYPE: &str = "text/csv; charset=utf-8";

/// The body of a response.
pub(crate) struct Lines {
    out: Vec<u8>,
    written: usize,
    /// Maximum bytes of the body.
    max: usize,
}

impl Lines {
    /// A body with the names of the columns.
    pub(crate) fn new(columns: &[&str], max: usize) -> Self {
        let mut out = Vec::new();
        write_row(&mut out, columns);
        Self { out, written: 0, max }
    }

    /// Appends a row, unless the body is full.
    pub(crate) fn push(&mut self, cells: &[String]) -> More {
        let before = self.out.len();
        write_row(&mut self.out, cells);
        if self.written > 0 && self.out.len() > self.max {
            self.out.truncate(before);
            return Ok(ControlFlow::Break(()));
        }
        lane::spend((self.out.len() - before) as u64)?;
        self.written += 1;
        Ok(ControlFlow::Continue(()))
    }

    /// The response to a request for `path` with a page whose rows are these.
    pub(crate) fn reply<R: Row>(
        self,
        call: &Call<'_>,
        path: &str,
        (space, mut page): (Space, Page<R>),
    ) -> Result<Reply, HttpError> {
        page.cut_end(self.written);
        let next = page.next.map(|next| link(call, path, &cursor::encode(space, next))).transpose()?;
        Ok(Reply { content_type: CONTENT_TYPE, link: next, ..Reply::json(self.out) })
    }
}

/// A segment of a path.
pub(crate) fn encoded(segment: &str) -> String {
    utf8_percent_encode(segment, NON_ALPHANUMERIC).to_string()
}

/// The `Link` to the page at `key` of the list at `path`.
fn link(call: &Call<'_>, path: &str, key: &str) -> Result<String, HttpError> {
    let others = call
        .form()?
        .into_iter()
        .filter(|(name, _)| !matches!(&**name, "pagination.key" | "pagination.offset"));
    let mut query: Vec<String> =
        others.map(|(name, value)| format!("{}={}", encoded(&name), encoded(&value))).collect();
    query.push(format!("pagination.key={key}"));
    Ok(format!("<{path}?{}>; rel=\"next\"", query.join("&")))
}

/// An amount in units of 10^`decimals`, without trailing zeros.
pub(crate) fn scaled(amount: U256, decimals: u32) -> String {
    let digits = format!("{amount:0>width$}", amount = amount.to_string(), width = decimals as usize + 1);
    let (whole, part) = digits.split_at(digits.len() - decimals as usize);
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
}

/// Appends a line.
fn write_row(out: &mut Vec<u8>, cells: &[impl AsRef<str>]) {
    for (n, cell) in cells.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        let cell = cell.as_ref();
        // As OWASP advises: what begins so is a formula to spreadsheets.
        let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let guard = if is_formula { "'" } else { "" };
        if cell.contains([',', '"', '\r', '\n']) {
            out.extend(format!("\"{guard}{}\"", cell.replace('"', "\"\"")).into_bytes());
        } else {
            out.extend_from_slice(guard.as_bytes());
            out.extend_from_slice(cell.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cells: &[&str]) -> String {
        let mut out = Vec::new();
        write_row(&mut out, cells);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_are_quoted_where_they_must_be_and_are_never_formulas() {
        assert_eq!(line(&["a", "", "b c"]), "a,,b c\r\n");
        assert_eq!(
            line(&["a,b", "say \"x\"", "1\n2", "1\r2"]),
            "\"a,b\",\"say \"\"x\"\"\",\"1\n2\",\"1\r2\"\r\n"
        );
        assert_eq!(
            line(&["=1+1", "+1", "-1", "@x", "\tx", "\rx", "=\"a\",b"]),
            "'=1+1,'+1,'-1,'@x,'\tx,\"'\rx\",\"'=\"\"a\"\",b\"\r\n"
        );
    }

    #[test]
    fn an_amount_is_scaled_without_loss() {
        let scaled = |amount: u64, decimals| scaled(U256::from(amount), decimals);
        assert_eq!(scaled(0, 6), "0");
        assert_eq!(scaled(1_500_000, 6), "1.5");
        assert_eq!(scaled(7, 3), "0.007");
        assert_eq!(scaled(1000, 0), "1000");
        assert_eq!(super::scaled(U256::MAX, 18).len(), 79);
    }
}
