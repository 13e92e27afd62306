//! Shared state of the pages: in-process reads of both APIs, and the catch-up rate.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use chain::Account;
use http::Method;
use query::Indexer;
use serde::de::DeserializeOwned;
use serde_json::Value;
use web::app::App;
use web::call::Call;
use web::http_error::HttpError;
use web::limits::share::Share;

use crate::activity::{LastActivity, LastPeriods};
use crate::contracts::{CallError, Contracts, StateCall};
use crate::media::Media;
use crate::routing::{Routing, Unit};
use crate::target::encoded;
use crate::units::{Units, unit_of};
use query::v1::{GetLedgerTokenResponse, GetStatusResponse, InternalTx};

/// The height of the chain according to the node; `None` if it is not known.
pub type Head = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// Samples of the height for the catch-up rate: one a second for a minute.
const SAMPLES: usize = 60;
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Maximum bytes of a response that a page shows: parsed, it takes several times as many.
const MAX_SHOWN: usize = 16 << 20;

/// What the pages of an index read beside it.
pub struct Inputs {
    /// The routing service, if there are pages of it.
    pub routing: Option<Arc<dyn Routing>>,
    /// The height of the chain according to the node.
    pub head: Head,
    /// What explains contracts and EVM transactions.
    pub contracts: Option<Arc<dyn Contracts>>,
    /// The prefix of the paths that clients see, such as `/c/rollup-1`, or empty.
    pub base: String,
    /// Which images of NFTs are shown.
    pub media: Media,
}

/// The state of the pages.
pub struct Explorer {
    /// `None` without an index. Weak, because the app of the index owns the pages.
    index: Option<OnceLock<Weak<App<Indexer>>>>,
    routing: Option<Arc<dyn Routing>>,
    head: Head,
    contracts: Option<Arc<dyn Contracts>>,
    /// Chain id and version, read at the start.
    about: GetStatusResponse,
    /// Prefix of bech32 addresses.
    prefix: String,
    is_evm: bool,
    /// Times and heights of recent overviews, oldest first.
    samples: Mutex<VecDeque<(Instant, u64)>>,
    /// Prefix of the paths of this server, such as `/c/rollup-1`; empty without one.
    base: String,
    media: Media,
    units: Units,
    activity: LastActivity,
}

impl Explorer {
    pub(crate) fn over_index(index: &App<Indexer>, inputs: Inputs) -> Result<Self, HttpError> {
        let about = parse(&index.read("/status")?.body)?;
        let (prefix, is_evm) = (index.state().prefix().to_owned(), index.state().is_evm());
        Ok(Self { index: Some(OnceLock::new()), prefix, is_evm, ..Self::new(inputs, about) })
    }

    pub(crate) fn over_routing(routing: Arc<dyn Routing>, version: &str) -> Self {
        let about = GetStatusResponse { version: version.to_owned(), ..GetStatusResponse::default() };
        let (head, base, media) = (Arc::new(|| None), String::new(), Media::None);
        Self::new(Inputs { routing: Some(routing), head, contracts: None, base, media }, about)
    }

    /// Without an index.
    fn new(inputs: Inputs, about: GetStatusResponse) -> Self {
        let Inputs { routing, head, contracts, base, media } = inputs;
        let (index, prefix, is_evm) = (None, String::new(), false);
        let (samples, units, activity) = Default::default();
        Self { index, routing, head, contracts, about, prefix, is_evm, samples, base, media, units, activity }
    }

    /// Prefix of the paths of this server; empty without one.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Which images of NFTs are shown.
    pub(crate) fn media(&self) -> &Media {
        &self.media
    }

    /// Sets the app of the index, which owns the pages.
    pub(crate) fn attach(&self, app: &Arc<App<Indexer>>) {
        if let Some(index) = &self.index {
            // It is called once; a second call would set the same app.
            drop(index.set(Arc::downgrade(app)));
        }
    }

    /// The response of the indexer API to `GET target`.
    pub(crate) fn read<T: DeserializeOwned>(&self, target: &str) -> Result<T, HttpError> {
        parse(&self.read_bytes(target)?)
    }

    pub(crate) fn index(&self) -> Result<Arc<App<Indexer>>, HttpError> {
        let index = self.index.as_ref().and_then(|index| index.get()?.upgrade());
        index.ok_or_else(|| HttpError::not_found("this service has no index"))
    }

    /// What explains an EVM transaction; null if nothing does.
    pub(crate) fn decoded(&self, hash: &str) -> Result<Value, HttpError> {
        let Some(contracts) = &self.contracts else { return Ok(Value::Null) };
        Ok(contracts.tx(self.index()?.state(), hash)?.unwrap_or_default())
    }

    /// What explains the calls of a transaction; empty if nothing does.
    pub(crate) fn explained(&self, calls: &[InternalTx]) -> Vec<Value> {
        self.contracts.as_ref().map(|contracts| contracts.calls(calls)).unwrap_or_default()
    }

    /// What is known of a contract: see [`Contracts::contract`].
    pub(crate) fn contract(&self, address: &[u8; 20]) -> Option<Result<Value, String>> {
        self.contracts.as_ref()?.contract(address)
    }

    /// As [`Self::contract`], read in the share of a client.
    pub(crate) async fn contract_later(
        &self,
        share: Option<&Share>,
        address: [u8; 20],
    ) -> Result<Option<Result<Value, String>>, HttpError> {
        let Some(contracts) = self.contracts.clone() else { return Ok(None) };
        let job = move || contracts.contract(&address);
        match share {
            Some(share) => share.run(job).await,
            None => Ok(job()),
        }
    }

    /// True if the state of contracts can be read.
    pub(crate) fn has_state(&self) -> bool {
        self.contracts.as_ref().is_some_and(|contracts| contracts.has_state())
    }

    /// The results of calls to a node, which count as requests of the client.
    pub(crate) async fn state(
        &self,
        call: &Call<'_>,
        calls: Vec<StateCall>,
    ) -> Result<Vec<Result<Value, CallError>>, HttpError> {
        let Some(contracts) = &self.contracts else { return Ok(Vec::new()) };
        if let Some(share) = call.share() {
            share.charge(u32::try_from(calls.len()).unwrap_or(u32::MAX));
        }
        Ok(contracts.state(self.index()?.state(), calls).await)
    }

    /// What is known of contracts.
    pub(crate) fn contracts(&self) -> Option<&Arc<dyn Contracts>> {
        self.contracts.as_ref()
    }

    /// As [`Self::read`], not parsed.
    pub(crate) fn read_bytes(&self, target: &str) -> Result<Vec<u8>, HttpError> {
        let index = self.index()?;
        let body = index.read(target)?.body;
        if body.len() > MAX_SHOWN {
            return Err(HttpError::not_implemented(format!(
                "this has {} bytes as JSON, more than the {MAX_SHOWN} that a page shows: read {target}",
                body.len()
            )));
        }
        Ok(body.to_vec())
    }

    /// The response of the routing API.
    pub(crate) async fn route<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &str,
        body: &[u8],
    ) -> Result<T, HttpError> {
        self.route_for(None, method, target, body).await
    }

    /// As [`Self::route`], within the limits of a client.
    pub(crate) async fn route_for<T: DeserializeOwned>(
        &self,
        client: Option<IpAddr>,
        method: Method,
        target: &str,
        body: &[u8],
    ) -> Result<T, HttpError> {
        let none = || HttpError::not_found("this service has no routes: set `route.registry`");
        let routing = self.routing.as_ref().ok_or_else(none)?;
        parse(&routing.request(method, target, body, client).await?.body)
    }

    /// True if there are pages of the index.
    pub(crate) fn has_index(&self) -> bool {
        self.index.is_some()
    }

    /// True if there are pages of routes.
    pub(crate) fn has_routes(&self) -> bool {
        self.routing.is_some()
    }

    /// True if the chain has EVM transactions.
    pub(crate) fn is_evm(&self) -> bool {
        self.is_evm
    }

    /// Prefix of bech32 addresses.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// True for a usual form of an address: bech32 of this chain, or `0x` and the digits of 20 bytes.
    pub(crate) fn is_account(&self, text: &str) -> bool {
        let is_hex = text.len() == 42 && Account::from_hex_literal(text).is_some();
        is_hex || Account::from_bech32(text, self.prefix()).is_some()
    }

    /// True for any form of an address but hex without `0x` of another length than 20 bytes: a name such as `beef` is
    /// rather a collection's.
    pub(crate) fn names_account(&self, text: &str) -> bool {
        let is_hex = text.len() == 40 || text.starts_with("0x") || text.starts_with("0X");
        Account::from_bech32(text, self.prefix()).is_some()
            || is_hex && Account::parse(text, self.prefix()).is_some()
    }

    /// The chain's id; empty without an index.
    pub(crate) fn chain_id(&self) -> &str {
        &self.about.chain_id
    }

    /// The program's version.
    pub(crate) fn version(&self) -> &str {
        &self.about.version
    }

    /// The height of the chain according to the node.
    pub(crate) fn head(&self) -> Option<u64> {
        (self.head)()
    }

    /// The display unit of a denom of this chain: that of the registry, else what the token says of itself. A symbol that no registry lists
    /// proves nothing, so an amount has its denom as its title.
    pub(crate) fn unit(&self, denom: &str) -> Option<Unit> {
        self.unit_on(self.chain_id(), denom).or_else(|| self.units.get(denom, || self.said_unit(denom)))
    }

    /// `None` if the index does not know the token.
    fn said_unit(&self, denom: &str) -> Option<Unit> {
        if denom.is_empty() || !self.has_index() {
            return None;
        }
        let target = format!("/indexer/ledger/v1/tokens/{}", encoded(denom));
        let token = self.read::<GetLedgerTokenResponse>(&target).ok()?.token?;
        unit_of(token.symbol, token.decimals)
    }

    /// The display unit of a denom of any chain, if the registry has it.
    pub(crate) fn unit_on(&self, chain: &str, denom: &str) -> Option<Unit> {
        self.routing.as_ref()?.unit(chain, denom)
    }

    /// What the chain did in the last hours and days up to the block `height`, the last one.
    pub(crate) fn activity(&self, height: u64) -> Result<Arc<LastPeriods>, HttpError> {
        self.activity.at(height, self.index()?.state())
    }

    /// Blocks a second since the oldest sample, to which `height` is added; `None` until the samples span a second.
    pub(crate) fn rate(&self, height: u64) -> Option<f64> {
        // A panic leaves the samples as they were.
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if samples.back().is_none_or(|(at, _)| now.duration_since(*at) >= SAMPLE_EVERY) {
            samples.push_back((now, height));
        }
        let too_old = |(at, _): &(Instant, u64)| now.duration_since(*at) > SAMPLE_EVERY * 60;
        while samples.len() > SAMPLES || samples.front().is_some_and(too_old) {
            samples.pop_front();
        }
        let (at, from) = samples.front()?;
        let elapsed = now.duration_since(*at);
        // Real heights are below 2^53.
        #[expect(clippy::cast_precision_loss)]
        let grown = height.saturating_sub(*from) as f64;
        (elapsed >= SAMPLE_EVERY).then(|| grown / elapsed.as_secs_f64())
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, HttpError> {
    serde_json::from_slice(body).map_err(|error| HttpError::internal(format!("reading a response: {error}")))
}
