//! A breadth-first walk over the links of the pages, with the checks that every page must pass.
//!
//! A link leads to a view of [`VIEWS`] or to JSON. A walk opens some pages of each view, with and without scripts, and
//! reports all faults at its end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use serde_json::Value;

use crate::figures;
use crate::support::get_text;
use crate::tab::{Screen, Tab};

/// The views of a chain's index; a segment `*` matches any.
pub(crate) const VIEWS: [&str; 21] = [
    "/",
    "/blocks",
    "/block/*",
    "/txs",
    "/tx/*",
    "/evm-txs",
    "/account/*",
    "/contract/*",
    "/collections",
    "/collection/*",
    "/tokens",
    "/token/*",
    "/holders",
    "/ibc",
    "/ibc/*",
    "/ibc/*/*",
    "/bridge",
    "/bridge/deposits",
    "/bridge/output/*",
    "/bridge/withdrawal/*",
    "/search",
];

/// The views of routes and transfers.
pub(crate) const ROUTE_VIEWS: [&str; 2] = ["/route", "/transfer"];

/// Pages of each view that a walk opens.
const PAGES_OF_VIEW: usize = 4;

/// Pages of each view with screenshots.
const SCREENSHOTS_OF_VIEW: usize = 2;

/// The longest first load, in bytes on the wire.
const FIRST_LOAD: f64 = 60_000.0;

const WIDE: Screen = Screen { name: "wide", width: 1280, scheme: "light" };
const SCREENS: [Screen; 4] = [
    WIDE,
    Screen { name: "wide-dark", width: 1280, scheme: "dark" },
    Screen { name: "narrow", width: 360, scheme: "light" },
    Screen { name: "narrow-dark", width: 360, scheme: "dark" },
];

/// Presses of the Tab key until the contents of a page must have the focus.
const PRESSES: usize = 30;

/// Roles of elements that must have an accessible name.
const NAMED: [&str; 9] =
    ["link", "button", "textbox", "searchbox", "combobox", "checkbox", "progressbar", "table", "image"];

/// The script that reports on a page.
pub(crate) const PAGE: &str = include_str!("page.js");

/// Runs axe-core, whose rules are those of WCAG 2.2 AA and of good practice; evaluates to what it finds. Contrast is computed by [`PAGE`] in
/// less time.
const AXE: &str = r#"axe.run({ resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } } }).then(({ violations }) =>
    violations.map(({ id, nodes }) => `axe ${id}: ${nodes.slice(0, 2).map(({ html }) => html.slice(0, 160)).join(" and ")}`))"#;

/// The focused element: its place, and whether a user sees that it has the focus.
const FOCUS: &str = r#"(() => {
    const element = document.activeElement, style = getComputedStyle(element);
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
    return {
        html: element.outerHTML.slice(0, 100),
        place: element.matches("input[type=search]") ? "search" : element.closest("main") ? "main" : "",
        isVisible: element.matches(":focus-visible") && (outlined || style.boxShadow !== "none"),
    };
})()"#;

/// A walk over the pages of one server.
pub(crate) struct Walk {
    tab: Tab,
    origin: String,
    queue: VecDeque<String>,
    seen: BTreeSet<String>,
    /// Pages that links lead to, by view.
    found: BTreeMap<&'static str, usize>,
    /// Their folder, if they are wanted.
    screenshots: Option<PathBuf>,
    /// The source of axe-core, if it is there.
    axe: Option<String>,
    faults: Vec<String>,
}

impl Walk {
    /// A walk from `/` and `more`. `name` is the folder of its screenshots, in that which `SCREENSHOTS` names.
    pub(crate) fn new(mut tab: Tab, origin: &str, name: &str, more: &[String]) -> Self {
        let screenshots = std::env::var_os("SCREENSHOTS").map(|folder| PathBuf::from(folder).join(name));
        if let Some(folder) = &screenshots {
            std::fs::create_dir_all(folder).unwrap();
        }
        // So every page is measured as the first one that a browser loads.
        tab.keep_no_cache();
        let queue: VecDeque<_> = std::iter::once("/".to_owned()).chain(more.iter().cloned()).collect();
        let seen = queue.iter().cloned().collect();
        let origin = origin.trim_end_matches('/').to_owned();
        let found = BTreeMap::new();
        let axe = std::env::var_os("AXE").map(|file| std::fs::read_to_string(file).unwrap());
        Self { tab, origin, queue, seen, found, screenshots, axe, faults: Vec::new() }
    }

    /// Walks to the end; returns the number of pages that links lead to, by view. Panics with all faults if there are any.
    pub(crate) fn run(mut self) -> BTreeMap<&'static str, usize> {
        while let Some(target) = self.queue.pop_front() {
            match view(&target) {
                Some(view) => {
                    let found = self.found.entry(view).or_default();
                    *found += 1;
                    let number = *found;
                    if number <= PAGES_OF_VIEW {
                        self.visit(view, number, &target);
                    }
                }
                None => self.read(&target),
            }
        }
        let faults = self.faults;
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
        self.found
    }

    /// A link that leads to no view must lead to JSON, to a table for spreadsheets, or to the page over the API.
    fn read(&mut self, target: &str) {
        let (status, body) = get_text(&format!("{}{target}", self.origin));
        let is_api_page = target == "/swagger/" && body.contains("../openapi.json");
        let is_csv = target.contains("format=csv") && body.starts_with("timestamp,");
        if status != 200 || !is_api_page && !is_csv && serde_json::from_str::<Value>(&body).is_err() {
            self.fault(target, &format!("status {status}, and neither a view nor JSON"));
        }
    }

    /// Opens `target`, the page with this number of its view, from 1, and checks it.
    fn visit(&mut self, view: &'static str, number: usize, target: &str) {
        self.tab.show_on(WIDE);
        let received = self.tab.open(target);
        if received > FIRST_LOAD {
            self.fault(target, &format!("{received} bytes are loaded, more than {FIRST_LOAD}"));
        }
        let mut backgrounds = BTreeSet::new();
        for screen in SCREENS {
            self.tab.show_on(screen);
            let page = self.tab.evaluate(PAGE);
            for fault in
                [&page["overflow"], &page["contrast"]].into_iter().flat_map(|list| list.as_array().unwrap())
            {
                self.fault(target, &format!("{}: {}", screen.name, fault.as_str().unwrap()));
            }
            backgrounds.insert(page["background"].to_string());
            if number <= SCREENSHOTS_OF_VIEW
                && let Some(folder) = &self.screenshots
            {
                let name = view.replace("/*", "").trim_matches('/').replace('/', "-");
                let name = if name.is_empty() { "overview" } else { &name };
                self.tab.screenshot(&folder.join(format!("{name}-{number}-{}.png", screen.name)));
            }
        }
        if backgrounds.len() != 2 {
            self.fault(target, &format!("light and dark have the backgrounds {backgrounds:?}"));
        }
        self.tab.show_on(WIDE);
        for unnamed in self.tab.unnamed(&NAMED) {
            self.fault(target, &format!("no accessible name: {unnamed}"));
        }
        if number == 1 {
            self.press_tab(target);
        }
        self.ask_axe(target);
        let page = self.tab.evaluate(PAGE);
        let title = page["title"].as_str().unwrap();
        // What the page is of, then the chain.
        if title.split_once(" · ").is_none_or(|(own, _)| own.trim().is_empty()) {
            self.fault(target, &format!("the title is {title:?}"));
        }
        for fault in figures::differences(&self.origin, &page) {
            self.fault(target, &fault);
        }
        self.open_without_scripts(target, &page);
        for problem in self.tab.problems() {
            self.fault(target, &problem);
        }
        for link in page["links"].as_array().unwrap() {
            let link = link.as_str().unwrap().to_owned();
            if self.seen.insert(link.clone()) {
                self.queue.push_back(link);
            }
        }
    }

    /// Findings of axe-core on the widest and on the narrowest screen.
    fn ask_axe(&mut self, target: &str) {
        let Some(axe) = self.axe.clone() else { return };
        // Its value is an object that no message can hold.
        self.tab.evaluate(&format!("{axe}; true"));
        for screen in [SCREENS[2], WIDE] {
            self.tab.show_on(screen);
            for finding in self.tab.evaluate(AXE).as_array().unwrap() {
                self.fault(target, &format!("{}: {}", screen.name, finding.as_str().unwrap()));
            }
        }
    }

    fn open_without_scripts(&mut self, target: &str, page: &Value) {
        self.tab.run_scripts(false);
        self.tab.open(target);
        let plain = self.tab.evaluate(PAGE);
        if plain["text"] != page["text"] {
            self.fault(
                target,
                &format!("without scripts the text is {}, not {}", plain["text"], page["text"]),
            );
        }
        self.tab.run_scripts(true);
    }

    /// The Tab key leads to the search and then to the contents, and each step is visible.
    fn press_tab(&mut self, target: &str) {
        let mut places = BTreeSet::new();
        for _ in 0..PRESSES {
            self.tab.press_tab();
            let focus = self.tab.evaluate(FOCUS);
            if focus["isVisible"] != true {
                self.fault(target, &format!("the focus is not visible on {}", focus["html"]));
            }
            places.insert(focus["place"].as_str().unwrap().to_owned());
            if places.contains("search") && places.contains("main") {
                return;
            }
        }
        self.fault(target, &format!("{PRESSES} presses of Tab reach only {places:?}"));
    }

    fn fault(&mut self, target: &str, fault: &str) {
        self.faults.push(format!("{target}: {fault}"));
    }
}

/// The view that `target` is a page of.
fn view(target: &str) -> Option<&'static str> {
    let path = target.split('?').next().unwrap_or(target);
    let matches = |view: &&str| {
        let (mut path, mut view) = (path.split('/'), view.split('/'));
        loop {
            match (path.next(), view.next()) {
                (None, None) => return true,
                (Some(one), Some(other)) if other == "*" || one == other => {}
                _ => return false,
            }
        }
    };
    VIEWS.into_iter().chain(ROUTE_VIEWS).find(matches)
}
