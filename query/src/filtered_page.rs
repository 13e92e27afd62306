//! A page of the rows of an array that pass a test, where no list has just those.
//!
//! # Invariants
//!
//! * At most [`MAX_TESTED`] rows are tested for a page, so it may be short, or empty although others follow: it has a cursor
//!   whenever rows are left in its direction.
//! * Following the cursors returns every row that passes, once.

use web::http_error::HttpError;

use crate::array::Array;
use crate::cursor::{Cursor, Row, Start};
use crate::page::{Page, PageRequest, page};

/// Rows that are tested for a page.
pub(crate) const MAX_TESTED: u64 = 5_000;

/// Rows that are tested at once.
const AT_ONCE: u64 = 256;

/// The requested page of the rows of `array` that pass `test`; its total is 0, because nobody has counted them.
pub(crate) fn filtered_page<R: Row>(
    array: &dyn Array<Row = R>,
    request: &PageRequest<R>,
    mut test: impl FnMut(&[R]) -> Result<Vec<bool>, HttpError>,
) -> Result<Page<R>, HttpError> {
    let backward = request.is_backward();
    let mut at = request.at.clone();
    let (mut found, mut tested): (Page<R>, u64) =
        (Page { rows: Vec::new(), next: None, previous: None, total: 0 }, 0);
    'scan: loop {
        let limit = AT_ONCE.min(MAX_TESTED - tested);
        let mut chunk = page(array, &PageRequest { at, limit, direction: request.direction })
            .map_err(HttpError::internal)?;
        let (near, far) = match backward {
            true => (chunk.next, chunk.previous),
            false => (chunk.previous, chunk.next),
        };
        if tested == 0 {
            *(if backward { &mut found.next } else { &mut found.previous }) = near;
        }
        if backward {
            chunk.rows.reverse();
        }
        let passed = test(&chunk.rows)?;
        let mut left = chunk.rows.len();
        for (row, passed) in chunk.rows.into_iter().zip(passed) {
            (tested, left) = (tested + 1, left - 1);
            if passed {
                found.rows.push(row.clone());
            }
            if found.rows.len() as u64 == request.limit || tested == MAX_TESTED {
                if left > 0 || far.is_some() {
                    match backward {
                        true => found.previous = Some(Cursor::Before(row)),
                        false => found.next = Some(Cursor::After(row)),
                    }
                }
                break 'scan;
            }
        }
        let Some(cursor) = far else { break };
        at = Start::Row(cursor);
    }
    if backward {
        found.rows.reverse();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::array::Run;
    use crate::page::Direction;

    fn request(at: Start<u64>, limit: u64, direction: Direction) -> PageRequest<u64> {
        PageRequest { at, limit, direction }
    }

    fn passing(divisor: u64) -> impl FnMut(&[u64]) -> Result<Vec<bool>, HttpError> {
        move |rows| Ok(rows.iter().map(|row| row % divisor == 0).collect())
    }

    proptest! {
        #[test]
        fn pages_in_either_direction_are_those_of_a_scan(
            len in 0_u64..12_000, divisor in 1_u64..9_000, limit in 1_u64..400, descending: bool, from_end: bool,
        ) {
            let run = Run { first: 1, len };
            let direction = if descending { Direction::Descending } else { Direction::Ascending };
            let mut expected: Vec<u64> = (1..=len).filter(|row| row % divisor == 0).collect();
            if descending { expected.reverse() }
            let mut at = if from_end { Start::Row(Cursor::End) } else { Start::Offset(0) };
            let (mut all, mut pages) = (Vec::new(), 0);
            loop {
                let page = filtered_page(&run, &request(at, limit, direction), passing(divisor)).unwrap();
                prop_assert!(page.rows.len() as u64 <= limit);
                pages += 1;
                let next = if from_end {
                    all.splice(0..0, page.rows);
                    page.previous
                } else {
                    all.extend(page.rows);
                    page.next
                };
                let Some(cursor) = next else { break };
                at = Start::Row(cursor);
            }
            prop_assert!(pages <= len / MAX_TESTED + all.len() as u64 / limit + 2);
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn a_page_without_rows_says_that_others_follow() {
        let run = Run { first: 1, len: MAX_TESTED + 1 };
        let from = |at| {
            let request = request(at, 100, Direction::Ascending);
            filtered_page(&run, &request, passing(MAX_TESTED + 1)).unwrap()
        };
        let page = from(Start::Offset(0));
        assert_eq!((page.rows.len(), page.next, page.total), (0, Some(Cursor::After(MAX_TESTED)), 0));
        let page = from(Start::Row(page.next.unwrap()));
        assert_eq!((page.rows, page.next), (vec![MAX_TESTED + 1], None));
    }
}
