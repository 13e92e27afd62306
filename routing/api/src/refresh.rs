//! Refresh of chain facts: channels, clients, bridges, migrations, hooks, contracts, wrapper pairs.
//!
//! Each query has a timeout and fails independently; a failed query leaves the previous fact.

use std::collections::{HashMap, HashSet};

use futures_util::future::{BoxFuture, join};
use futures_util::stream::{self, StreamExt as _};
use node::Error;
use registry::facts::{BridgeFacts, PairState, WrapperFacts};
use registry::{AssetRef, BridgeRef, Chain, ChainKind, ChainRef, End, Facts, Origin, Pair, Registry};
use serde_json::Value;
use tracker::ChainClients;

use crate::pools;

mod hooks;

/// Concurrent queries.
pub(crate) const CONCURRENCY: usize = 16;

/// Result of the queries about one part of the registry.
pub(crate) struct Queried {
    /// The part, for logs and findings.
    pub(crate) part: String,
    /// The fact, or the reason why there is none.
    pub(crate) outcome: Result<ChainFact, String>,
}

/// One chain fact.
pub(crate) enum ChainFact {
    Channel(End, ChannelStatus),
    Bridge(BridgeRef, BridgeFacts),
    /// The L1 does not have the bridge; with the text of its error.
    NoBridge(String),
    /// By the denomination on the L1: port and channel there, if the coin was migrated.
    Migration(BridgeRef, String, Option<(String, String)>),
    /// The ERC-20 of a chain's denomination.
    Contract(String, String, Option<String>),
    Hooks(String, bool),
    /// The adapters on a chain's list of hooks.
    Adapters(String, Vec<String>),
    /// Whether a chain runs the packet forward middleware.
    Forwards(String, bool),
    /// By the token that the wrapper made.
    Wrapper(AssetRef, WrapperFacts),
}

/// State of a chain's end of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelStatus {
    /// `STATE_OPEN` if usable.
    pub(crate) state: String,
    /// (port, channel) of the other end.
    pub(crate) counterparty: (String, String),
    /// `Active` if usable.
    pub(crate) client_status: String,
    /// Chain id of the client.
    pub(crate) client_chain: String,
}

/// Queries all chains; a failed query keeps the fact of `before`. Also whether one failed.
pub async fn query_facts(clients: &ChainClients, registry: &Registry, before: &Facts) -> (Facts, bool) {
    let (mut facts, mut has_failed) = (before.clone(), false);
    for Queried { part, outcome } in query_all(clients, registry).await {
        match outcome {
            Ok(fact) => merge(registry, &mut facts, fact),
            Err(reason) => {
                has_failed = true;
                tracing::debug!(part, reason, "chain query failed");
            }
        }
    }
    log_pairs(registry, before, &facts);
    hooks::log_adapters(before, &facts);
    (facts, has_failed)
}

/// Logs each wrapper pair that a chain newly contradicts, or no longer contradicts.
fn log_pairs(registry: &Registry, before: &Facts, now: &Facts) {
    for (_, pair) in registry.wrapper_pairs() {
        let (before, now) = (before.pair(registry, &pair), now.pair(registry, &pair));
        let (local, remote) = (&registry[pair.local], &registry[pair.remote]);
        let (chain, local, remote) = (&registry[local.chain].id, &local.denom, &remote.denom);
        match now {
            _ if now == before => {}
            PairState::Contradicted(reason) => {
                tracing::warn!(chain, local, remote, reason, "wrapper pair contradicted, no route uses it");
            }
            PairState::Confirmed | PairState::Unknown => {
                tracing::info!(chain, local, remote, state = ?now, "wrapper pair");
            }
        }
    }
}

/// All facts, unordered.
pub(crate) async fn query_all(clients: &ChainClients, registry: &Registry) -> Vec<Queried> {
    let mut queries: Vec<BoxFuture<'_, Queried>> = Vec::new();
    for (_, channel) in registry.channels() {
        for end in [&channel.a, &channel.b] {
            let chain = &registry[end.chain];
            let part = format!("channel {}/{} of {}", end.port, end.channel, chain.id);
            queries.push(query(part, async move {
                query_channel(clients, chain, end).await.map(|status| ChainFact::Channel(end.clone(), status))
            }));
        }
    }
    for (reference, bridge) in registry.bridges() {
        let (l1, id) = (&registry[bridge.l1], bridge.id);
        queries.push(query(format!("bridge {id}"), async move {
            match query_bridge(clients, l1, id).await {
                // The L1 answers an unknown bridge with HTTP 500, not 404 (recorded pair, README).
                Err(reason) if reason.contains("not found") => Ok(ChainFact::NoBridge(reason)),
                outcome => outcome.map(|facts| ChainFact::Bridge(reference, facts)),
            }
        }));
    }
    let mut wrapped: HashSet<AssetRef> = HashSet::new();
    for (made, pair) in registry.wrapper_pairs() {
        wrapped.extend([pair.remote, pair.local]);
        let asset = &registry[made];
        let part = format!("wrapper of {} of {}", asset.denom, registry[asset.chain].id);
        queries.push(query(part, async move {
            query_wrapper(clients, registry, &pair).await.map(|facts| ChainFact::Wrapper(made, facts))
        }));
    }
    for (reference, asset) in registry.assets() {
        let (chain, denom) = (&registry[asset.chain], &asset.denom);
        if let Origin::Bridged { bridge, parent } = asset.origin {
            let l1_denom = &registry[parent].denom;
            let part = format!("bridge {}, migration of {l1_denom}", registry[bridge].id);
            queries.push(query(part, async move {
                let to = query_migration(clients, registry, asset.chain, denom).await?;
                Ok(ChainFact::Migration(bridge, l1_denom.clone(), to))
            }));
        }
        if chain.vm == chain::Vm::Evm
            && chain.kind == ChainKind::Cosmos
            && wrapped.contains(&reference)
            && !denom.starts_with("evm/")
        {
            queries.push(query(format!("asset {denom} of {}", chain.id), async move {
                let contract = query_contract(clients, chain, denom).await?;
                Ok(ChainFact::Contract(chain.id.clone(), denom.clone(), contract))
            }));
        }
    }
    for (_, chain) in registry.chains() {
        // Chains of Initia have no upgrade module, and all have the middleware.
        let has_rest = chain.kind == ChainKind::Cosmos && !chain.endpoints.rest.is_empty();
        if has_rest && !chain.initia && !chain.forwards_given {
            queries.push(query(format!("forwarding of {}", chain.id), async move {
                query_forwarding(clients, chain)
                    .await
                    .map(|forwards| ChainFact::Forwards(chain.id.clone(), forwards))
            }));
        }
    }
    for (reference, chain) in registry.chains() {
        let adapter = registry.adapter(reference);
        let wrapper = registry.assets().find_map(|(_, asset)| match &asset.origin {
            Origin::Wrapped { contract, .. } if asset.chain == reference => Some(contract.as_str()),
            _ => None,
        });
        if let Some(called) = wrapper.or(adapter) {
            queries.push(query(format!("hooks of {}", chain.id), async move {
                hooks::are_allowed(clients, chain, called)
                    .await
                    .map(|is_allowed| ChainFact::Hooks(chain.id.clone(), is_allowed))
            }));
        } else if pools::has_pools(registry, reference) {
            queries.push(query(format!("adapter of {}", chain.id), async move {
                hooks::adapters(clients, chain)
                    .await
                    .map(|found| ChainFact::Adapters(chain.id.clone(), found))
            }));
        }
    }
    stream::iter(queries).buffer_unordered(CONCURRENCY).collect().await
}

fn query<'a>(
    part: String,
    fact: impl Future<Output = Result<ChainFact, String>> + Send + 'a,
) -> BoxFuture<'a, Queried> {
    Box::pin(async move { Queried { part, outcome: fact.await } })
}

fn merge(registry: &Registry, facts: &mut Facts, fact: ChainFact) {
    match fact {
        ChainFact::Channel(end, status) => {
            let key = (registry[end.chain].id.clone(), end.port.clone(), end.channel.clone());
            match status.trouble(&registry[end.chain].id, &end.channel) {
                Some(reason) => facts.closed.insert(key, reason),
                None => facts.closed.remove(&key),
            };
        }
        ChainFact::Bridge(bridge, new) => {
            let old = of_bridge(registry, facts, bridge);
            *old = BridgeFacts { migrated: std::mem::take(&mut old.migrated), ..new };
        }
        ChainFact::Migration(bridge, denom, to) => {
            of_bridge(registry, facts, bridge).migrated.insert(denom, to);
        }
        ChainFact::Contract(chain, denom, Some(contract)) => {
            facts.contracts.insert((chain, denom), contract);
        }
        ChainFact::Hooks(chain, is_allowed) => {
            facts.hooks.insert(chain, is_allowed);
        }
        ChainFact::Adapters(chain, found) => {
            // Of several, none is certainly the one of the venue.
            if let Ok([adapter]) = <[String; 1]>::try_from(found) {
                facts.hooks.insert(chain.clone(), true);
                facts.adapters.insert(chain, adapter);
            } else {
                facts.hooks.remove(&chain);
                facts.adapters.remove(&chain);
            }
        }
        ChainFact::Forwards(chain, forwards) => {
            facts.forwards.insert(chain, forwards);
        }
        ChainFact::Wrapper(made, new) => {
            if let Some(pair) = registry.wrapper_pair(made) {
                facts.wrappers.insert(Facts::wrapper_key(registry, &pair), new);
            }
        }
        ChainFact::NoBridge(_) | ChainFact::Contract(_, _, None) => {}
    }
}

fn of_bridge<'a>(registry: &Registry, facts: &'a mut Facts, bridge: BridgeRef) -> &'a mut BridgeFacts {
    let bridge = &registry[bridge];
    facts.bridges.entry((registry[bridge.l1].id.clone(), bridge.id)).or_default()
}

impl ChannelStatus {
    /// Reason why the channel is unusable.
    pub(crate) fn trouble(&self, chain: &str, channel: &str) -> Option<String> {
        if self.state != "STATE_OPEN" {
            return Some(format!("{channel} of {chain} is not open: {}", self.state));
        }
        (self.client_status != "Active")
            .then(|| format!("the client behind {channel} of {chain} is {}", self.client_status))
    }
}

async fn query_channel(clients: &ChainClients, chain: &Chain, end: &End) -> Result<ChannelStatus, String> {
    let path = format!("/ibc/core/channel/v1/channels/{}/ports/{}", end.channel, end.port);
    let mut status = ChannelStatus {
        state: "there is no such channel".to_owned(),
        counterparty: (String::new(), String::new()),
        client_status: "unknown".to_owned(),
        client_chain: String::new(),
    };
    if let Some(answer) = get(clients, chain, &path).await? {
        status.state = text(&answer, "/channel/state")?;
        let (port, channel) = ("/channel/counterparty/port_id", "/channel/counterparty/channel_id");
        status.counterparty = (text(&answer, port)?, text(&answer, channel)?);
    }
    if let Some(client) = get(clients, chain, &format!("{path}/client_state")).await? {
        let id = text(&client, "/identified_client_state/client_id")?;
        status.client_chain =
            text(&client, "/identified_client_state/client_state/chain_id").unwrap_or_default();
        if let Some(answer) = get(clients, chain, &format!("/ibc/core/client/v1/client_status/{id}")).await? {
            status.client_status = text(&answer, "/status")?;
        }
    }
    Ok(status)
}

async fn query_bridge(clients: &ChainClients, l1: &Chain, id: u64) -> Result<BridgeFacts, String> {
    let answer = get(clients, l1, &format!("/opinit/ophost/v1/bridges/{id}")).await?;
    let answer = answer.ok_or_else(|| format!("the L1 has no bridge {id}"))?;
    Ok(BridgeFacts {
        disabled: answer.pointer("/bridge_config/bridge_disabled").and_then(Value::as_bool).unwrap_or(false),
        finalization_seconds: seconds(&text(&answer, "/bridge_config/finalization_period")?),
        submission_seconds: seconds(&text(&answer, "/bridge_config/submission_interval")?),
        migrated: HashMap::new(),
    })
}

/// The L1's end of the channel that the rollup uses for a bridged coin; `None` if the coin was not migrated.
async fn query_migration(
    clients: &ChainClients,
    registry: &Registry,
    l2: ChainRef,
    denom: &str,
) -> Result<Option<(String, String)>, String> {
    let path = format!("/opinit/opchild/v1/migration_info/by_denom?denom={}", escaped(denom));
    let Some(answer) = get(clients, &registry[l2], &path).await? else { return Ok(None) };
    let port = text(&answer, "/migration_info/ibc_port_id")?;
    let channel = text(&answer, "/migration_info/ibc_channel_id")?;
    let known = registry.channel_at(l2, &port, &channel);
    let far = known.and_then(|reference| registry[reference].beyond(l2));
    let far =
        far.ok_or_else(|| format!("it was migrated to {port}/{channel}, which the registry does not have"))?;
    Ok(Some((far.port.clone(), far.channel.clone())))
}

/// The ERC-20 behind a denomination of a minievm chain.
pub(crate) async fn query_contract(
    clients: &ChainClients,
    chain: &Chain,
    denom: &str,
) -> Result<Option<String>, String> {
    let path = format!("/minievm/evm/v1/contracts/by_denom?denom={}", escaped(denom));
    get(clients, chain, &path).await?.map(|answer| text(&answer, "/address")).transpose()
}

/// Answers of a wrapper about the local token of a pair.
async fn query_wrapper(
    clients: &ChainClients,
    registry: &Registry,
    pair: &Pair<'_>,
) -> Result<WrapperFacts, String> {
    let local = &registry[pair.local];
    let chain = &registry[local.chain];
    let token = match local.denom.strip_prefix("evm/") {
        Some(hex) => Some(format!("0x{hex}")),
        None => query_contract(clients, chain, &local.denom).await?,
    };
    let token = token.ok_or_else(|| format!("the chain has no ERC-20 for {}", local.denom))?;
    let (wrapper, token) = (address(pair.contract)?, address(&token)?);
    let clients = clients.of(chain);
    let evm = clients.evm().map_err(|error| error.to_string())?;
    let (remote, decimals) = messages::wrapper::calls(token);
    match join(evm.call(wrapper, &remote, None), evm.call(wrapper, &decimals, None)).await {
        (Ok(remote), Ok(decimals)) => Ok(messages::wrapper::read(&remote, &decimals)),
        // A definite answer: a contract without these functions reverts.
        (Err(Error::Refused { .. }), _) | (_, Err(Error::Refused { .. })) => {
            Ok(WrapperFacts::NotAWrapper("it refuses remoteTokens or remoteDecimals".to_owned()))
        }
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    }
}

fn address(text: &str) -> Result<[u8; 20], String> {
    let account = chain::Account::from_hex_literal(text);
    let bytes = account.and_then(|account| account.as_bytes().try_into().ok());
    bytes.ok_or_else(|| format!("{text} is no address of a contract"))
}

/// Whether a chain has the module of the packet forward middleware, by the module versions that its upgrade module
/// keeps. The middleware itself answers no queries in newer versions.
async fn query_forwarding(clients: &ChainClients, chain: &Chain) -> Result<bool, String> {
    // The name is misspelt in its source.
    let path = "/cosmos/upgrade/v1beta1/module_versions?module_name=packetfowardmiddleware";
    match get(clients, chain, path).await {
        Ok(Some(_)) => Ok(true),
        // The module's answer for one that the chain does not have; HTTP 500, not 404.
        Err(reason) if reason.contains("QueryModuleVersions") => Ok(false),
        Ok(None) => Err("it has no upgrade module".to_owned()),
        Err(reason) => Err(reason),
    }
}

/// A text as a query value; the gateway requires escaped slashes.
pub(crate) fn escaped(text: &str) -> percent_encoding::PercentEncode<'_> {
    const PLAIN: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encoding::utf8_percent_encode(text, PLAIN)
}

/// A REST answer; `None` if the object does not exist.
pub(crate) async fn get(clients: &ChainClients, chain: &Chain, path: &str) -> Result<Option<Value>, String> {
    let clients = clients.of(chain);
    let rest = clients.rest().map_err(|error| error.to_string())?;
    let Some(bytes) = rest.get_or_absent(path, None).await.map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| format!("{path}: {error}"))
}

/// A text of a REST answer, by its JSON pointer.
pub(crate) fn text(answer: &Value, pointer: &str) -> Result<String, String> {
    let text = answer.pointer(pointer).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| format!("the node's answer has no text at {pointer}"))
}

/// A protobuf duration in JSON, `604800s`, in whole seconds.
fn seconds(text: &str) -> Option<u64> {
    let whole = text.strip_suffix('s')?.split('.').next()?;
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_whole_seconds() {
        assert_eq!(seconds("604800s"), Some(604_800));
        assert_eq!(seconds("0.500s"), Some(0));
        assert_eq!(seconds("10"), None);
        assert_eq!(seconds("-1s"), None);
    }
}
