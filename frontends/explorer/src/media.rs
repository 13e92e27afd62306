//! Images of NFTs, from their URIs. This process fetches nothing: a page shows an image that the URI itself contains, or that a browser
//! gets from the IPFS gateway of the operator.

use std::borrow::Cow;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Bytes of an image within a page, so that a page stays small.
const MAX_IMAGE: usize = 32 << 10;

/// Characters of a path at the gateway.
const MAX_PATH: usize = 512;

/// The kinds of images that a browser shows, as in `data:image/…`, and as endings of paths. An SVG in an image runs no script.
const KINDS: [&str; 8] = ["png", "jpeg", "jpg", "gif", "webp", "avif", "svg+xml", "svg"];

/// Which images of NFTs pages show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// None.
    #[default]
    None,
    /// Those that are in the URI of the token.
    Data,
    /// The same, and those on IPFS, by the gateway with this address, without a slash at its end.
    Gateway(String),
}

impl FromStr for Media {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => return Ok(Self::None),
            "data" => return Ok(Self::Data),
            _ => {}
        }
        let gateway = text.trim_end_matches('/');
        let uri = Uri::from_str(gateway).ok().filter(|uri| uri.query().is_none() && !gateway.contains('#'));
        let is_plain = |uri: &Uri| {
            let authority =
                uri.authority().is_some_and(|of| !of.as_str().contains(['@', ';', ',', '\'', '*']));
            authority && matches!(uri.scheme_str(), Some("https" | "http"))
        };
        match uri.filter(is_plain) {
            Some(_) => Ok(Self::Gateway(gateway.to_owned())),
            None => Err(format!(
                "`{}` is neither none, nor data, nor the http address of an IPFS gateway, such as https://ipfs.io",
                chain::truncated(text, 80)
            )),
        }
    }
}

impl Media {
    /// The origin of the gateway, for the Content-Security-Policy.
    pub(crate) fn origin(&self) -> Option<String> {
        let Self::Gateway(gateway) = self else { return None };
        let uri = Uri::from_str(gateway).ok()?;
        Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
    }

    /// What a page shows of a token with this URI: the source of an image.
    pub(crate) fn image(&self, uri: &str) -> Option<String> {
        if *self == Self::None {
            return None;
        }
        // Without its ending, a path on IPFS is more often that of a document.
        if let Some(image) = self.source(uri, is_image_path) {
            return Some(image);
        }
        let document: Value = serde_json::from_slice(&embedded_document(uri)?).ok()?;
        let image = ["image", "image_data"].into_iter().find_map(|name| document[name].as_str())?;
        if image.trim_start().starts_with("<svg") && image.len() <= MAX_IMAGE {
            return Some(format!("data:image/svg+xml;base64,{}", STANDARD.encode(image)));
        }
        self.source(image, |_| true)
    }

    fn source(&self, uri: &str, is_image: impl Fn(&str) -> bool) -> Option<String> {
        if let Some(data) = uri.strip_prefix("data:image/") {
            let kind = data.split([';', ',']).next().unwrap_or_default();
            return (KINDS.contains(&kind) && uri.len() <= MAX_IMAGE).then(|| uri.to_owned());
        }
        let (Self::Gateway(gateway), Some(path)) = (self, uri.strip_prefix("ipfs://")) else { return None };
        let path = path.strip_prefix("ipfs/").unwrap_or(path);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./%~".contains(&byte);
        let is_path = path.len() <= MAX_PATH && !path.is_empty() && path.bytes().all(is_plain);
        let leaves = path.split('/').any(|part| matches!(part, "" | "." | ".."));
        (is_path && !leaves && is_image(path)).then(|| format!("{gateway}/ipfs/{path}"))
    }
}

fn is_image_path(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| KINDS.contains(&ending.as_str()))
}

/// The JSON within a `data:` URI.
fn embedded_document(uri: &str) -> Option<Cow<'_, [u8]>> {
    let (kind, data) = uri.strip_prefix("data:application/json")?.split_once(',')?;
    let text: Cow<'_, [u8]> = percent_decode_str(data).into();
    if kind.ends_with(";base64") { STANDARD.decode(&text).ok().map(Cow::Owned) } else { Some(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIXEL: &str = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";

    fn gateway() -> Media {
        "https://gateway.example/".parse().unwrap()
    }

    #[test]
    fn the_setting_is_none_data_or_an_address() {
        assert_eq!("none".parse(), Ok(Media::None));
        assert_eq!("data".parse(), Ok(Media::Data));
        assert_eq!(gateway().origin().as_deref(), Some("https://gateway.example"));
        let deep: Media = "http://127.0.0.1:8080/below".parse().unwrap();
        assert_eq!(deep.origin().as_deref(), Some("http://127.0.0.1:8080"));
        for text in [
            "",
            "all",
            "ipfs://x",
            "https://",
            "https://a b",
            "https://a?b",
            "https://a;b",
            "https://u@a",
            "https://*",
        ] {
            let error = Media::from_str(text).unwrap_err();
            assert!(error.contains("none, nor data"), "{text}: {error}");
        }
    }

    #[test]
    fn an_image_is_shown_from_the_uri_or_from_the_gateway() {
        let json = |image: &str| format!("{{\"name\":\"a, b\",\"image\":\"{image}\"}}");
        let plain = |image: &str| format!("data:application/json;utf8,{}", json(image));
        let encoded = |image: &str| format!("data:application/json;base64,{}", STANDARD.encode(json(image)));
        let svg = "<svg xmlns='http://www.w3.org/2000/svg'/>";
        let svg_data = format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg));
        let found = "https://gateway.example/ipfs/QmCid/1.png";
        for (uri, image) in [
            (PIXEL.to_owned(), PIXEL),
            (plain(PIXEL), PIXEL),
            (encoded(PIXEL), PIXEL),
            (encoded(svg), &svg_data),
            ("ipfs://QmCid/1.png".to_owned(), found),
            ("ipfs://ipfs/QmCid/1.png".to_owned(), found),
            (encoded("ipfs://QmCid"), "https://gateway.example/ipfs/QmCid"),
        ] {
            assert_eq!(gateway().image(&uri).as_deref(), Some(image), "{uri}");
            assert_eq!(Media::None.image(&uri), None, "{uri}");
            let is_data = image.starts_with("data:");
            assert_eq!(Media::Data.image(&uri).as_deref(), is_data.then_some(image), "{uri}");
        }
    }

    #[test]
    fn nothing_is_shown_of_other_hosts_kinds_and_paths() {
        for uri in [
            "",
            "https://elsewhere.example/1.png",
            "data:text/html,<script>",
            "data:image/x-other;base64,AA",
            "data:application/json,no JSON",
            "data:application/json;base64,%%%",
            "ipfs://QmCid/1.json",
            "ipfs://QmCid/../../1.png",
            "ipfs://QmCid//1.png",
            "ipfs://QmCid/1.png?x",
            "ipfs:///1.png",
            &format!("ipfs://{}.png", "a".repeat(MAX_PATH)),
            &format!("data:image/png;base64,{}", "A".repeat(MAX_IMAGE)),
            "data:application/json,{\"image\":\"https://elsewhere.example/1.png\"}",
        ] {
            assert_eq!(gateway().image(uri), None, "{uri}");
        }
    }
}
