//! What a node answers, as a pure function of a recording, the height that is shown, and a request.
//!
//! Must hold: an answer is the recorded text or follows from it exactly; a question without either is answered by a
//! loud error and counted, never by a guess; heights above the shown one do not exist.

mod comet;
mod envelope;
mod eth;
mod gateway;
mod rest;

use bytes::Bytes;
use http::{Request, StatusCode};

use crate::recording::Recording;
use crate::tally::Tally;

/// The three services of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// `CometBFT` RPC.
    Comet,
    /// The Cosmos REST gateway.
    Rest,
    /// The EVM's JSON-RPC.
    JsonRpc,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 3] = [Self::Comet, Self::Rest, Self::JsonRpc];

    /// The name used on the command line and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comet => "comet",
            Self::Rest => "rest",
            Self::JsonRpc => "json-rpc",
        }
    }
}

/// What one request sees of a recording.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The recorded chain.
    pub recording: &'a Recording,
    /// The height of the tip; heights above it do not exist.
    pub shown: u64,
    /// The EVM index lags: receipts of the tip and below are `null`.
    pub null_receipts: bool,
    /// The tip is stored and not executed yet: it has no results, as a node has it for a moment in every block.
    pub no_results: bool,
    /// Where calls and missing questions are counted.
    pub tally: &'a Tally,
}

/// An answer: always JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body; empty only for a method that is not allowed.
    pub body: Bytes,
}

impl Answer {
    pub(crate) fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into() }
    }
}

/// Answers a request to a service.
pub fn answer(service: Service, view: View<'_>, request: &Request<Bytes>) -> Answer {
    match service {
        Service::Comet => comet::answer(view, request),
        Service::Rest => rest::answer(view, request),
        Service::JsonRpc => eth::answer(view, request),
    }
}
