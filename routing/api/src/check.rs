//! Online check: compares a registry with the chains, for `cairn route check --online`.
//!
//! The check covers channels (both ends open and naming each other; client active and of the right chain), bridges
//! (existing, and named by the rollup), denomination traces (their hashes equal the denominations), contracts, and
//! wrapper pairs. A chain that does not answer is a finding too.

use registry::denom;
use registry::facts::PairState;
use registry::{AssetRef, Bridge, Chain, ChainKind, Channel, End, Facts, Origin, Registry};
use serde_json::Value;
use tracker::ChainClients;

use crate::refresh::{self, ChainFact, ChannelStatus, Queried, text};

/// A difference between registry and chains, or a failed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Part of the registry.
    pub part: String,
    /// Reason.
    pub what: String,
    /// Whether the chain did not answer; `false` if its answer differs.
    pub unreachable: bool,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.part, self.what)
    }
}

/// Queries all chains; the findings are sorted by part and reason.
pub async fn online(clients: &ChainClients, registry: &Registry) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut add = |part: &str, outcome: Result<Vec<String>, String>| {
        let unreachable = outcome.is_err();
        let reasons = outcome.unwrap_or_else(|reason| vec![reason]);
        findings.extend(reasons.into_iter().map(|what| Finding { part: part.to_owned(), what, unreachable }));
    };
    for Queried { part, outcome } in refresh::query_all(clients, registry).await {
        add(&part, outcome.map(|fact| contradictions(registry, fact)));
    }
    for (asset, about) in registry.assets() {
        let of_cosmos = registry[about.chain].kind == ChainKind::Cosmos;
        let outcome = match about.origin {
            Origin::Ibc { .. } if of_cosmos => trace(clients, registry, asset).await,
            Origin::Bridged { .. } => base(clients, registry, asset).await,
            _ => Ok(None),
        };
        let part = format!("asset {} of {}", about.denom, registry[about.chain].id);
        add(&part, outcome.map(Vec::from_iter));
    }
    for (_, bridge) in registry.bridges() {
        let outcome = rollup(clients, registry, bridge).await;
        add(&format!("bridge {}", bridge.id), outcome.map(Vec::from_iter));
    }
    findings.sort_by(|a, b| (&a.part, &a.what).cmp(&(&b.part, &b.what)));
    findings
}

/// Differences between a chain fact and the registry.
fn contradictions(registry: &Registry, fact: ChainFact) -> Vec<String> {
    match fact {
        ChainFact::Channel(end, status) => channel_contradictions(registry, &end, &status),
        ChainFact::Bridge(_, facts) if facts.disabled => vec!["it is disabled on the L1".to_owned()],
        ChainFact::NoBridge(reason) => vec![reason],
        ChainFact::Contract(_, _, None) => vec!["the chain has no ERC-20 for it".to_owned()],
        ChainFact::Contract(chain, denom, Some(contract)) => {
            let asset = registry.chain(&chain).and_then(|chain| registry.asset(chain, &denom));
            let files = asset.and_then(|asset| registry[asset].contract.as_deref());
            let other = files.filter(|files| !files.eq_ignore_ascii_case(&contract));
            let what = |files| format!("the chain says that its ERC-20 is {contract}, the registry {files}");
            other.map(what).into_iter().collect()
        }
        ChainFact::Wrapper(made, new) => {
            let Some(pair) = registry.wrapper_pair(made) else { return Vec::new() };
            let mut facts = Facts::default();
            facts.wrappers.insert(Facts::wrapper_key(registry, &pair), new);
            match facts.pair(registry, &pair) {
                PairState::Contradicted(reason) => vec![reason],
                PairState::Unknown | PairState::Confirmed => Vec::new(),
            }
        }
        ChainFact::Forwards(chain, forwards) => {
            let listed = registry.chain(&chain).is_some_and(|chain| registry[chain].forwards);
            let what = "the list has it as a chain that forwards packets, and it has no such module";
            (listed && !forwards).then(|| what.to_owned()).into_iter().collect()
        }
        ChainFact::Bridge(..) | ChainFact::Migration(..) | ChainFact::Hooks(..) => Vec::new(),
    }
}

fn channel_contradictions(registry: &Registry, end: &End, status: &ChannelStatus) -> Vec<String> {
    let mut found = Vec::from_iter(status.trouble(&registry[end.chain].id, &end.channel));
    let here = |channel: &&Channel| channel.a == *end || channel.b == *end;
    let channel = registry.channels().map(|(_, channel)| channel).find(here);
    let Some(far) = channel.and_then(|channel| channel.beyond(end.chain)) else { return found };
    let (port, channel) = &status.counterparty;
    if status.state == "STATE_OPEN" && (port, channel) != (&far.port, &far.channel) {
        let (far_port, far_channel) = (&far.port, &far.channel);
        found.push(format!("its other end is {port}/{channel}, the registry says {far_port}/{far_channel}"));
    }
    let id = &registry[far.chain].id;
    if !status.client_chain.is_empty() && status.client_chain != *id {
        found.push(format!("its client is of chain {}, the registry says {id}", status.client_chain));
    }
    found
}

/// The chain's own trace of `ibc/<hash>`.
async fn trace(
    clients: &ChainClients,
    registry: &Registry,
    asset: AssetRef,
) -> Result<Option<String>, String> {
    let about = &registry[asset];
    // An asset on its chain of origin has no hash.
    let Some(hash) = about.denom.strip_prefix("ibc/") else { return Ok(None) };
    let path = path(clients, &registry[about.chain], hash).await?;
    let same = |path: &String| path == registry.path(asset) && denom::of_path(path) == about.denom;
    // A voucher without holders has no trace.
    let other = path.filter(|path| !same(path));
    Ok(other.map(|path| format!("the chain says its path is {path}, the registry {}", registry.path(asset))))
}

/// The path of a voucher. ibc-go v9 renamed the query, so both names are tried.
async fn path(clients: &ChainClients, chain: &Chain, hash: &str) -> Result<Option<String>, String> {
    let old = refresh::get(clients, chain, &format!("/ibc/apps/transfer/v1/denom_traces/{hash}")).await;
    if let Ok(Some(old)) = &old {
        let (path, base) = (text(old, "/denom_trace/path")?, text(old, "/denom_trace/base_denom")?);
        return Ok(Some(format!("{path}/{base}")));
    }
    let new = refresh::get(clients, chain, &format!("/ibc/apps/transfer/v1/denoms/{hash}")).await;
    // A chain that has only the old query answered it.
    let Some(new) = (if old.is_ok() { new.unwrap_or(None) } else { new? }) else { return Ok(None) };
    let mut parts = Vec::new();
    for hop in new.pointer("/denom/trace").and_then(Value::as_array).into_iter().flatten() {
        parts.extend([text(hop, "/port_id")?, text(hop, "/channel_id")?]);
    }
    parts.push(text(&new, "/denom/base")?);
    Ok(Some(parts.join("/")))
}

/// The rollup's own base denomination of `l2/<hash>`.
async fn base(
    clients: &ChainClients,
    registry: &Registry,
    asset: AssetRef,
) -> Result<Option<String>, String> {
    let about = &registry[asset];
    let Origin::Bridged { parent, .. } = about.origin else { return Ok(None) };
    let path = format!("/opinit/opchild/v1/base_denom?denom={}", refresh::escaped(&about.denom));
    let answer = match refresh::get(clients, &registry[about.chain], &path).await {
        // The denomination has no deposit yet.
        Err(reason) if reason.contains("not from L1") => None,
        answer => answer?,
    };
    let Some(answer) = answer else { return Ok(None) };
    let base = text(&answer, "/base_denom").or_else(|_| text(&answer, "/denom"))?;
    let parent = &registry[parent].denom;
    Ok((base != *parent).then(|| format!("the rollup says it is {base} of the L1, the registry {parent}")))
}

/// The rollup's own bridge configuration.
async fn rollup(
    clients: &ChainClients,
    registry: &Registry,
    bridge: &Bridge,
) -> Result<Option<String>, String> {
    let (l1, l2) = (&registry[bridge.l1], &registry[bridge.l2]);
    let Some(answer) = refresh::get(clients, l2, "/opinit/opchild/v1/bridge_info").await? else {
        return Ok(Some(format!("{} says that it has none", l2.id)));
    };
    let (id, chain) = (text(&answer, "/bridge_info/bridge_id")?, text(&answer, "/bridge_info/l1_chain_id")?);
    let same = id == bridge.id.to_string() && chain == l1.id;
    Ok((!same).then(|| format!("{} says that it hangs on bridge {id} of {chain}", l2.id)))
}
