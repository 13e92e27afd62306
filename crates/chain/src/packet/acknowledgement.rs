//! Acknowledgements: what the receiving application replied (ICS-4), plain or wrapped by the middleware for fees (ICS-29).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::serde_lenient::JsonText;
use crate::wire::{Value, fields};

/// SHA-256 of `UNIVERSAL_ERROR_ACKNOWLEDGEMENT`: every refusal in IBC v2.
const REFUSED: [u8; 32] = [
    0x47, 0x74, 0xd4, 0xa5, 0x75, 0x99, 0x3f, 0x96, 0x3b, 0x1c, 0x06, 0x57, 0x37, 0x36, 0x61, 0x7a, 0x45,
    0x7a, 0xbe, 0xf8, 0x58, 0x91, 0x78, 0xdb, 0x8d, 0x10, 0xc9, 0x4b, 0x4a, 0xb5, 0x11, 0xab,
];

/// What an acknowledgement says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The application has done what the packet wants.
    Success,
    /// It has refused, for this reason: empty in IBC v2.
    Failure(String),
    /// An application's own form. It counts as delivered.
    Other,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Envelope<'a> {
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// What the application wrote, in base64.
    #[serde(rename = "app_acknowledgement")]
    app: Option<JsonText<'a>>,
    #[serde(default)]
    underlying_app_success: bool,
}

/// What the acknowledgement of a packet of this version of IBC says.
pub fn outcome(version: u32, acknowledgement: &[u8]) -> Outcome {
    if version == 1 {
        return of_json(acknowledgement, true);
    }
    let mut outcome = Outcome::Other;
    for (number, value) in fields(acknowledgement).unwrap_or_default() {
        let Value::Bytes(app) = value else { continue };
        let of_app = match of_json(app, false) {
            _ if number != 1 => continue,
            _ if app == REFUSED => Outcome::Failure(String::new()),
            of_app => of_app,
        };
        if matches!(of_app, Outcome::Failure(_)) {
            return of_app;
        }
        outcome = of_app;
    }
    outcome
}

fn of_json(json: &[u8], may_be_wrapped: bool) -> Outcome {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(json) else { return Outcome::Other };
    match (envelope.app, envelope.error) {
        (Some(app), _) if may_be_wrapped => {
            let inner = BASE64.decode(app.as_bytes()).map_or(Outcome::Other, |app| of_json(&app, false));
            match inner {
                Outcome::Success | Outcome::Other if !envelope.underlying_app_success => {
                    Outcome::Failure(String::new())
                }
                inner => inner,
            }
        }
        (_, Some(error)) => {
            // Another type than a text is shown as it is.
            let text = serde_json::from_str(error.get()).unwrap_or_else(|_| error.get().to_owned());
            Outcome::Failure(text)
        }
        _ if envelope.result.is_some() => Outcome::Success,
        _ => Outcome::Other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_outcome_is_that_of_the_inner_acknowledgement() {
        let failure = |text: &str| Outcome::Failure(text.to_owned());
        let wrapped = |app: &str, success: bool| {
            format!(
                r#"{{"app_acknowledgement":"{}","underlying_app_success":{success}}}"#,
                BASE64.encode(app)
            )
        };
        for (json, expected) in [
            (r#"{"result":"AQ=="}"#.to_owned(), Outcome::Success),
            (r#"{"error":"ABCI code: 1"}"#.to_owned(), failure("ABCI code: 1")),
            (r#"{"error":{"code":7}}"#.to_owned(), failure(r#"{"code":7}"#)),
            (wrapped(r#"{"result":"AQ=="}"#, true), Outcome::Success),
            (wrapped(r#"{"error":"no"}"#, false), failure("no")),
            (wrapped(r#"{"result":"AQ=="}"#, false), failure("")),
            (wrapped("other", true), Outcome::Other),
            (wrapped("other", false), failure("")),
            ("\u{1}".to_owned(), Outcome::Other),
            (String::new(), Outcome::Other),
        ] {
            assert_eq!(outcome(1, json.as_bytes()), expected, "{json}");
        }
    }

    #[test]
    fn an_application_that_refuses_decides_in_version_two() {
        assert_eq!(REFUSED, *Sha256::digest("UNIVERSAL_ERROR_ACKNOWLEDGEMENT"));
        let encoded = |apps: &[&[u8]]| {
            let mut out = Vec::new();
            for app in apps {
                out.push(0x0a);
                crate::wire::push_len_prefixed(&mut out, app);
            }
            out
        };
        let done = br#"{"result":"AQ=="}"#;
        assert_eq!(outcome(2, &encoded(&[done])), Outcome::Success);
        assert_eq!(outcome(2, &encoded(&[done, &REFUSED])), Outcome::Failure(String::new()));
        assert_eq!(outcome(2, &encoded(&[br#"{"error":"no"}"#])), Outcome::Failure("no".to_owned()));
        assert_eq!(outcome(2, &encoded(&[b"mine"])), Outcome::Other);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(version in 1_u32..3, bytes in any::<Vec<u8>>()) {
            outcome(version, &bytes);
        }
    }
}
