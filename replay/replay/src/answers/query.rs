//! Parser of the query language of searches, like that of CometBFT 0.38 (`libs/pubsub/query/syntax`).
//!
//! A query is conditions joined by `AND`: a tag, an operator, a value. Errors begin as those of a node. Times and dates are
//! recognised but not supported: they are errors.

/// One condition, `tag operator value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    /// `type.key`, `tx.height` or `tx.hash`.
    pub(super) tag: String,
    pub(super) op: Op,
    /// The text of the value, without quotes; empty for [`Op::Exists`].
    pub(super) value: String,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    Exists,
}

/// The reason why a query is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueryError {
    /// A message like that of the node.
    Message(String),
    /// A `TIME` or a `DATE`, which a node accepts and a replay node rejects.
    Time,
}

/// Parses a query, which must have at least one condition.
pub(super) fn parse(text: &str) -> Result<Vec<Condition>, QueryError> {
    let mut tokens = Tokens { text, start: 0, end: 0 };
    let mut conditions = vec![tokens.condition()?];
    loop {
        match tokens.next() {
            None => return Ok(conditions),
            Some("AND") => conditions.push(tokens.condition()?),
            Some(_) => return Err(tokens.unexpected()),
        }
    }
}

struct Tokens<'a> {
    text: &'a str,
    /// Offsets of the last token.
    start: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    /// The next token, a text with its quotes; none at the end, and for a text whose quotes are not closed.
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.text[self.end..].trim_start();
        self.start = self.text.len() - rest.len();
        let len = match rest.chars().next()? {
            '\'' => rest[1..].find('\'')? + 2,
            '<' | '>' if rest[1..].starts_with('=') => 2,
            first if is_of_tag(first) => rest.find(|c| !is_of_tag(c)).unwrap_or(rest.len()),
            other => other.len_utf8(),
        };
        self.end = self.start + len;
        Some(&rest[..len])
    }

    fn condition(&mut self) -> Result<Condition, QueryError> {
        let begins_tag = |c: char| is_of_tag(c) && !matches!(c, '.' | '-' | '0'..='9');
        let tag = self.next().filter(|token| token.starts_with(begins_tag));
        let tag = tag.ok_or_else(|| self.unexpected())?.to_owned();
        let op = match self.next() {
            Some("=") => Op::Equal,
            Some("<") => Op::Less,
            Some("<=") => Op::LessOrEqual,
            Some(">") => Op::Greater,
            Some(">=") => Op::GreaterOrEqual,
            Some("CONTAINS") => Op::Contains,
            Some("EXISTS") => return Ok(Condition { tag, op: Op::Exists, value: String::new() }),
            _ => return Err(self.unexpected()),
        };
        let value = self.next().ok_or_else(|| self.unexpected())?;
        let quoted = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
        let is_number = value.starts_with(|c: char| c.is_ascii_digit())
            && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && value.matches('.').count() < 2;
        match (quoted, op) {
            (Some(text), Op::Equal | Op::Contains) => Ok(Condition { tag, op, value: text.to_owned() }),
            (None, Op::Contains) => Err(self.unexpected()),
            (None, _) if is_number => Ok(Condition { tag, op, value: value.to_owned() }),
            (None, _) if matches!(value, "TIME" | "DATE") => Err(QueryError::Time),
            _ => Err(self.unexpected()),
        }
    }

    /// The error about the last token.
    fn unexpected(&self) -> QueryError {
        let token = self.text.get(self.start..self.end).filter(|token| !token.is_empty());
        let what = token.map_or_else(|| "EOF".to_owned(), |token| format!("unexpected {token}"));
        QueryError::Message(format!("offset {}: {what}", self.start))
    }
}

fn is_of_tag(c: char) -> bool {
    matches!(c, '.' | '_' | '-') || c.is_alphabetic() || c.is_numeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        match parse(text) {
            Err(QueryError::Message(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_operator_and_kind_of_value_is_read() {
        let text =
            "a.b='x y' AND tx.height>=5 AND a.c<1.5 AND d.e-f_1 CONTAINS 'z' AND g.h EXISTS AND i.j = 7";
        let read: Vec<_> =
            parse(text).unwrap().into_iter().map(|c| format!("{} {:?} {}", c.tag, c.op, c.value)).collect();
        assert_eq!(
            read,
            [
                "a.b Equal x y",
                "tx.height GreaterOrEqual 5",
                "a.c Less 1.5",
                "d.e-f_1 Contains z",
                "g.h Exists ",
                "i.j Equal 7",
            ]
        );
        // A quote that opens after the last condition and is never closed ends the query, as on a node.
        assert_eq!(parse("a.b='ä AND ''").unwrap()[0].value, "ä AND ");
        assert_eq!(parse("a.b > TIME 2026-01-01T00:00:00Z"), Err(QueryError::Time));
    }

    #[test]
    fn malformed_queries_get_an_error_with_the_offset_as_on_a_node() {
        assert_eq!(message(""), "offset 0: EOF");
        assert_eq!(message("  "), "offset 2: EOF");
        assert_eq!(message("5=a"), "offset 0: unexpected 5");
        assert_eq!(message("a.b"), "offset 3: EOF");
        assert_eq!(message("a.b c"), "offset 4: unexpected c");
        assert_eq!(message("a.b=c"), "offset 4: unexpected c");
        assert_eq!(message("a.b CONTAINS 5"), "offset 13: unexpected 5");
        assert_eq!(message("a.b<'5'"), "offset 4: unexpected '5'");
        assert_eq!(message("a.b='x"), "offset 4: EOF");
        assert_eq!(message("a.b=!"), "offset 4: unexpected !");
        assert_eq!(message("a.b=1 OR c.d=2"), "offset 6: unexpected OR");
        assert_eq!(message("a.b=1 !"), "offset 6: unexpected !");
        assert_eq!(message("a.b=1 AND"), "offset 9: EOF");
    }
}
