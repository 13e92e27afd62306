//! A tab: opens pages, records what they request and report, evaluates JavaScript in them.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::devtools::{Connection, Event};

/// A screen that pages are shown on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Part of the names of screenshots.
    pub(crate) name: &'static str,
    pub(crate) width: u32,
    /// `light` or `dark`.
    pub(crate) scheme: &'static str,
}

/// The greatest height of a screenshot, in CSS pixels.
const TALLEST: f64 = 4_000.0;

/// One tab of the browser.
pub(crate) struct Tab {
    connection: Connection,
    /// Start of every allowed URL, with the slash after the host.
    origin: String,
    loaded: bool,
    /// Type and URL of requests that have not ended, by id; neither event streams nor the icon.
    in_flight: BTreeMap<String, String>,
    /// Bytes of the page's responses so far.
    received: f64,
    problems: Vec<String>,
}

impl Tab {
    pub(crate) fn new(connection: Connection, origin: &str) -> Self {
        let origin = format!("{}/", origin.trim_end_matches('/'));
        let (in_flight, problems) = (BTreeMap::new(), Vec::new());
        let mut tab = Self { connection, origin, loaded: false, in_flight, received: 0.0, problems };
        for domain in ["Page", "Network", "Runtime", "Log", "Accessibility"] {
            tab.call(&format!("{domain}.enable"), json!({}));
        }
        tab
    }

    /// Opens a page of the server, until every resource is loaded; returns the bytes on the wire, with the heads of
    /// responses.
    pub(crate) fn open(&mut self, target: &str) -> f64 {
        (self.loaded, self.received) = (false, 0.0);
        self.begin(target);
        self.settle(target);
        self.received
    }

    /// Opens a page of the server, which may never come to rest because it asks for news all the time.
    pub(crate) fn begin(&mut self, target: &str) {
        let url = format!("{}{}", self.origin, target.trim_start_matches('/'));
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{url}: {answer}");
    }

    /// Waits for the load event and the end of all requests but event streams.
    fn settle(&mut self, target: &str) {
        while !self.loaded || !self.in_flight.is_empty() {
            let awaited = format!("{target}: load {}, open requests {:?}", self.loaded, self.in_flight);
            let event = self.connection.event(&awaited);
            self.record(&event);
        }
    }

    /// Shows the page on `screen` from now on, without a reload.
    pub(crate) fn show_on(&mut self, screen: Screen) {
        // A phone's viewport follows the page's `meta viewport`, so that a missing one is seen as an overflow.
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": screen.width, "height": 800, "deviceScaleFactor": 1, "mobile": screen.width < 600 }),
        );
        let scheme = json!({ "name": "prefers-color-scheme", "value": screen.scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [scheme] }));
    }

    /// Lets pages that are opened from now on run scripts or not.
    pub(crate) fn run_scripts(&mut self, run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({ "value": !run }));
    }

    /// The value of a JavaScript expression.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Presses and releases the Tab key.
    pub(crate) fn press_tab(&mut self) {
        self.press("Tab", 9, "");
    }

    /// Types `text` over the value of an input, presses Enter, and waits for the page that follows.
    pub(crate) fn submit(&mut self, input: &str, text: &str) {
        self.evaluate(&format!("document.querySelector('{input}').select()"));
        self.call("Input.insertText", json!({ "text": text }));
        self.loaded = false;
        self.press("Enter", 13, "\r");
        self.settle(input);
    }

    /// `text` is the character that the key types.
    fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let parameters =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }

    /// The elements of the accessibility tree with one of `roles` and without a name.
    pub(crate) fn unnamed(&mut self, roles: &[&str]) -> Vec<String> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] == false);
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().trim().to_owned();
        let unnamed =
            nodes.filter(|node| roles.contains(&&*text(&node["role"])) && text(&node["name"]).is_empty());
        unnamed.map(|node| self.describe(&node["backendDOMNodeId"])).collect()
    }

    /// Name and attributes of an element.
    fn describe(&mut self, id: &Value) -> String {
        let node = self.call("DOM.describeNode", json!({ "backendNodeId": id }))["node"].take();
        format!("{} {}", node["nodeName"], node["attributes"])
    }

    /// Loads every resource again for each page, from now on.
    pub(crate) fn keep_no_cache(&mut self) {
        self.call("Network.setCacheDisabled", json!({ "cacheDisabled": true }));
    }

    /// Writes an image of the page to `file`.
    pub(crate) fn screenshot(&mut self, file: &Path) {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].take();
        let height = size["height"].as_f64().unwrap().min(TALLEST);
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1 });
        let parameters = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let image = self.call("Page.captureScreenshot", parameters);
        std::fs::write(file, STANDARD.decode(image["data"].as_str().unwrap()).unwrap()).unwrap();
    }

    /// Errors and forbidden requests since the last call.
    pub(crate) fn problems(&mut self) -> Vec<String> {
        // The browser sends events in order, so all of the page so far have arrived before this result.
        self.evaluate("0");
        std::mem::take(&mut self.problems)
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let result = self.connection.call(method, params);
        for event in self.connection.arrived() {
            self.record(&event);
        }
        result
    }

    fn record(&mut self, event: &Event) {
        let params = &event.params;
        let request = || params["requestId"].as_str().unwrap().to_owned();
        match event.method.as_str() {
            "Page.loadEventFired" => self.loaded = true,
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap();
                if !url.starts_with(&self.origin) && !url.starts_with("data:") {
                    self.problems.push(format!("request to another host: {url}"));
                }
                // The browser loads the icon when it likes, and does not always report its end.
                if params["type"] != "EventSource" && params["type"] != "Other" {
                    self.in_flight.insert(request(), format!("{} {url}", params["type"]));
                }
            }
            "Network.responseReceived" => {
                let response = &params["response"];
                if response["status"].as_u64().unwrap() >= 400 {
                    self.problems.push(format!("status {} of {}", response["status"], response["url"]));
                }
            }
            "Network.loadingFinished" => {
                self.in_flight.remove(&request());
                self.received += params["encodedDataLength"].as_f64().unwrap();
            }
            "Network.loadingFailed" => {
                self.in_flight.remove(&request());
                // Leaving a page cancels its event stream.
                if params["canceled"] != true && params["type"] != "EventSource" {
                    self.problems.push(format!("failed request: {params}"));
                }
            }
            "Runtime.exceptionThrown" => self.problems.push(format!("exception: {params}")),
            "Runtime.consoleAPICalled"
                if matches!(params["type"].as_str(), Some("error" | "warning" | "assert")) =>
            {
                self.problems.push(format!("console: {params}"));
            }
            // A broken security policy among them.
            "Log.entryAdded" if matches!(params["entry"]["level"].as_str(), Some("error" | "warning")) => {
                self.problems.push(format!("log: {}", params["entry"]));
            }
            "Page.javascriptDialogOpening" => panic!("a page opened a dialog: {params}"),
            _ => {}
        }
    }
}
