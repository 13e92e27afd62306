//! The query language of a node's search for transactions, read as CometBFT reads it, with its errors.

/// Bytes of a query, at most.
const MAX_QUERY: usize = 512;

/// A condition of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition<'q> {
    /// `type.key`, or a name with a meaning of its own.
    pub(crate) tag: &'q str,
    pub(crate) test: Test<'q>,
}

/// What a condition demands of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test<'q> {
    Exists,
    Contains(&'q str),
    Equals(&'q str),
    /// `=` with digits that are not quoted.
    EqualsNumber(&'q str),
    Less(&'q str),
    LessOrEqual(&'q str),
    Greater(&'q str),
    GreaterOrEqual(&'q str),
    /// A comparison with a `TIME` or a `DATE`.
    Time,
}

impl<'q> Test<'q> {
    /// The operand as text; empty if there is none.
    pub(crate) fn text(self) -> &'q str {
        match self {
            Self::Exists | Self::Time => "",
            Self::Contains(text)
            | Self::Equals(text)
            | Self::EqualsNumber(text)
            | Self::Less(text)
            | Self::LessOrEqual(text)
            | Self::Greater(text)
            | Self::GreaterOrEqual(text) => text,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Tag,
    Text,
    Number,
    Time,
    Date,
    And,
    Contains,
    Exists,
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Token {
    fn name(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::Text => "string",
            Self::Number => "number",
            Self::Time => "timestamp",
            Self::Date => "datestamp",
            Self::And => "AND operator",
            Self::Contains => "CONTAINS operator",
            Self::Exists => "EXISTS operator",
            Self::Equal => "= operator",
            Self::Less => "< operator",
            Self::LessOrEqual => "<= operator",
            Self::Greater => "> operator",
            Self::GreaterOrEqual => ">= operator",
        }
    }
}

/// Why there is no next token.
enum Fault {
    End,
    Invalid(char, usize),
}

struct Scanner<'q> {
    query: &'q str,
    /// Where the current token begins.
    start: usize,
    /// Where it ends.
    end: usize,
}

/// The conditions of a query.
pub(crate) fn parse(query: &str) -> Result<Vec<Condition<'_>>, String> {
    if query.len() > MAX_QUERY {
        return Err("maximum query length exceeded".to_owned());
    }
    let mut scanner = Scanner { query, start: 0, end: 0 };
    let mut conditions = vec![scanner.condition()?];
    loop {
        let found = match scanner.next() {
            Err(Fault::End) => return Ok(conditions),
            Ok((Token::And, _)) => {
                conditions.push(scanner.condition()?);
                continue;
            }
            Ok((token, _)) => token.name(),
            Err(Fault::Invalid(..)) => "invalid token",
        };
        // The number is CometBFT's for `AND`.
        return Err(format!("offset {}: got {found}, want 6", scanner.start));
    }
}

impl<'q> Scanner<'q> {
    fn condition(&mut self) -> Result<Condition<'q>, String> {
        use Token::{
            Contains, Date, Equal, Exists, Greater, GreaterOrEqual, Less, LessOrEqual, Number, Tag, Text,
            Time,
        };
        let (_, tag) = self.require(&[Tag])?;
        let (operator, _) =
            self.require(&[LessOrEqual, GreaterOrEqual, Less, Greater, Equal, Contains, Exists])?;
        let test = match operator {
            Exists => Test::Exists,
            Contains => Test::Contains(self.require(&[Text])?.1),
            Equal => match self.require(&[Number, Time, Date, Text])? {
                (Number, text) => Test::EqualsNumber(text),
                (Text, text) => Test::Equals(text),
                _ => Test::Time,
            },
            _ => match (operator, self.require(&[Number, Time, Date])?) {
                (_, (Time | Date, _)) => Test::Time,
                (Less, (_, text)) => Test::Less(text),
                (LessOrEqual, (_, text)) => Test::LessOrEqual(text),
                (Greater, (_, text)) => Test::Greater(text),
                (_, (_, text)) => Test::GreaterOrEqual(text),
            },
        };
        Ok(Condition { tag, test })
    }

    fn require(&mut self, wanted: &[Token]) -> Result<(Token, &'q str), String> {
        let (token, text) = self.next().map_err(|fault| match fault {
            Fault::End => format!("offset {}: EOF", self.start),
            Fault::Invalid(character, at) => {
                format!("offset {}: invalid input {character} at offset {at}", self.start)
            }
        })?;
        if wanted.contains(&token) {
            return Ok((token, text));
        }
        let names: Vec<&str> = wanted.iter().map(|token| token.name()).collect();
        let names = match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.concat(),
        };
        Err(format!("offset {}: got {}, wanted {names}", self.start, token.name()))
    }

    fn rest(&self) -> &'q str {
        self.query.get(self.end..).unwrap_or_default()
    }

    /// Moves the end behind the next characters that are `wanted`.
    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.end += rest.find(|character| !wanted(character)).unwrap_or(rest.len());
    }

    fn next(&mut self) -> Result<(Token, &'q str), Fault> {
        self.skip(char::is_whitespace);
        self.start = self.end;
        let first = self.rest().chars().next().ok_or(Fault::End)?;
        self.end += first.len_utf8();
        let token = match first {
            '0'..='9' => {
                self.skip(|character| character.is_ascii_digit());
                if self.rest().starts_with('.') {
                    self.end += 1;
                    self.skip(|character| character.is_ascii_digit());
                }
                Token::Number
            }
            '\'' => {
                let length = self.rest().find('\'').ok_or(Fault::End)?;
                let text = self.rest().get(..length).unwrap_or_default();
                self.end += length + 1;
                return Ok((Token::Text, text));
            }
            '=' => Token::Equal,
            '<' | '>' => {
                let or_equal = self.rest().starts_with('=');
                self.end += usize::from(or_equal);
                match (first, or_equal) {
                    ('<', false) => Token::Less,
                    ('<', true) => Token::LessOrEqual,
                    (_, false) => Token::Greater,
                    (_, true) => Token::GreaterOrEqual,
                }
            }
            '_' => self.word(),
            _ if first.is_alphabetic() => self.word(),
            _ => return Err(Fault::Invalid(first, self.end)),
        };
        Ok((token, self.query.get(self.start..self.end).unwrap_or_default()))
    }

    /// A word whose first character is read.
    fn word(&mut self) -> Token {
        self.skip(|character| matches!(character, '.' | '_' | '-') || character.is_alphanumeric());
        let word = self.query.get(self.start..self.end).unwrap_or_default();
        match word {
            "AND" => Token::And,
            "EXISTS" => Token::Exists,
            "CONTAINS" => Token::Contains,
            "TIME" | "DATE" if self.rest().starts_with(' ') => {
                let token = if word == "TIME" { Token::Time } else { Token::Date };
                self.skip(char::is_whitespace);
                self.skip(|character| !character.is_whitespace());
                token
            }
            _ => Token::Tag,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queries_of_known_clients_are_read() {
        let tests = |query| -> Vec<_> {
            parse(query).unwrap().iter().map(|condition| (condition.tag, condition.test)).collect()
        };
        assert_eq!(
            tests("message.sender = 'a' AND tx.height >= 5"),
            [("message.sender", Test::Equals("a")), ("tx.height", Test::GreaterOrEqual("5"))]
        );
        assert_eq!(
            tests("create_bridge.bridge_id = 1"),
            [("create_bridge.bridge_id", Test::EqualsNumber("1"))]
        );
        assert_eq!(
            tests("a.b CONTAINS '0x1::m' AND c EXISTS"),
            [("a.b", Test::Contains("0x1::m")), ("c", Test::Exists)]
        );
        assert_eq!(tests("wasm-a.b-c='d'"), [("wasm-a.b-c", Test::Equals("d"))]);
        assert_eq!(tests("x.t >= TIME 2020-01-01T00:00:00Z AND x.y<1.5")[1], ("x.y", Test::Less("1.5")));
    }

    #[test]
    fn errors_name_the_offset_as_a_node_does() {
        fn error(query: &str) -> String {
            parse(query).unwrap_err()
        }
        assert_eq!(error(" "), "offset 1: EOF");
        assert_eq!(error("tx.height=-1"), "offset 10: invalid input - at offset 11");
        assert_eq!(error("a='it\\'s'"), "offset 7: got tag, want 6");
        assert_eq!(error("1=1"), "offset 0: got number, wanted tag");
        assert_eq!(error(&"a".repeat(513)), "maximum query length exceeded");
        assert_eq!(
            error("NOT a.b='x'"),
            "offset 4: got tag, wanted <= operator, >= operator, < operator, > operator, = operator, CONTAINS operator or \
             EXISTS operator"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_query_makes_the_parser_panic(query in r"([a-zé._]{1,6}|AND|TIME |EXISTS|[<>=]{1,2}|'[^']*'?|[0-9.]{1,4}|\PC| ){0,12}") {
            if let Ok(conditions) = parse(&query) {
                proptest::prop_assert!(!conditions.is_empty() && conditions.iter().all(|one| !one.tag.is_empty()));
            }
        }
    }
}
