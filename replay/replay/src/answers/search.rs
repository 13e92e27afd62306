//! Transaction search: results of a query, and the page to return.
//!
//! Behaviour of the key-value index of CometBFT 0.38 (`state/txindex/kv`): **one** event must satisfy the conditions,
//! its attributes in any order, together with those on the height; `tx.height` excludes further conditions; `tx.hash`
//! overrides all others. Indexes before 0.37 also combine conditions over several events, so they find every result
//! found here. The index begins at the first recorded height, like that of a node that was restored from a snapshot
//! there.
//!
//! Numbers are compared as decimals of any length; a value with an exponent counts as no number.

use std::cmp::Ordering;

use super::query::{Condition, Op};
use super::{Deviation, View, query};
use crate::recording::{Event, Indexed};

/// `maxQueryLength` of `rpc/core/env.go`.
const MAX_QUERY: usize = 512;
const TX_HASH: &str = "tx.hash";
const TX_HEIGHT: &str = "tx.height";

/// The reason why a search has no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchError {
    /// The message of the node.
    Message(String),
    /// A kind of query that a replay node does not support.
    Unsupported(&'static str),
}

/// One page of the results of a query.
pub(super) struct Page<'a> {
    pub(super) txs: Vec<&'a Indexed>,
    /// The number on all pages.
    pub(super) total: usize,
}

/// A query and its page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) query: &'a str,
    /// From 1.
    pub(super) page: i64,
    pub(super) per_page: i64,
    /// `asc`, `desc` or empty.
    pub(super) order_by: &'a str,
}

/// `rpc/core/tx.go` of CometBFT 0.38, with its checks in its order.
pub(super) fn search<'a>(view: View<'a>, wanted: Wanted<'_>) -> Result<Page<'a>, SearchError> {
    let error = |text: &str| Err(SearchError::Message(text.to_owned()));
    if let Some(off) = view.no_index() {
        return error(off);
    }
    if wanted.query.len() > MAX_QUERY {
        return error("maximum query length exceeded");
    }
    let conditions = query::parse(wanted.query).map_err(|e| match e {
        query::QueryError::Message(message) => SearchError::Message(message),
        query::QueryError::Time => SearchError::Unsupported("a search for times or dates"),
    })?;
    if let Some(most) = view.deviations.get(Deviation::SearchRange)
        && !is_bounded(&conditions, most)
    {
        return error(&format!("block range is required and must be at most {most} blocks"));
    }
    let mut found = find(view, &conditions)?;
    match wanted.order_by {
        "asc" | "" => {}
        "desc" => found.reverse(),
        _ => return error("expected order_by to be either `asc` or `desc` or empty"),
    }
    let total = found.len();
    // `validatePerPage`: an invalid size is replaced by the default.
    let per_page = usize::try_from(wanted.per_page).ok().filter(|size| *size > 0).unwrap_or(30).min(100);
    let pages = total.div_ceil(per_page).max(1);
    let page = usize::try_from(wanted.page).ok().filter(|page| (1..=pages).contains(page));
    let Some(page) = page else {
        let given = wanted.page;
        return error(&format!("page should be within [1, {pages}] range, given {given}"));
    };
    let txs = found.into_iter().skip((page - 1) * per_page).take(per_page).collect();
    Ok(Page { txs, total })
}

/// The results, in the order of the chain.
fn find<'a>(view: View<'a>, conditions: &[Condition]) -> Result<Vec<&'a Indexed>, SearchError> {
    let shown = view.recording.indexed().iter().filter(|tx| view.is_indexed(tx.height));
    if let Some(condition) = conditions.iter().find(|c| c.tag == TX_HASH) {
        let hash = hash_in(&condition.value)?;
        return Ok(shown.filter(|tx| tx.hash[..] == hash).collect());
    }
    let search = Search::new(conditions);
    Ok(shown.filter(|tx| search.finds(tx)).collect())
}

/// Whether conditions on the height leave at most this number of blocks.
fn is_bounded(conditions: &[Condition], most: u64) -> bool {
    let bound = |op| {
        let is_it = |c: &&Condition| c.tag == TX_HEIGHT && c.op == op;
        conditions.iter().find(is_it).and_then(|c| c.value.parse::<u64>().ok())
    };
    let range = bound(Op::GreaterOrEqual).zip(bound(Op::LessOrEqual));
    bound(Op::Equal).is_some() || range.is_some_and(|(low, high)| high.saturating_sub(low) < most)
}

fn hash_in(text: &str) -> Result<Vec<u8>, SearchError> {
    if text.is_empty() {
        let message = "error while retrieving the result: transaction hash cannot be empty";
        return Err(SearchError::Message(message.to_owned()));
    }
    let prefix = "error during searching for a hash in the query: ";
    hex_as_go(text).map_err(|message| SearchError::Message(format!("{prefix}{message}")))
}

/// Hex with the errors of Go's `encoding/hex`.
pub(super) fn hex_as_go(text: &str) -> Result<Vec<u8>, String> {
    if let Some(byte) = text.bytes().find(|byte| !byte.is_ascii_hexdigit()) {
        let c = char::from(byte);
        return Err(format!("encoding/hex: invalid byte: U+{:04X} '{c}'", u32::from(c)));
    }
    hex::decode(text).map_err(|_| "encoding/hex: odd length hex string".to_owned())
}

/// A query, split into bounds of the height and conditions on an event.
struct Search<'q> {
    /// Bounds of the height, if the query has any.
    heights: Range<'q>,
    /// The only height; any height if it is 0 (`checkHeightConditions`).
    height: Option<Decimal<'q>>,
    tests: Vec<Test<'q>>,
    /// Whether the query has conditions on the height only, with bounds.
    only_heights: bool,
}

enum Test<'q> {
    Value { tag: &'q str, op: Op, value: &'q str, exactly: bool },
    Number { tag: &'q str, range: Range<'q> },
}

impl<'q> Search<'q> {
    /// `dedupHeight` and `LookForRangesWithHeight`: a bounded height is not also compared; of several compared heights
    /// the first applies.
    fn new(conditions: &'q [Condition]) -> Self {
        let of_height = |c: &&Condition| c.tag == TX_HEIGHT;
        let bounded = conditions.iter().filter(of_height).any(|c| c.op != Op::Equal);
        let alone = conditions.iter().all(|c| c.tag == TX_HEIGHT);
        let mut equal = conditions.iter().filter(of_height).filter(|c| Decimal::parse(&c.value).is_some());
        let equal = if bounded { None } else { equal.next() };
        let height = equal.and_then(|c| Decimal::parse(&c.value)).filter(|height| !height.is_zero());
        let exactly = height.is_some();
        let (mut heights, mut tests) = (Range::default(), Vec::new());
        for condition in conditions {
            let Condition { tag, op, value } = condition;
            match op {
                Op::Equal if tag == TX_HEIGHT && !(alone && equal == Some(condition)) => {}
                Op::Equal | Op::Contains | Op::Exists => {
                    tests.push(Test::Value { tag, op: *op, value, exactly });
                }
                _ if tag == TX_HEIGHT => heights.narrow(*op, value),
                _ => narrow(&mut tests, tag, *op, value),
            }
        }
        let only_heights = tests.is_empty() && !heights.is_open();
        Self { heights, height, tests, only_heights }
    }

    fn finds(&self, tx: &Indexed) -> bool {
        let text = tx.height.to_string();
        let height = Decimal::parse(&text);
        let here = height.is_some_and(|at| {
            self.heights.holds(at) && self.height.is_none_or(|height| height.whole == at.whole)
        });
        // The height is indexed like an attribute of a separate event.
        let of_height = [(TX_HEIGHT, text.as_str())];
        here && (self.only_heights
            || (!self.tests.is_empty()
                && (self.tests.iter().all(|test| test.holds(of_height.into_iter()))
                    || tx
                        .events
                        .iter()
                        .any(|event| self.tests.iter().all(|test| test.holds(tagged(event, test.tag())))))))
    }
}

/// Merges bounds of the same tag.
fn narrow<'q>(tests: &mut Vec<Test<'q>>, tag: &'q str, op: Op, value: &'q str) {
    let known = tests.iter_mut().find_map(|test| match test {
        Test::Number { tag: known, range } if *known == tag => Some(range),
        _ => None,
    });
    if let Some(range) = known {
        range.narrow(op, value);
        return;
    }
    let mut range = Range::default();
    range.narrow(op, value);
    tests.push(Test::Number { tag, range });
}

/// The values of an event under a tag, `type.key`.
fn tagged<'e>(event: &'e Event, tag: &'e str) -> impl Iterator<Item = (&'e str, &'e str)> {
    let key = tag.strip_prefix(event.kind.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let named = event.attributes.iter().filter(move |(name, _)| key.is_some_and(|key| key == name));
    named.map(move |(_, value)| (tag, value.as_str()))
}

impl Test<'_> {
    fn tag(&self) -> &str {
        match self {
            Self::Value { tag, .. } | Self::Number { tag, .. } => tag,
        }
    }

    fn holds<'e>(&self, mut values: impl Iterator<Item = (&'e str, &'e str)>) -> bool {
        match self {
            Self::Value { tag, op, value, exactly } => values.any(|(of, held)| {
                of == *tag
                    && match op {
                        Op::Exists => true,
                        Op::Contains => held.trim().contains(value),
                        _ => held == *value || (!exactly && goes_on(held, value)),
                    }
            }),
            Self::Number { tag, range } => values.any(|(of, held)| {
                of == *tag && Decimal::parse(held.trim()).is_some_and(|held| range.holds(held))
            }),
        }
    }
}

/// Whether `held` matches `value` by prefix: the key of the index is `tag/value/height/…`, so `transfer` also finds
/// `transfer/channel-0`.
fn goes_on(held: &str, value: &str) -> bool {
    held.strip_prefix(value).is_some_and(|rest| rest.starts_with('/'))
}

#[derive(Default)]
struct Range<'q> {
    low: Option<Decimal<'q>>,
    high: Option<Decimal<'q>>,
    with_low: bool,
    with_high: bool,
}

impl<'q> Range<'q> {
    fn narrow(&mut self, op: Op, value: &'q str) {
        let value = Decimal::parse(value);
        match op {
            Op::Greater => self.low = value,
            Op::GreaterOrEqual => (self.low, self.with_low) = (value, true),
            Op::Less => self.high = value,
            Op::LessOrEqual => (self.high, self.with_high) = (value, true),
            Op::Equal | Op::Contains | Op::Exists => {}
        }
    }

    fn is_open(&self) -> bool {
        self.low.is_none() && self.high.is_none()
    }

    fn holds(&self, value: Decimal<'_>) -> bool {
        let above = self.low.is_none_or(|low| match value.compare(low) {
            Ordering::Greater => true,
            Ordering::Equal => self.with_low,
            Ordering::Less => false,
        });
        let below = self.high.is_none_or(|high| match value.compare(high) {
            Ordering::Less => true,
            Ordering::Equal => self.with_high,
            Ordering::Greater => false,
        });
        above && below
    }
}

/// A number of any length: digits before the point without leading zeros, and after it without trailing zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal<'t> {
    negative: bool,
    whole: &'t str,
    part: &'t str,
}

impl<'t> Decimal<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let negative = text.starts_with('-');
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let sound = !(whole.is_empty() && part.is_empty())
            && whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit());
        let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
        sound.then_some(Self { negative: negative && !(whole.is_empty() && part.is_empty()), whole, part })
    }

    fn is_zero(self) -> bool {
        self.whole.is_empty()
    }

    fn compare(self, other: Self) -> Ordering {
        let size = |a: Self, b: Self| {
            a.whole.len().cmp(&b.whole.len()).then(a.whole.cmp(b.whole)).then(a.part.cmp(b.part))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tx(height: u64, events: &[(&str, &[(&str, &str)])]) -> Indexed {
        let event = |(kind, attributes): &(&str, &[(&str, &str)])| Event {
            kind: (*kind).to_owned(),
            attributes: attributes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        };
        Indexed { height, index: 0, hash: [0; 32], events: events.iter().map(event).collect() }
    }

    fn finds(query: &str, tx: &Indexed) -> bool {
        Search::new(&query::parse(query).unwrap()).finds(tx)
    }

    #[test]
    fn the_conditions_hold_for_one_event() {
        let events: [(&str, &[(&str, &str)]); 2] =
            [("recv", &[("seq", "1"), ("chan", "a")]), ("recv", &[("seq", "2"), ("chan", "b")])];
        let tx = tx(7, &events);
        assert!(finds("recv.seq='1' AND recv.chan='a'", &tx));
        assert!(finds("recv.chan='b' AND recv.seq='2' AND tx.height=7", &tx));
        assert!(!finds("recv.seq='1' AND recv.chan='b'", &tx));
        assert!(!finds("recv.seq='1' AND send.seq='1'", &tx));
        assert!(finds("recv.seq=1", &tx) && !finds("recv.seq='01'", &tx));
    }

    #[test]
    fn the_height_bounds_the_results_and_excludes_other_conditions() {
        let tx = tx(7, &[("e", &[("k", "v")])]);
        for query in [
            "tx.height=7",
            "tx.height='7'",
            "tx.height=7 AND tx.height=8",
            "tx.height>6",
            "tx.height>=7 AND tx.height<8",
            "tx.height EXISTS",
            "e.k='v' AND tx.height>6 AND tx.height<=7",
            "e.k EXISTS AND tx.height=7 AND tx.height=8",
            "e.k EXISTS AND tx.height=9 AND tx.height>5",
            "e.k EXISTS AND tx.height=0",
        ] {
            assert!(finds(query, &tx), "{query}");
        }
        for query in [
            "tx.height=8",
            "tx.height=0",
            "tx.height='x'",
            "tx.height>7",
            "tx.height<7",
            "e.k='v' AND tx.height=8",
            "e.k='v' AND tx.height>7",
            "e.k='v' AND tx.height EXISTS",
        ] {
            assert!(!finds(query, &tx), "{query}");
        }
    }

    #[test]
    fn numbers_of_any_length_are_compared_and_other_values_are_none() {
        let big = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        let tx = tx(1, &[("e", &[("n", big), ("f", "1.50"), ("t", "100uinit"), ("m", "-3")])]);
        for query in ["e.n>100", "e.n>=1.5", "e.f<1.51", "e.f<=1.5", "e.f>1.49 AND e.f<1.6", "e.m<0"] {
            assert!(finds(query, &tx), "{query}");
        }
        for query in ["e.n<100", "e.f>1.5", "e.f<1.5", "e.t>1", "e.t<1000", "e.m>0", "e.x>0"] {
            assert!(!finds(query, &tx), "{query}");
        }
        assert!(finds(&format!("e.n<={big}"), &tx) && !finds(&format!("e.n<{big}"), &tx));
    }

    #[test]
    fn texts_are_found_by_a_part_and_by_the_beginning_of_a_path() {
        let tx = tx(1, &[("a.b", &[("denom", "transfer/channel-0/uinit"), ("memo", "")])]);
        assert!(finds("a.b.denom CONTAINS 'channel'", &tx) && !finds("a.b.denom CONTAINS 'Channel'", &tx));
        assert!(finds("a.b.denom='transfer'", &tx) && !finds("a.b.denom='trans'", &tx));
        assert!(!finds("a.b.denom='transfer' AND tx.height=1", &tx));
        assert!(finds("a.b.memo EXISTS", &tx) && finds("a.b.memo=''", &tx) && !finds("a.b.no EXISTS", &tx));
    }

    #[test]
    fn malformed_hex_gets_the_error_of_go() {
        assert_eq!(hex_as_go("0g").unwrap_err(), "encoding/hex: invalid byte: U+0067 'g'");
        assert_eq!(hex_as_go("abc").unwrap_err(), "encoding/hex: odd length hex string");
        assert_eq!(hex_as_go("aB").unwrap(), [0xab]);
    }
}
