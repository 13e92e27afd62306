//! Refresh of chain facts: channels, clients, bridges, migrations, hooks, contracts, wrapper pairs.
//!
//! Each query has a timeout and fails independently; a failed query leaves the previous fact. `router-mechanics.md`
//! §1.3 lists the queries.

use std::collections::{HashMap, HashSet};

use futures_util::future::join;
use futures_util::stream::{self, StreamExt as _};
use node::Error;
use registry::facts::{BridgeFacts, PairState, WrapperFacts};
use registry::{AssetRef, BridgeRef, Chain, ChainKind, ChainRef, End, Facts, Origin, Pair, Registry};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::nodes::Nodes;

/// Questions at once.
const AT_ONCE: usize = 16;

/// One chain fact, or the reason why it could not be queried.
pub(crate) enum ChainFact {
    Channel(End, Result<ChannelStatus, String>),
    Bridge(BridgeRef, Result<BridgeFacts, String>),
    Migration(BridgeRef, String, Result<Option<(String, String)>, String>),
    Contract(String, String, Result<Option<String>, String>),
    Hooks(String, Result<bool, String>),
    /// By the token that the wrapper made.
    Wrapper(AssetRef, Result<WrapperFacts, String>),
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

/// Queries all chains; a failed query keeps the fact of `before`.
pub async fn ask(nodes: &Nodes, registry: &Registry, before: &Facts) -> Facts {
    let mut facts = before.clone();
    for said in query_all(nodes, registry).await {
        merge(registry, &mut facts, said);
    }
    log_pairs(registry, before, &facts);
    facts
}

/// Logs each pair of a wrapper that a chain contradicts, or no longer does.
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
pub(crate) async fn query_all(nodes: &Nodes, registry: &Registry) -> Vec<ChainFact> {
    let mut questions: Vec<futures_util::future::BoxFuture<'_, ChainFact>> = Vec::new();
    for (_, channel) in registry.channels() {
        for end in [&channel.a, &channel.b] {
            questions.push(Box::pin(async move {
                ChainFact::Channel(end.clone(), query_channel(nodes, &registry[end.chain], end).await)
            }));
        }
    }
    for (reference, bridge) in registry.bridges() {
        let l1 = &registry[bridge.l1];
        questions.push(Box::pin(async move {
            ChainFact::Bridge(reference, query_bridge(nodes, l1, bridge.id).await)
        }));
    }
    let mut wrapped: HashSet<AssetRef> = HashSet::new();
    for (made, pair) in registry.wrapper_pairs() {
        wrapped.extend([pair.remote, pair.local]);
        questions.push(Box::pin(async move {
            ChainFact::Wrapper(made, query_wrapper(nodes, registry, &pair).await)
        }));
    }
    for (reference, asset) in registry.assets() {
        let chain = &registry[asset.chain];
        if let Origin::Bridged { bridge, parent } = &asset.origin {
            let (l1_denom, denom) = (&registry[*parent].denom, &asset.denom);
            questions.push(Box::pin(async move {
                ChainFact::Migration(
                    *bridge,
                    l1_denom.clone(),
                    query_migration(nodes, registry, asset.chain, denom).await,
                )
            }));
        }
        if chain.vm == chain::Vm::Evm
            && chain.kind == ChainKind::Cosmos
            && wrapped.contains(&reference)
            && !asset.denom.starts_with("evm/")
        {
            questions.push(Box::pin(async move {
                let said = query_contract(nodes, chain, &asset.denom).await;
                ChainFact::Contract(chain.id.clone(), asset.denom.clone(), said)
            }));
        }
    }
    for (reference, chain) in registry.chains() {
        let wrapper = registry.assets().find_map(|(_, asset)| match &asset.origin {
            Origin::Wrapped { contract, .. } if asset.chain == reference => Some(contract),
            _ => None,
        });
        if let Some(wrapper) = wrapper {
            questions.push(Box::pin(async move {
                ChainFact::Hooks(chain.id.clone(), query_hooks(nodes, chain, wrapper).await)
            }));
        }
    }
    stream::iter(questions).buffer_unordered(AT_ONCE).collect().await
}

/// Merges a fact; a failed query changes nothing.
fn merge(registry: &Registry, facts: &mut Facts, said: ChainFact) {
    let warn = |what: &str, reason: &str| tracing::debug!(what, reason, "a chain was not asked");
    match said {
        ChainFact::Channel(end, Ok(said)) => {
            let key = (registry[end.chain].id.clone(), end.port.clone(), end.channel.clone());
            match said.trouble(&registry[end.chain].id, &end.channel) {
                Some(reason) => facts.closed.insert(key, reason),
                None => facts.closed.remove(&key),
            };
        }
        ChainFact::Bridge(bridge, Ok(said)) => {
            let known = of_bridge(registry, facts, bridge);
            *known = BridgeFacts { migrated: std::mem::take(&mut known.migrated), ..said };
        }
        ChainFact::Migration(bridge, denom, Ok(to)) => {
            of_bridge(registry, facts, bridge).migrated.insert(denom, to);
        }
        ChainFact::Contract(chain, denom, Ok(Some(contract))) => {
            facts.contracts.insert((chain, denom), contract);
        }
        ChainFact::Hooks(chain, Ok(allowed)) => {
            facts.hooks.insert(chain, allowed);
        }
        ChainFact::Wrapper(made, Ok(said)) => {
            if let Some(pair) = registry.wrapper_pair(made) {
                facts.wrappers.insert(Facts::wrapper_key(registry, &pair), said);
            }
        }
        ChainFact::Contract(_, _, Ok(None)) => {}
        ChainFact::Channel(end, Err(reason)) => warn(&end.channel, &reason),
        ChainFact::Bridge(_, Err(reason)) => warn("bridge", &reason),
        ChainFact::Migration(_, denom, Err(reason)) | ChainFact::Contract(_, denom, Err(reason)) => {
            warn(&denom, &reason);
        }
        ChainFact::Hooks(chain, Err(reason)) => warn(&chain, &reason),
        ChainFact::Wrapper(made, Err(reason)) => warn(&registry[made].denom, &reason),
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

async fn query_channel(nodes: &Nodes, chain: &Chain, end: &End) -> Result<ChannelStatus, String> {
    #[derive(Deserialize)]
    struct Answer {
        channel: Channel,
    }
    #[derive(Deserialize)]
    struct Channel {
        state: String,
        counterparty: Counterparty,
    }
    #[derive(Deserialize)]
    struct Counterparty {
        port_id: String,
        channel_id: String,
    }
    #[derive(Deserialize)]
    struct ClientAnswer {
        identified_client_state: Identified,
    }
    #[derive(Deserialize)]
    struct Identified {
        client_id: String,
        client_state: ClientState,
    }
    #[derive(Deserialize)]
    struct ClientState {
        #[serde(default)]
        chain_id: String,
    }
    #[derive(Deserialize)]
    struct Status {
        status: String,
    }
    let path = format!("/ibc/core/channel/v1/channels/{}/ports/{}", end.channel, end.port);
    let (state, counterparty) = match get::<Answer>(nodes, chain, &path).await? {
        Some(Answer { channel }) => {
            (channel.state, (channel.counterparty.port_id, channel.counterparty.channel_id))
        }
        None => ("there is no such channel".to_owned(), (String::new(), String::new())),
    };
    let client = get::<ClientAnswer>(nodes, chain, &format!("{path}/client_state")).await?;
    let Some(Identified { client_id, client_state }) = client.map(|answer| answer.identified_client_state)
    else {
        let (client_status, client_chain) = ("unknown".to_owned(), String::new());
        return Ok(ChannelStatus { state, counterparty, client_status, client_chain });
    };
    let status =
        get::<Status>(nodes, chain, &format!("/ibc/core/client/v1/client_status/{client_id}")).await?;
    let client_status = status.map_or_else(|| "unknown".to_owned(), |answer| answer.status);
    Ok(ChannelStatus { state, counterparty, client_status, client_chain: client_state.chain_id })
}

async fn query_bridge(nodes: &Nodes, l1: &Chain, id: u64) -> Result<BridgeFacts, String> {
    #[derive(Deserialize)]
    struct Answer {
        bridge_config: Settings,
    }
    #[derive(Deserialize)]
    struct Settings {
        #[serde(default)]
        bridge_disabled: bool,
        finalization_period: String,
        submission_interval: String,
    }
    let answer = get::<Answer>(nodes, l1, &format!("/opinit/ophost/v1/bridges/{id}")).await?;
    let Answer { bridge_config } = answer.ok_or_else(|| format!("the L1 has no bridge {id}"))?;
    Ok(BridgeFacts {
        disabled: bridge_config.bridge_disabled,
        finalization_seconds: seconds(&bridge_config.finalization_period),
        submission_seconds: seconds(&bridge_config.submission_interval),
        migrated: HashMap::new(),
    })
}

/// The L1's end of the channel that the rollup says a bridged coin goes over; `None` if it was not migrated.
async fn query_migration(
    nodes: &Nodes,
    registry: &Registry,
    l2: ChainRef,
    denom: &str,
) -> Result<Option<(String, String)>, String> {
    #[derive(Deserialize)]
    struct Answer {
        migration_info: Info,
    }
    #[derive(Deserialize)]
    struct Info {
        ibc_channel_id: String,
        ibc_port_id: String,
    }
    let path = format!("/opinit/opchild/v1/migration_info/by_denom?denom={}", escaped(denom));
    let Some(Answer { migration_info: info }) = get(nodes, &registry[l2], &path).await? else {
        return Ok(None);
    };
    let (port, channel) = (info.ibc_port_id, info.ibc_channel_id);
    let known = registry.channel_at(l2, &port, &channel);
    let far = known.and_then(|reference| registry[reference].beyond(l2));
    let far =
        far.ok_or_else(|| format!("it was migrated to {port}/{channel}, which the registry does not have"))?;
    Ok(Some((far.port.clone(), far.channel.clone())))
}

/// The ERC-20 behind a denomination of a minievm chain.
pub(crate) async fn query_contract(
    nodes: &Nodes,
    chain: &Chain,
    denom: &str,
) -> Result<Option<String>, String> {
    #[derive(Deserialize)]
    struct Answer {
        address: String,
    }
    let denom = escaped(denom);
    let answer =
        get::<Answer>(nodes, chain, &format!("/minievm/evm/v1/contracts/by_denom?denom={denom}")).await?;
    Ok(answer.map(|answer| answer.address))
}

/// Answers of a wrapper about the local token of a pair.
async fn query_wrapper(nodes: &Nodes, registry: &Registry, pair: &Pair<'_>) -> Result<WrapperFacts, String> {
    let local = &registry[pair.local];
    let chain = &registry[local.chain];
    let token = match local.denom.strip_prefix("evm/") {
        Some(hex) => Some(format!("0x{hex}")),
        None => query_contract(nodes, chain, &local.denom).await?,
    };
    let token = token.ok_or_else(|| format!("the chain has no ERC-20 for {}", local.denom))?;
    let (wrapper, token) = (address(pair.contract)?, address(&token)?);
    let evm = nodes.evm(chain).map_err(|error| error.to_string())?;
    let (remote, decimals) = messages::wrapper::calls(token);
    match join(evm.call(wrapper, &remote, None), evm.call(wrapper, &decimals, None)).await {
        (Ok(remote), Ok(decimals)) => Ok(messages::wrapper::read(&remote, &decimals)),
        // A fixed no: a contract without these functions reverts.
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

/// Whether packets may call the wrapper (`initia.ibchooks.v1`): its own entry of the list, else the default.
async fn query_hooks(nodes: &Nodes, chain: &Chain, wrapper: &str) -> Result<bool, String> {
    #[derive(Deserialize)]
    struct Answer {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        default_allowed: bool,
    }
    #[derive(Deserialize)]
    struct List {
        acls: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        address: String,
        allowed: bool,
    }
    let wrapper = chain::Account::from_hex_literal(wrapper).ok_or("the wrapper's address is none")?;
    let address = wrapper.to_bech32(&chain.bech32_prefix);
    let list = get::<List>(nodes, chain, "/initia/ibchooks/v1/acls").await?;
    let entry = list.and_then(|list| list.acls.into_iter().find(|entry| entry.address == address));
    if let Some(entry) = entry {
        return Ok(entry.allowed);
    }
    let answer = get::<Answer>(nodes, chain, "/initia/ibchooks/v1/params").await?;
    Ok(answer.is_some_and(|answer| answer.params.default_allowed))
}

/// A text as a value of a query; the gateway wants slashes escaped.
pub(crate) fn escaped(text: &str) -> percent_encoding::PercentEncode<'_> {
    const PLAIN: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encoding::utf8_percent_encode(text, PLAIN)
}

/// A REST answer; `None` if there is no such thing.
pub(crate) async fn get<T: DeserializeOwned>(
    nodes: &Nodes,
    chain: &Chain,
    path: &str,
) -> Result<Option<T>, String> {
    let rest = nodes.rest(chain).map_err(|error| error.to_string())?;
    let Some(bytes) = rest.get_or_absent(path, None).await.map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| format!("{path}: {error}"))
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
