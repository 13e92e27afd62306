//! A page as a browser parses it.

use html5ever::tendril::TendrilSink as _;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

/// An element: its name and attributes.
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

impl Element {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The elements and the text of a page, in order.
#[derive(Default)]
pub(crate) struct Document {
    pub(crate) elements: Vec<Element>,
    pub(crate) text: String,
    pub(crate) errors: Vec<String>,
}

impl Document {
    pub(crate) fn parse(html: &str) -> Self {
        let dom = parse_document(RcDom::default(), ParseOpts::default()).one(html);
        let errors = dom.errors.borrow().iter().map(ToString::to_string).collect();
        let mut document = Self { errors, ..Self::default() };
        let mut open = vec![dom.document.clone()];
        while let Some(node) = open.pop() {
            document.add(&node);
            open.extend(node.children.borrow().iter().rev().cloned());
        }
        document
    }

    fn add(&mut self, node: &Handle) {
        match &node.data {
            NodeData::Element { name, attrs, .. } => {
                let attributes = attrs.borrow();
                let attributes =
                    attributes.iter().map(|attr| (attr.name.local.to_string(), attr.value.to_string()));
                self.elements
                    .push(Element { name: name.local.to_string(), attributes: attributes.collect() });
            }
            NodeData::Text { contents } => {
                self.text.push_str(&contents.borrow());
                self.text.push(' ');
            }
            _ => {}
        }
    }

    /// The elements of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.elements.iter().filter(move |element| element.name == name)
    }

    /// The page's title.
    pub(crate) fn title(html: &str) -> &str {
        html.split_once("<title>")
            .and_then(|(_, rest)| rest.split_once("</title>"))
            .map_or("", |(title, _)| title)
    }

    /// The targets of links, in order.
    pub(crate) fn links(&self) -> Vec<String> {
        self.all("a").filter_map(|link| link.get("href")).map(str::to_owned).collect()
    }
}
