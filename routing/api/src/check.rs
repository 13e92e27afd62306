//! Online check: compares a registry with the chains, for `cairn route check --online`.
//!
//! The check covers channels (open at both ends, which name each other; client active and of the right chain), bridges
//! (they exist and the rollup names them), denomination traces (they hash to the claimed denominations), contracts, and
//! wrapper pairs. A chain that does not answer is a finding too.

use registry::denom;
use registry::facts::PairState;
use registry::{AssetRef, Bridge, Chain, ChainKind, Channel, End, Facts, Origin, Registry};
use serde::Deserialize;

use crate::nodes::Nodes;
use crate::refresh::{self, ChainFact};

/// A difference between registry and chains, or a failed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which part of the registry.
    pub part: String,
    /// Reason.
    pub what: String,
    /// Whether the chain did not answer, rather than answer something else.
    pub unreachable: bool,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.part, self.what)
    }
}

/// Asks all chains; the findings are in no order that means anything, but sorted.
pub async fn online(nodes: &Nodes, registry: &Registry) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for said in refresh::query_all(nodes, registry).await {
        findings.extend(of_answer(registry, said));
    }
    for (asset, about) in registry.assets() {
        let of_cosmos = registry[about.chain].kind == ChainKind::Cosmos;
        let outcome = match about.origin {
            Origin::Ibc { .. } if of_cosmos => trace(nodes, registry, asset).await,
            Origin::Bridged { .. } => base(nodes, registry, asset).await,
            _ => Ok(None),
        };
        let part = format!("asset {} of {}", about.denom, registry[about.chain].id);
        findings.extend(finding(part, outcome));
    }
    for (_, bridge) in registry.bridges() {
        findings.extend(finding(format!("bridge {}", bridge.id), rollup(nodes, registry, bridge).await));
    }
    findings.sort_by(|a, b| (&a.part, &a.what).cmp(&(&b.part, &b.what)));
    findings
}

/// Findings of one query result.
fn finding(part: String, outcome: Result<Option<String>, String>) -> Option<Finding> {
    let (what, unreachable) = match outcome {
        Ok(what) => (what?, false),
        Err(reason) => (reason, true),
    };
    Some(Finding { part, what, unreachable })
}

fn of_answer(registry: &Registry, said: ChainFact) -> Vec<Finding> {
    let wrong = |part: String, what: String| vec![Finding { part, what, unreachable: false }];
    let unreachable = |part: String, what: String| vec![Finding { part, what, unreachable: true }];
    match said {
        ChainFact::Channel(end, outcome) => {
            let chain = &registry[end.chain].id;
            let part = format!("channel {}/{} of {chain}", end.port, end.channel);
            let said = match outcome {
                Ok(said) => said,
                Err(reason) => return unreachable(part, reason),
            };
            let mut found = Vec::new();
            if let Some(trouble) = said.trouble(chain, &end.channel) {
                found.extend(wrong(part.clone(), trouble));
            }
            if let Some(far) = far_end(registry, &end) {
                let (port, channel) = &said.counterparty;
                if said.state == "STATE_OPEN" && (port, channel) != (&far.port, &far.channel) {
                    let what = format!(
                        "its other end is {port}/{channel}, the registry says {}/{}",
                        far.port, far.channel
                    );
                    found.extend(wrong(part.clone(), what));
                }
                let id = &registry[far.chain].id;
                if !said.client_chain.is_empty() && said.client_chain != *id {
                    found.extend(wrong(
                        part,
                        format!("its client is of chain {}, the registry says {id}", said.client_chain),
                    ));
                }
            }
            found
        }
        ChainFact::Bridge(bridge, outcome) => {
            let part = format!("bridge {}", registry[bridge].id);
            match outcome {
                Ok(facts) if facts.disabled => wrong(part, "it is disabled on the L1".to_owned()),
                Ok(_) => Vec::new(),
                // An unknown bridge is HTTP 500 and not 404 (recorded pair, README).
                Err(reason) if reason.contains("not found") => wrong(part, reason),
                Err(reason) => unreachable(part, reason),
            }
        }
        ChainFact::Migration(bridge, denom, Err(reason)) => {
            unreachable(format!("bridge {}, migration of {denom}", registry[bridge].id), reason)
        }
        ChainFact::Contract(chain, denom, Ok(None)) => {
            wrong(format!("asset {denom} of {chain}"), "the chain has no ERC-20 for it".to_owned())
        }
        ChainFact::Wrapper(made, outcome) => {
            let pair = registry.wrapper_pair(made);
            let (about, pair) = (&registry[made], pair.as_ref());
            let part = format!("wrapper of {} of {}", about.denom, registry[about.chain].id);
            let said = match outcome {
                Ok(said) => said,
                Err(reason) => return unreachable(part, reason),
            };
            let mut facts = Facts::default();
            facts.wrappers.extend(pair.map(|pair| (Facts::wrapper_key(registry, pair), said)));
            match pair.map(|pair| facts.pair(registry, pair)) {
                Some(PairState::Contradicted(why)) => wrong(part, why),
                _ => Vec::new(),
            }
        }
        ChainFact::Contract(chain, denom, Ok(Some(contract))) => {
            let asset = registry.chain(&chain).and_then(|chain| registry.asset(chain, &denom));
            let files = asset.and_then(|asset| registry[asset].contract.as_deref());
            match files.filter(|files| !files.eq_ignore_ascii_case(&contract)) {
                Some(files) => {
                    let what = format!("the chain says that its ERC-20 is {contract}, the registry {files}");
                    wrong(format!("asset {denom} of {chain}"), what)
                }
                None => Vec::new(),
            }
        }
        ChainFact::Contract(chain, denom, Err(reason)) => {
            unreachable(format!("asset {denom} of {chain}"), reason)
        }
        ChainFact::Hooks(chain, Err(reason)) => unreachable(format!("hooks of {chain}"), reason),
        ChainFact::Migration(_, _, Ok(_)) | ChainFact::Hooks(_, Ok(_)) => Vec::new(),
    }
}

fn far_end<'a>(registry: &'a Registry, end: &End) -> Option<&'a End> {
    let here = |channel: &&Channel| channel.a == *end || channel.b == *end;
    let channel = registry.channels().map(|(_, channel)| channel).find(here)?;
    channel.beyond(end.chain)
}

/// The chain's own trace of `ibc/<hash>`.
async fn trace(nodes: &Nodes, registry: &Registry, asset: AssetRef) -> Result<Option<String>, String> {
    let about = &registry[asset];
    // An asset on its origin chain has no hash.
    let Some(hash) = about.denom.strip_prefix("ibc/") else { return Ok(None) };
    let path = path(nodes, &registry[about.chain], hash).await?;
    let same = |path: &String| path == registry.path(asset) && denom::of_path(path) == about.denom;
    // A voucher without holders has no trace.
    let other = path.filter(|path| !same(path));
    Ok(other.map(|path| format!("the chain says its path is {path}, the registry {}", registry.path(asset))))
}

/// The path of a voucher: under one name since ibc-go v9, under another before.
async fn path(nodes: &Nodes, chain: &Chain, hash: &str) -> Result<Option<String>, String> {
    #[derive(Deserialize)]
    struct Old {
        denom_trace: Trace,
    }
    #[derive(Deserialize)]
    struct Trace {
        path: String,
        base_denom: String,
    }
    #[derive(Deserialize)]
    struct New {
        denom: Denom,
    }
    #[derive(Deserialize)]
    struct Denom {
        base: String,
        #[serde(default)]
        trace: Vec<Hop>,
    }
    #[derive(Deserialize)]
    struct Hop {
        port_id: String,
        channel_id: String,
    }
    let old = refresh::get::<Old>(nodes, chain, &format!("/ibc/apps/transfer/v1/denom_traces/{hash}")).await;
    if let Ok(Some(Old { denom_trace: Trace { path, base_denom } })) = old {
        return Ok(Some(format!("{path}/{base_denom}")));
    }
    let new = refresh::get::<New>(nodes, chain, &format!("/ibc/apps/transfer/v1/denoms/{hash}")).await;
    // A chain with only the old path has answered there.
    let Some(New { denom }) = (if old.is_ok() { new.unwrap_or(None) } else { new? }) else { return Ok(None) };
    let hops = denom.trace.into_iter().flat_map(|hop| [hop.port_id, hop.channel_id]);
    Ok(Some(hops.chain([denom.base]).collect::<Vec<_>>().join("/")))
}

/// The rollup's own base denomination of `l2/<hash>`.
async fn base(nodes: &Nodes, registry: &Registry, asset: AssetRef) -> Result<Option<String>, String> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(alias = "denom")]
        base_denom: String,
    }
    let about = &registry[asset];
    let Origin::Bridged { parent, .. } = about.origin else { return Ok(None) };
    let path = format!("/opinit/opchild/v1/base_denom?denom={}", refresh::escaped(&about.denom));
    let answer = match refresh::get::<Answer>(nodes, &registry[about.chain], &path).await {
        Ok(answer) => answer,
        // The denomination has no deposit yet.
        Err(reason) if reason.contains("not from L1") => None,
        Err(reason) => return Err(reason),
    };
    let parent = &registry[parent].denom;
    Ok(answer.filter(|answer| answer.base_denom != *parent).map(|answer| {
        format!("the rollup says it is {} of the L1, the registry {parent}", answer.base_denom)
    }))
}

/// The rollup's own bridge configuration.
async fn rollup(nodes: &Nodes, registry: &Registry, bridge: &Bridge) -> Result<Option<String>, String> {
    #[derive(Deserialize)]
    struct Answer {
        bridge_info: Info,
    }
    #[derive(Deserialize)]
    struct Info {
        bridge_id: String,
        l1_chain_id: String,
    }
    let (l1, l2) = (&registry[bridge.l1], &registry[bridge.l2]);
    let answer = refresh::get::<Answer>(nodes, l2, "/opinit/opchild/v1/bridge_info").await?;
    let Some(Answer { bridge_info: Info { bridge_id, l1_chain_id } }) = answer else {
        return Ok(Some(format!("{} says that it has none", l2.id)));
    };
    let same = bridge_id == bridge.id.to_string() && l1_chain_id == l1.id;
    Ok((!same).then(|| format!("{} says that it hangs on bridge {bridge_id} of {l1_chain_id}", l2.id)))
}
