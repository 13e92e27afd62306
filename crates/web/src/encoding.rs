//! Content negotiation of compression: `Accept-Encoding` with its weights (RFC 9110 §12.5.3).
//!
//! The heaviest weight wins. Between equals zstd comes before gzip (faster and smaller here) and both before no
//! compression. A client that accepts no coding gets the body uncompressed.

use http::HeaderValue;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

/// The negotiated coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) coding: Coding,
    /// The client does not accept an uncompressed body, however small.
    pub(crate) identity_excluded: bool,
}

/// A weight in thousandths, as the grammar has three digits.
type Weight = u16;

#[derive(Default)]
struct Weights {
    gzip: Option<Weight>,
    zstd: Option<Weight>,
    identity: Option<Weight>,
    any: Option<Weight>,
}

/// Reads all `Accept-Encoding` lines of a request.
pub(crate) fn choose<'h>(lines: impl IntoIterator<Item = &'h HeaderValue>) -> Choice {
    let mut weights = Weights::default();
    for line in lines {
        for item in line.as_bytes().split(|byte| *byte == b',') {
            weights.add(item.trim_ascii());
        }
    }
    weights.choose()
}

impl Weights {
    fn add(&mut self, item: &[u8]) {
        let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(weight).unwrap_or(1000);
        let slot = match name {
            b"*" => &mut self.any,
            name if name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip") => {
                &mut self.gzip
            }
            name if name.eq_ignore_ascii_case(b"zstd") => &mut self.zstd,
            name if name.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            _ => return,
        };
        *slot = Some(weight);
    }

    fn choose(&self) -> Choice {
        let identity_excluded = self.identity.or(self.any) == Some(0);
        let gzip = self.gzip.or(self.any).unwrap_or(0);
        // `*` does not tell which coding the client can decode; gzip is universally supported.
        let zstd = self.zstd.unwrap_or(0);
        // Without a weight of its own, no compression is the last choice.
        let identity = self.identity.unwrap_or(0);
        let coding = if zstd > 0 && zstd >= gzip && zstd >= identity {
            Coding::Zstd
        } else if gzip > 0 && gzip >= identity {
            Coding::Gzip
        } else {
            Coding::Identity
        };
        Choice { coding, identity_excluded }
    }
}

/// `q=0.25` as 250; a malformed weight is 0; `None` for another parameter.
fn weight(parameter: &[u8]) -> Option<Weight> {
    let value = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="))?;
    let (whole, digits) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', digits @ ..] if digits.len() <= 3 => (whole, digits),
        _ => return Some(0),
    };
    if !matches!(whole, b'0' | b'1') || !digits.iter().all(u8::is_ascii_digit) {
        return Some(0);
    }
    let thousandths =
        [100, 10, 1].into_iter().zip(digits).map(|(unit, digit)| unit * Weight::from(digit - b'0'));
    Some((Weight::from(whole - b'0') * 1000 + thousandths.sum::<Weight>()).min(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_coding_wins() {
        let cases = [
            ("", Coding::Identity),
            ("gzip", Coding::Gzip),
            ("GZIP;Q=0.1", Coding::Gzip),
            ("gzip, deflate, br, zstd", Coding::Zstd),
            ("gzip, zstd;q=0.9", Coding::Gzip),
            ("zstd;q=0, gzip;q=0", Coding::Identity),
            ("identity;q=1, gzip;q=0", Coding::Identity),
            ("identity;q=1, gzip;q=0.5", Coding::Identity),
            ("identity;q=0.5, gzip;q=0.5", Coding::Gzip),
            ("*", Coding::Gzip),
            ("*;q=0.5, gzip;q=0", Coding::Identity),
            ("*;q=0", Coding::Identity),
            ("br, deflate", Coding::Identity),
            ("gzip;q=2.0", Coding::Identity),
            ("gzip;q=0.0001", Coding::Identity),
            ("gzip;q=x", Coding::Identity),
            (" , ;q=1,zstd ; q=0.001 ,", Coding::Zstd),
        ];
        for (line, coding) in cases {
            assert_eq!(choose([&HeaderValue::from_static(line)]).coding, coding, "{line}");
        }
    }

    #[test]
    fn all_header_lines_count() {
        let lines = [HeaderValue::from_static("gzip;q=0.5"), HeaderValue::from_static("zstd;q=0.4")];
        assert_eq!(choose(&lines).coding, Coding::Gzip);
    }

    #[test]
    fn no_compression_can_be_excluded() {
        let excluded = |line| choose([&HeaderValue::from_static(line)]).identity_excluded;
        assert!(excluded("gzip, identity;q=0"));
        assert!(excluded("gzip, *;q=0"));
        assert!(!excluded("gzip, identity;q=0.1, *;q=0"));
        assert!(!excluded("gzip"));
    }
}
