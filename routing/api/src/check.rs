//! Online check: compares a registry with the chains, for `cairn route check --online`.
//!
//! The check covers chains (id and address prefix of the node), channels (both ends open and naming each other; client
//! active and of the right chain), bridges (existing, named by the rollup, with the periods and migrations of the files),
//! denomination traces (their hashes equal the denominations), contracts, decimals of ERC-20 tokens, wrapper pairs, and OFT
//! contracts with their counterparts. A chain that does not answer is a finding too.

mod contracts;

use registry::denom;
use registry::facts::{BridgeFacts, PairState};
use registry::{AssetRef, Bridge, Chain, ChainKind, Channel, End, Facts, Origin, Registry};
use registry::{FINALIZATION_SECONDS, SUBMISSION_SECONDS};
use serde_json::Value;
use tracker::ChainClients;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};

use crate::refresh::{self, CONCURRENCY, ChainFact, ChannelStatus, Queried, text};

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
    let mut queries = stream::iter(queries(clients, registry)).buffer_unordered(CONCURRENCY);
    while let Some((part, outcome)) = queries.next().await {
        add(&part, outcome);
    }
    drop(queries);
    findings.sort_by(|a, b| (&a.part, &a.what).cmp(&(&b.part, &b.what)));
    findings
}

type Outcome = (String, Result<Vec<String>, String>);

/// Queries about claims that no chain fact covers.
fn queries<'a>(clients: &'a ChainClients, registry: &'a Registry) -> Vec<BoxFuture<'a, Outcome>> {
    let mut queries: Vec<BoxFuture<'a, Outcome>> = Vec::new();
    for (_, chain) in registry.chains() {
        queries.push(Box::pin(async { (format!("chain {}", chain.id), identity(clients, chain).await) }));
    }
    for (asset, about) in registry.assets() {
        let is_cosmos = registry[about.chain].kind == ChainKind::Cosmos;
        queries.push(Box::pin(async move {
            let outcome = match about.origin {
                Origin::Ibc { .. } if is_cosmos => trace(clients, registry, asset).await,
                Origin::Bridged { .. } => base(clients, registry, asset).await,
                _ => contracts::decimals(clients, registry, about).await,
            };
            let part = format!("asset {} of {}", about.denom, registry[about.chain].id);
            (part, outcome.map(Vec::from_iter))
        }));
    }
    for (_, bridge) in registry.bridges() {
        queries.push(Box::pin(async {
            let outcome = rollup(clients, registry, bridge).await;
            (format!("bridge {}", bridge.id), outcome.map(Vec::from_iter))
        }));
    }
    for (_, oft) in registry.ofts() {
        for leg in &oft.legs {
            queries.push(Box::pin(async {
                let chain = &registry[registry[leg.asset].chain].id;
                let part = format!("oft {}, contract {} of {chain}", oft.symbol, leg.contract);
                (part, contracts::leg(clients, registry, oft, leg).await)
            }));
        }
    }
    queries
}

/// Compares the node's chain id and address prefix with the registry.
async fn identity(clients: &ChainClients, chain: &Chain) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    if chain.kind == ChainKind::Evm {
        let clients = clients.of(chain);
        let evm = clients.evm().map_err(|error| error.to_string())?;
        let id = evm.chain_id().await.map_err(|error| error.to_string())?.to_string();
        return Ok((id != chain.id).then(|| format!("its node is of chain {id}")).into_iter().collect());
    }
    if let Some(info) = refresh::get(clients, chain, "/cosmos/base/tendermint/v1beta1/node_info").await? {
        let id = text(&info, "/default_node_info/network")?;
        found.extend((id != chain.id).then(|| format!("its node is of chain {id}")));
    }
    if let Some(answer) = refresh::get(clients, chain, "/cosmos/auth/v1beta1/bech32").await? {
        let (prefix, expected) = (text(&answer, "/bech32_prefix")?, &chain.bech32_prefix);
        let differs = prefix != *expected;
        found.extend(
            differs.then(|| format!("its addresses begin with {prefix}, the registry says {expected}")),
        );
    }
    Ok(found)
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
        ChainFact::Bridge(bridge, facts) => period_contradictions(&registry[bridge], &facts),
        ChainFact::Migration(bridge, denom, to) => {
            let files = registry[bridge].migrated.iter().find(|(other, _)| *other == denom);
            let files = files.and_then(|(_, channel)| registry[*channel].on(registry[bridge].l1));
            let files = files.map(|end| (end.port.clone(), end.channel.clone()));
            let name = |end: &Option<(String, String)>| {
                end.as_ref().map_or("no channel".to_owned(), |(port, channel)| format!("{port}/{channel}"))
            };
            // A migration that only the chain has is used without the files.
            let differs = files.is_some() && files != to;
            let what =
                || format!("{denom} was migrated to {}, the registry says {}", name(&to), name(&files));
            differs.then(what).into_iter().collect()
        }
        ChainFact::Adapters(_, found) if found.len() > 1 => vec![format!(
            "its list of hooks has several swap adapters, name one as `adapter` of the venue: {}",
            found.join(", ")
        )],
        ChainFact::Hooks(..) | ChainFact::Adapters(..) => Vec::new(),
    }
}

/// Differences of the periods. A period that the files leave out is not compared.
fn period_contradictions(bridge: &Bridge, facts: &BridgeFacts) -> Vec<String> {
    let periods = [
        ("finalization", facts.finalization_seconds, bridge.finalization_seconds, FINALIZATION_SECONDS),
        ("submission", facts.submission_seconds, bridge.submission_seconds, SUBMISSION_SECONDS),
    ];
    let differs = |(name, chain, files, default): (&str, Option<u64>, u64, u64)| {
        let chain = chain.filter(|chain| *chain != files && files != default)?;
        Some(format!("its {name} period is {chain} s on the L1, the registry says {files} s"))
    };
    periods.into_iter().filter_map(differs).collect()
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
