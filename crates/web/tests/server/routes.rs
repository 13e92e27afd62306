//! Routing of paths, and decoding of parameters.

use http::StatusCode;
use proptest::prelude::*;
use web::app::App;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::openapi::schema::Document;
use web::reply::Reply;
use web::router::{RouteError, Router};

fn get(target: &str) -> (u16, String) {
    let response = crate::shop::app().0.get(target);
    (response.status().as_u16(), String::from_utf8(response.into_body().to_vec()).unwrap())
}

fn body(target: &str) -> String {
    let (status, body) = get(target);
    assert_eq!(status, 200, "{target}: {body}");
    body
}

fn message(target: &str) -> String {
    let (status, body) = get(target);
    assert_eq!(status, 400, "{target}: {body}");
    serde_json::from_str::<serde_json::Value>(&body).unwrap()["message"].as_str().unwrap().to_owned()
}

#[test]
fn literals_win_over_parameters() {
    assert_eq!(body("/shop/v1/items/count"), r#"["count"]"#);
    assert_eq!(body("/shop/v1/items/counts"), r#"["item","counts"]"#);
    assert_eq!(body("/shop/v1/items/by_kind/tea"), r#"["kind","tea"]"#);
}

#[test]
fn a_literal_that_is_a_dead_end_is_a_parameter() {
    assert_eq!(body("/shop/v1/items/by_kind"), r#"["item","by_kind"]"#);
    assert_eq!(body("/shop/v1/items/by_kind/"), r#"["item","by_kind"]"#);
}

#[test]
fn case_and_a_slash_at_the_end_do_not_matter_but_values_keep_their_case() {
    assert_eq!(body("/SHOP/v1/Items/By_Kind/Tea/"), r#"["kind","Tea"]"#);
    assert_eq!(body("/shop/v1/items/"), body("/shop/v1/items"));
    assert_eq!(get("/shop/v1/items//").0, 404);
    assert_eq!(get("/shop/v1/items/by_kind//").0, 404);
}

#[test]
fn a_segment_is_decoded_once_and_after_the_split() {
    assert_eq!(body("/shop/v1/parts/a%2Fb/c%2525+d"), r#"["part","a/b","c%25+d"]"#);
    assert_eq!(body("/shop/v1/parts/%E8%8C%B6/Anemone%20%234"), r#"["part","茶","Anemone #4"]"#);
}

#[test]
fn a_segment_that_does_not_decode_is_400_with_its_name() {
    for raw in ["%", "%4", "%zz", "%ff", "%c3%28"] {
        let expected =
            format!("[INVALID_VALUE] invalid value for part: {raw} (must be percent-encoded UTF-8)");
        assert_eq!(message(&format!("/shop/v1/parts/a/{raw}")), expected);
    }
}

#[test]
fn query_parameters_follow_the_rules_of_the_contract() {
    assert_eq!(body("/shop/v1/items?pagination.limit=5&pagination.limit=6"), r#"["5","","-"]"#);
    assert_eq!(body("/shop/v1/items?pagination.limit=&pagination.limit=6"), r#"["-","","-"]"#);
    assert_eq!(body("/shop/v1/items?kinds=a&kinds=&kinds=b+c&order_by=n%61me"), r#"["-","a|b c","name"]"#);
    assert_eq!(body("/shop/v1/items?Kinds=a&limit=3&other=%zz&&=&?"), r#"["-","","-"]"#);
    assert_eq!(
        message("/shop/v1/items?kinds=%e8%8c"),
        "[INVALID_VALUE] invalid value for kinds: %e8%8c (must be percent-encoded UTF-8)"
    );
    assert_eq!(message(&format!("/shop/v1/items?{}", "a&".repeat(129))), "over 128 query parameters");
}

#[test]
fn the_endpoints_of_a_path_answer_by_method() {
    let (app, _slow) = crate::shop::app();
    let ask = |method: &str| {
        let request = http::Request::builder().method(method).uri("/till").body(()).unwrap();
        app.respond(&request.into_parts().0, b"coins")
    };
    assert_eq!(ask("GET").body(), r#"["till"]"#);
    assert_eq!(ask("POST").body(), r#"["coins"]"#);
    assert_eq!(ask("PUT").status(), StatusCode::METHOD_NOT_ALLOWED);
}

const fn at(path: &'static str, params: &'static [Param]) -> Endpoint<()> {
    Endpoint {
        method: Method::Get,
        path,
        tag: "",
        summary: "",
        params,
        response: &Document("A page."),
        handler: Handler::Sync(|(), _| Ok(Reply::json("{}"))),
        cache: MaxAge::LIST,
    }
}

#[test]
fn an_invalid_list_of_endpoints_is_an_error_at_startup() {
    const A: Param = Param::path("a", "");
    static CASES: &[(&[&[Endpoint<()>]], RouteError)] = &[
        (&[&[at("/a", &[])], &[at("/A", &[])]], RouteError::Duplicate("/A")),
        (&[&[at("/x/{a}", &[A]), at("/x/{b}", &[Param::path("b", "")])]], RouteError::Duplicate("/x/{b}")),
        (&[&[at("a", &[])]], RouteError::Template("a")),
        (&[&[at("/a/", &[])]], RouteError::Template("/a/")),
        (&[&[at("/a//b", &[])]], RouteError::Template("/a//b")),
        (&[&[at("/x-{a}", &[A])]], RouteError::Template("/x-{a}")),
        (&[&[at("/{a", &[A])]], RouteError::Template("/{a")),
        (&[&[at("/{}", &[])]], RouteError::Template("/{}")),
        (&[&[at("/{a}", &[])]], RouteError::Undeclared { path: "/{a}", name: "a" }),
        (&[&[at("/b", &[A])]], RouteError::Undeclared { path: "/b", name: "a" }),
        (&[&[at("/{a}/{a}/{a}/{a}/{a}", &[A])]], RouteError::TooMany("/{a}/{a}/{a}/{a}/{a}")),
    ];
    for (groups, error) in CASES {
        assert_eq!(App::new((), groups).err().as_ref(), Some(error));
    }
}

/// Every combination of three segments of a literal or a parameter, except some that are left out to make dead ends.
static LATTICE: &[&[Endpoint<()>]] = &[&[
    at("/", &[]),
    at("/a", &[]),
    at("/a/b/c", &[]),
    at("/a/{x}", &[Param::path("x", "")]),
    at("/a/{x}/{y}", &[Param::path("x", ""), Param::path("y", "")]),
    at("/{x}/b/{y}", &[Param::path("x", ""), Param::path("y", "")]),
    at("/{x}/{y}/c", &[Param::path("x", ""), Param::path("y", "")]),
    at("/{x}/b", &[Param::path("x", "")]),
]];

/// The rule in its simplest form: of the matching templates, the one whose first literal comes earliest.
fn by_the_rule(path: &str) -> Option<&'static str> {
    let segments: Vec<_> = path.strip_prefix('/').unwrap().split('/').collect();
    let fits = |template: &&'static str| {
        let parts: Vec<_> = template.trim_start_matches('/').split('/').collect();
        parts.len() == segments.len()
            && parts.iter().zip(&segments).all(|(part, segment)| {
                if part.starts_with('{') { !segment.is_empty() } else { part.eq_ignore_ascii_case(segment) }
            })
    };
    let templates = LATTICE.iter().copied().flatten().map(|endpoint| endpoint.path).filter(fits);
    templates.min_by_key(|template| template.split('/').map(|part| part.starts_with('{')).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn the_router_agrees_with_the_rule_in_its_simplest_words(segments in prop::collection::vec("[abcABC]|zz|", 0..5)) {
        let path = format!("/{}", segments.join("/"));
        // A slash at the end is ignored, which the rule does not cover.
        prop_assume!(path == "/" || !path.ends_with('/'));
        let router = Router::new(LATTICE).unwrap();
        prop_assert_eq!(router.template(&path), by_the_rule(&path));
        let slashed = format!("{path}/");
        prop_assert_eq!(router.template(&slashed), by_the_rule(&path));
    }

    #[test]
    fn no_target_makes_it_panic(target in "/[ -~]{0,40}") {
        let (app, _slow) = crate::shop::app();
        // `/slow` would wait for its release, and `/panics` panics.
        prop_assume!(!target.starts_with("/slow") && !target.starts_with("/panics"));
        let status = app.get(&target).status().as_u16();
        prop_assert!(matches!(status, 200 | 400 | 404), "{} {}", status, target);
    }
}
