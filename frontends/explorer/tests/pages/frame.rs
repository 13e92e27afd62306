//! Headers, assets and the size of a first load.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::site::Site;

/// Bytes after gzip.
fn packed(body: &str) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_load_is_under_20_kb_and_comes_from_this_host() {
    let site = Site::recorded("evm-scenario").await;
    let page = site.get("/").await;
    let mut bytes = packed(&page.body);
    let document = page.document();
    let of = |name: &'static str, attribute: &'static str| {
        document
            .all(name)
            .filter_map(move |element| element.get(attribute))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut files = [of("link", "href"), of("script", "src"), of("img", "src")].concat();
    files.sort();
    files.dedup();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        assert!(file.starts_with("/assets/"), "{file}");
        let answer = site.get(&file).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("cache-control")),
            (200, "public, max-age=31536000"),
            "{file}"
        );
        bytes += packed(&answer.body);
    }
    assert!(bytes < 20_000, "{bytes} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_has_the_policy_and_the_json_has_none() {
    let site = Site::recorded("wasm-scenario").await;
    for path in ["/", "/blocks", "/block/999999", "/assets/explorer.css"] {
        let answer = site.get(path).await;
        let policy = answer.header("content-security-policy");
        for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "same-origin", "{path}");
    }
    assert_eq!(site.get("/status").await.header("content-security-policy"), "");
    let document = site.json("/swagger/doc.json");
    assert!(document["paths"].get("/blocks").is_none(), "pages are not part of the JSON API");
}

/// A script that runs later would paint the page in the system's colours first.
#[tokio::test(flavor = "multi_thread")]
async fn the_chosen_colours_are_set_before_anything_is_painted() {
    let site = Site::recorded("wasm-scenario").await;
    let document = site.get("/").await.document();
    let scripts: Vec<_> = document.all("script").collect();
    let is_theme = |source: Option<&str>| source.is_some_and(|source| source.starts_with("/assets/theme.js"));
    assert!(is_theme(scripts[0].get("src")) && scripts[0].get("defer").is_none());
    let place = |wanted: &dyn Fn(&crate::dom::Element) -> bool| document.elements.iter().position(wanted);
    let style = place(&|element| element.get("rel") == Some("stylesheet"));
    assert!(place(&|element| is_theme(element.get("src"))) < style);
}
