//! Comparison of a registry, its plans and their messages with what the files state.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::{Account, U256};
use messages::{BuildRequest, Tx, transactions};
use planner::{Graph, Plan, Quotes, Request, World, plan};
use registry::{AssetRef, Facts, Loaded, OftRef, Problem, Registry, Severity};
use serde_json::Value;

use super::lists::{End, Lists, Step, Token};
use crate::support::NOW;

/// The reason of a case that the files state in two ways.
const CONTRADICTED: &str = "the files contradict themselves, which is reported";

/// Cases of one kind.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) asked: usize,
    pub(super) exact: usize,
    /// Reasons why there is no reply, with their number and one case.
    pub(super) reasons: BTreeMap<String, (usize, String)>,
    /// Replies that differ.
    pub(super) wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, case: impl fmt::Debug, outcome: Result<(), Miss>) {
        self.asked += 1;
        let case = format!("{case:?}");
        match outcome {
            Ok(()) => self.exact += 1,
            Err(Miss::NoAnswer(reason)) => {
                self.reasons.entry(reason).or_insert((0, case)).0 += 1;
            }
            Err(Miss::Wrong(what)) => self.wrong.push(format!("{case}: {what}")),
        }
    }

    /// Share of exact answers; closed channels and contradictions do not count.
    pub(super) fn share(&self) -> f64 {
        let is_right = |reason: &str| reason.contains("paused") || reason == CONTRADICTED;
        let counts = self.reasons.iter().filter(|(reason, _)| is_right(reason)).map(|(_, (count, _))| count);
        let apart: usize = counts.sum();
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let share = self.exact as f64 / (self.asked - apart).max(1) as f64;
        share
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} exact, {:.2} %", self.exact, self.asked, self.share() * 100.0)?;
        for (reason, (count, case)) in &self.reasons {
            write!(f, "\n  {count} × {reason}, as {case}")?;
        }
        self.wrong.iter().try_for_each(|wrong| write!(f, "\n  WRONG {wrong}"))
    }
}

enum Miss {
    NoAnswer(String),
    Wrong(String),
}

/// The registry under test.
pub(super) struct Subject {
    registry: Registry,
    graph: Graph,
    problems: Vec<Problem>,
}

struct NoQuotes;

impl Quotes for NoQuotes {
    fn quote(&self, _: OftRef, _: usize, _: usize, _: U256) -> Option<registry::facts::Quote> {
        None
    }
}

impl Subject {
    pub(super) fn new(Loaded { registry, mut problems, .. }: Loaded) -> Self {
        problems.extend(registry::check::check(&registry));
        Self { graph: Graph::new(&registry), registry, problems }
    }

    /// Errors of `route check`.
    pub(super) fn errors(&self) -> impl Iterator<Item = String> {
        let errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        errors.map(ToString::to_string)
    }

    pub(super) fn metadata(&self, lists: &Lists) -> Tally {
        let mut tally = Tally::default();
        for (token, (symbol, decimals)) in &lists.assets {
            let outcome = self.asset(token).and_then(|asset| {
                let about = &self.registry[asset];
                expect(&(symbol.as_str(), *decimals), &(about.symbol.as_str(), u64::from(about.decimals)))
            });
            tally.add(token, outcome);
        }
        tally
    }

    pub(super) fn traces(&self, lists: &Lists) -> Tally {
        let mut tally = Tally::default();
        for (token, path) in &lists.paths {
            let outcome = self.asset(token).and_then(|asset| {
                expect(&path.as_str(), &self.registry.path(asset))?;
                let base = path.strip_prefix(&format!("{}/", self.registry.trace(asset)));
                // What remains has no hop, also by the rule of the files: no channel and no client.
                let rest = base.and_then(|base| base.split('/').nth(1)).unwrap_or_default();
                let is_hop = rest.starts_with("channel-") || rest.starts_with("08-wasm-");
                expect(&(true, false), &(base.is_some(), is_hop))?;
                let origin = self.registry.issued(asset);
                expect(&false, &(origin == Some(asset)))
            });
            tally.add(token, outcome);
        }
        tally
    }

    /// Each step there and back, in one hop.
    pub(super) fn one_hop(&self, steps: &[Step]) -> Tally {
        let mut tally = Tally::default();
        for step in steps {
            let Step { asset, end, parent, parent_end, .. } = step;
            // Both ends must be in the lists.
            if self.asset(parent).is_err() {
                continue;
            }
            if self.is_contradicted(step) {
                tally.add(step, Err(Miss::NoAnswer(CONTRADICTED.to_owned())));
                continue;
            }
            tally.add(step, self.route(asset, parent, &[end]));
            tally.add(("back", step), self.route(parent, asset, &[parent_end]));
        }
        tally
    }

    /// Whether the files contradict themselves about a step, or other files about the parent's end of its channel. Both
    /// are reported as problems.
    fn is_contradicted(&self, step: &Step) -> bool {
        let registry = &self.registry;
        let other = registry.chain(&step.asset.0).and_then(|here| {
            let channel = registry.channel_at(here, &step.end.0, &step.end.1)?;
            registry[channel].on(registry.chain(&step.parent.0)?)
        });
        let stale = other.is_some_and(|end| end.channel != step.parent_end.1);
        let (named, other_end) = (&step.asset.1, &step.parent_end.1);
        let is_reported = |problem: &Problem| {
            let what = problem.to_string();
            what.contains(named) || stale && what.contains(other_end)
        };
        (stale || !step.is_sound) && self.problems.iter().any(is_reported)
    }

    pub(super) fn gas_coins(&self, lists: &Lists) -> Tally {
        let mut tally = Tally::default();
        for (coin, end, voucher) in &lists.gas_coins {
            tally.add((coin, end, voucher), self.route(coin, voucher, &[end]));
        }
        tally
    }

    /// Each two vouchers of one parent: back over the one's channel and out over the other's.
    pub(super) fn vouchers(&self, lists: &Lists) -> Tally {
        let mut tally = Tally::default();
        for one in &lists.steps {
            let is_other = |other: &&Step| other.parent == one.parent && other.asset.0 != one.asset.0;
            if self.is_contradicted(one) || self.asset(&one.parent).is_err() {
                continue;
            }
            for other in lists.steps.iter().filter(is_other).filter(|other| !self.is_contradicted(other)) {
                let outcome = self.route(&one.asset, &other.asset, &[&one.end, &other.parent_end]);
                tally.add((&one.asset, &other.asset), outcome);
            }
        }
        tally
    }

    fn asset(&self, (chain, denom): &Token) -> Result<AssetRef, Miss> {
        let chain =
            self.registry.chain(chain).ok_or_else(|| Miss::NoAnswer("the chain is in no list".to_owned()))?;
        self.registry.asset(chain, denom).ok_or_else(|| Miss::NoAnswer("the asset is in no list".to_owned()))
    }

    /// The best plan in one transaction, which must send over these ends, and its message.
    fn route(&self, from: &Token, to: &Token, ends: &[&End]) -> Result<(), Miss> {
        let (source, target) = (self.asset(from)?, self.asset(to)?);
        let facts = Facts::default();
        let world = World { registry: &self.registry, facts: &facts, quotes: &NoQuotes };
        let amount_in = U256::from(10u8).pow(U256::from(24u8));
        let request = Request {
            from: source,
            to: target,
            amount_in,
            op_withdraw: false,
            multi_tx: false,
            op_hook: false,
            bridges: None,
        };
        let plans =
            plan(&self.graph, world, &request).map_err(|why| Miss::NoAnswer(short(&why.to_string())))?;
        let best = &plans[0];
        let taken: Vec<End> = best.hops.iter().filter_map(|hop| self.sending_end(hop)).collect();
        expect(&ends.iter().map(|end| (*end).clone()).collect::<Vec<_>>(), &taken)?;
        expect(&(amount_in, best.hops.len()), &(best.amount_out(), ends.len()))?;
        self.message(best, &facts, from, ends)
    }

    fn sending_end(&self, hop: &planner::Hop) -> Option<End> {
        let end = self.registry[hop.step.channel()?].on(self.registry[hop.from].chain)?;
        Some((end.port.clone(), end.channel.clone()))
    }

    fn message(&self, plan: &Plan, facts: &Facts, from: &Token, ends: &[&End]) -> Result<(), Miss> {
        let addresses: Vec<String> =
            plan.required_chains(&self.registry).into_iter().map(|chain| self.address(chain)).collect();
        let built = transactions(&BuildRequest {
            registry: &self.registry,
            facts,
            plan,
            addresses: &addresses,
            now_nanos: NOW,
            timeout_seconds: 300,
            slippage_percent: "0",
            signed_hook: None,
        });
        let built = built.map_err(|why| Miss::Wrong(why.to_string()))?;
        let [Tx::Cosmos { msgs, .. }] = &built.txs[..] else {
            return Err(Miss::Wrong("not one transaction".to_owned()));
        };
        let msg: Value = serde_json::from_str(&msgs[0].msg).unwrap();
        let receiver = addresses.last().unwrap();
        if let Some(contract) = ends[0].0.strip_prefix("wasm.") {
            let send = &msg["msg"]["send"];
            let inner = STANDARD.decode(send["msg"].as_str().unwrap_or_default()).unwrap_or_default();
            let inner: Value = serde_json::from_slice(&inner).unwrap_or_default();
            let token = format!("cw20:{}", msg["contract"].as_str().unwrap_or_default());
            expect(&(from.1.as_str(), contract), &(&*token, send["contract"].as_str().unwrap_or_default()))?;
            return expect(
                &[ends[0].1.as_str(), receiver],
                &["channel", "remote_address"].map(|key| inner[key].as_str().unwrap_or_default()),
            );
        }
        let sent = ["/source_port", "/source_channel", "/token/denom"]
            .map(|at| msg.pointer(at).and_then(Value::as_str));
        expect(&[Some(ends[0].0.as_str()), Some(&ends[0].1), Some(&from.1)], &sent)?;
        // One memo in the other, each with a receiver that is an address of its chain.
        let (mut arrives, mut memo) = (msg["receiver"].clone(), msg["memo"].clone());
        if let Some(text) = memo.as_str() {
            memo = serde_json::from_str(text).unwrap_or_default();
        }
        for (end, hop) in ends[1..].iter().zip(&plan.hops) {
            let forward = memo["forward"].take();
            let (between, text) = (self.registry[hop.to].chain, arrives.as_str().unwrap_or_default());
            messages::address::read(&self.registry, between, "receiver", text)
                .map_err(|why| Miss::Wrong(why.to_string()))?;
            expect(
                &(&*end.0, &*end.1),
                &(forward["port"].as_str().unwrap_or(""), forward["channel"].as_str().unwrap_or("")),
            )?;
            (arrives, memo) = (forward["receiver"].clone(), forward["next"].clone());
        }
        expect(&(receiver.as_str(), &Value::Null), &(arrives.as_str().unwrap_or_default(), &memo))
    }

    fn address(&self, chain: registry::ChainRef) -> String {
        Account::from([0x5b; 20]).to_bech32(&self.registry[chain].bech32_prefix)
    }
}

fn expect<T: PartialEq + fmt::Debug>(files: &T, ours: &T) -> Result<(), Miss> {
    if files == ours { Ok(()) } else { Err(Miss::Wrong(format!("the files {files:?}, ours {ours:?}"))) }
}

/// A reason without the names in it.
fn short(reason: &str) -> String {
    let is_name = |word: &&str| word.contains(['/', '-', '_']) || word.len() > 20 || word.contains("ibc");
    let words: Vec<&str> = reason.split(' ').map(|word| if is_name(&word) { "…" } else { word }).collect();
    words.join(" ").chars().take(120).collect()
}
