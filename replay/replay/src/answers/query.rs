//! Parser of the query language of searches, like that of CometBFT 0.38 (`libs/pubsub/query/syntax`).
//!
//! A query is conditions joined by `AND`: a tag, an operator, a value. Errors have the node's text and its offsets in
//! bytes. Times and dates are recognised but not supported: they are errors.

use std::iter::Peekable;
use std::str::CharIndices;

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
    /// The message of the node.
    Message(String),
    /// A `TIME` or a `DATE`, which a node accepts and a replay node rejects.
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Invalid,
    Tag,
    Text,
    Number,
    Time,
    Date,
    And,
    Compare(Op),
}

const COMPARES: &[Token] = &[
    Token::Compare(Op::LessOrEqual),
    Token::Compare(Op::GreaterOrEqual),
    Token::Compare(Op::Less),
    Token::Compare(Op::Greater),
    Token::Compare(Op::Equal),
    Token::Compare(Op::Contains),
    Token::Compare(Op::Exists),
];

impl Token {
    fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid token",
            Self::Tag => "tag",
            Self::Text => "string",
            Self::Number => "number",
            Self::Time => "timestamp",
            Self::Date => "datestamp",
            Self::And => "AND operator",
            Self::Compare(Op::Contains) => "CONTAINS operator",
            Self::Compare(Op::Exists) => "EXISTS operator",
            Self::Compare(Op::Equal) => "= operator",
            Self::Compare(Op::Less) => "< operator",
            Self::Compare(Op::LessOrEqual) => "<= operator",
            Self::Compare(Op::Greater) => "> operator",
            Self::Compare(Op::GreaterOrEqual) => ">= operator",
        }
    }
}

/// Parses a query, which must have at least one condition.
pub(super) fn parse(text: &str) -> Result<Vec<Condition>, QueryError> {
    let mut scanner = Scanner::new(text);
    let mut conditions = vec![scanner.condition()?];
    loop {
        match scanner.next() {
            Err(ScanError::End) => return Ok(conditions),
            Ok(Token::And) => conditions.push(scanner.condition()?),
            other => {
                let got = other.unwrap_or(Token::Invalid).name();
                let message = format!("offset {}: got {got}, want {}", scanner.start, Token::And.name());
                return Err(QueryError::Message(message));
            }
        }
    }
}

/// Reason why there is no token.
enum ScanError {
    End,
    Message(String),
}

struct Scanner<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    /// Offset of the token.
    start: usize,
    /// The token's text, without quotes.
    word: &'a str,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, rest: text.char_indices().peekable(), start: 0, word: "" }
    }

    fn condition(&mut self) -> Result<Condition, QueryError> {
        self.require(&[Token::Tag])?;
        let tag = self.word.to_owned();
        let Token::Compare(op) = self.require(COMPARES)? else {
            // `require` returns only the required token.
            return Err(QueryError::Message(format!("offset {}: unexpected operator", self.start)));
        };
        let wanted: &[Token] = match op {
            Op::Exists => return Ok(Condition { tag, op, value: String::new() }),
            Op::Contains => &[Token::Text],
            Op::Equal => &[Token::Number, Token::Time, Token::Date, Token::Text],
            _ => &[Token::Number, Token::Time, Token::Date],
        };
        match self.require(wanted)? {
            Token::Time | Token::Date => Err(QueryError::Time),
            _ => Ok(Condition { tag, op, value: self.word.to_owned() }),
        }
    }

    fn require(&mut self, wanted: &[Token]) -> Result<Token, QueryError> {
        let got = match self.next() {
            Ok(token) if wanted.contains(&token) => return Ok(token),
            Ok(token) => format!("got {}, wanted {}", token.name(), label(wanted)),
            Err(ScanError::End) => "EOF".to_owned(),
            Err(ScanError::Message(message)) => message,
        };
        Err(QueryError::Message(format!("offset {}: {got}", self.start)))
    }

    fn next(&mut self) -> Result<Token, ScanError> {
        while self.rest.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        self.start = self.end();
        let (at, first) = self.rest.next().ok_or(ScanError::End)?;
        let token = match first {
            '0'..='9' => self.number(),
            '\'' => return self.quoted(),
            '=' => Token::Compare(Op::Equal),
            '<' => Token::Compare(self.or_equal(Op::Less, Op::LessOrEqual)),
            '>' => Token::Compare(self.or_equal(Op::Greater, Op::GreaterOrEqual)),
            c if c == '_' || c.is_alphabetic() || c.is_numeric() => {
                while self.rest.next_if(|(_, c)| is_of_tag(*c)).is_some() {}
                self.keyword(at)
            }
            other => {
                return Err(ScanError::Message(format!("invalid input {other} at offset {}", self.end())));
            }
        };
        self.word = &self.text[at..self.end()];
        Ok(token)
    }

    fn number(&mut self) -> Token {
        self.digits();
        if self.rest.next_if(|(_, c)| *c == '.').is_some() {
            self.digits();
        }
        Token::Number
    }

    fn digits(&mut self) {
        while self.rest.next_if(|(_, c)| c.is_ascii_digit()).is_some() {}
    }

    fn quoted(&mut self) -> Result<Token, ScanError> {
        let from = self.end();
        let closing = self.rest.by_ref().find(|(_, c)| *c == '\'');
        let (to, _) = closing.ok_or(ScanError::End)?;
        self.word = &self.text[from..to];
        Ok(Token::Text)
    }

    fn or_equal(&mut self, alone: Op, with: Op) -> Op {
        if self.rest.next_if(|(_, c)| *c == '=').is_some() { with } else { alone }
    }

    fn keyword(&mut self, from: usize) -> Token {
        let spaced = self.rest.peek().is_some_and(|(_, c)| *c == ' ');
        match &self.text[from..self.end()] {
            "TIME" if spaced => Token::Time,
            "DATE" if spaced => Token::Date,
            "AND" => Token::And,
            "EXISTS" => Token::Compare(Op::Exists),
            "CONTAINS" => Token::Compare(Op::Contains),
            _ => Token::Tag,
        }
    }

    /// Start of the unread text.
    fn end(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |(at, _)| *at)
    }
}

fn is_of_tag(c: char) -> bool {
    matches!(c, '.' | '_' | '-') || c.is_alphabetic() || c.is_numeric()
}

fn label(tokens: &[Token]) -> String {
    let names: Vec<_> = tokens.iter().map(|token| token.name()).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
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
    fn malformed_queries_get_the_error_of_a_node() {
        assert_eq!(message(""), "offset 0: EOF");
        assert_eq!(message("  "), "offset 2: EOF");
        assert_eq!(message("5=a"), "offset 0: got number, wanted tag");
        assert_eq!(message("a.b"), "offset 3: EOF");
        assert_eq!(
            message("a.b c"),
            "offset 4: got tag, wanted <= operator, >= operator, < operator, > operator, = operator, CONTAINS operator or EXISTS operator"
        );
        assert_eq!(message("a.b=c"), "offset 4: got tag, wanted number, timestamp, datestamp or string");
        assert_eq!(message("a.b CONTAINS 5"), "offset 13: got number, wanted string");
        assert_eq!(message("a.b='x"), "offset 4: EOF");
        assert_eq!(message("a.b=!"), "offset 4: invalid input ! at offset 5");
        assert_eq!(message("a.b=1 OR c.d=2"), "offset 6: got tag, want AND operator");
        assert_eq!(message("a.b=1 !"), "offset 6: got invalid token, want AND operator");
        assert_eq!(message("a.b=1 AND"), "offset 9: EOF");
    }
}
