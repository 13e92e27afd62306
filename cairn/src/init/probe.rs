//! Probes of a node's services: their chain, their heights, and what they serve.
//!
//! # Invariants
//! * Each address is probed on its own, and each request has a time limit ([`LIMITS`]).
//! * An address of another chain is an error. One that does not answer is a line of [`Report::lacking`], and is not
//!   among the usable ones; without a usable one, a service that is required is an error.
//! * The probes only read.

use std::time::Duration;

use anyhow::{Context as _, bail};
use chain::Vm;
use chain::evm::flavour::Flavour;
use node::{Comet, Endpoints, Error, Evm, Grpc, Kind, Limits, Node, Rest, Url};

use crate::settings::values::Error as Usage;

/// Time limits of an interactive command: a node that needs longer cannot be followed anyway.
const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    timeout: Duration::from_secs(15),
    trace_timeout: Duration::from_secs(30),
    rate_limit_wait: Duration::ZERO,
    body: 64 << 20,
    in_flight: 4,
    bytes_in_flight: 128 << 20,
};

/// Any state query; this one reads nothing.
const STATE: &str = "/cosmos/auth/v1beta1/bech32";

/// Findings, one a line.
#[derive(Default)]
pub(super) struct Report {
    /// The services with their properties.
    pub(super) found: Vec<String>,
    /// What is missing, with the reason and the remedy.
    pub(super) lacking: Vec<String>,
    /// The software of the chain's EVM, if it has one that is known.
    evm: Option<Flavour>,
}

/// The usable addresses of the CometBFT RPC, and the heights that they have together.
pub(super) struct CometFindings {
    pub(super) usable: Vec<String>,
    earliest: u64,
    latest: u64,
}

/// The usable addresses of REST.
pub(super) struct RestFindings {
    pub(super) usable: Vec<String>,
    /// Prefix of account addresses.
    pub(super) prefix: Option<String>,
}

/// The usable addresses of the EVM JSON-RPC.
pub(super) struct EvmFindings {
    pub(super) usable: Vec<String>,
    /// True if one of them traces blocks.
    pub(super) has_traces: bool,
}

/// The chain of the first address that answers.
pub(super) async fn chain_id(addresses: &[String]) -> anyhow::Result<String> {
    let urls = addresses.iter().map(|address| address.parse()).collect::<Result<_, _>>()?;
    Ok(Comet::new(urls, LIMITS)?.status().await?.chain_id)
}

/// The prefix of account addresses, over the CometBFT RPC; `None` if it cannot be found out so.
pub(super) async fn prefix(comet: &[String]) -> anyhow::Result<Option<String>> {
    let comet = comet.iter().map(|address| address.parse()).collect::<Result<_, _>>()?;
    let node = Node::new(Endpoints { comet, ..Endpoints::default() }, LIMITS)?;
    Ok(node.bech32_prefix().await.ok())
}

impl Report {
    /// Probes the CometBFT RPC.
    pub(super) async fn comet(
        &mut self,
        addresses: &[String],
        chain_id: &str,
    ) -> anyhow::Result<CometFindings> {
        let mut all = CometFindings { usable: Vec::new(), earliest: u64::MAX, latest: 0 };
        for address in addresses {
            let url: Url = address.parse()?;
            let comet = Comet::new(vec![url.clone()], LIMITS)?;
            let Some(status) = self.usable(comet.verify_chain(chain_id).await)? else { continue };
            let (earliest, latest) = (status.earliest_height.max(1), status.latest_height);
            self.found.push(format!(
                "comet {url}: chain {chain_id}, heights {earliest} to {latest}, CometBFT {}",
                status.node_version
            ));
            if status.catching_up {
                self.lacks(format!("comet {url}"), "it still fetches blocks, so the last ones are missing");
            }
            // The results of the last block may not exist yet.
            let executed = latest.saturating_sub(1).max(earliest);
            // A chain of a few blocks may not have them yet, which is not a lack.
            if let Err(error) = comet.block_results(executed).await
                && error.kind() != Kind::NotYet
            {
                self.lacks("blocks cannot be indexed", error);
            }
            if let Err(error @ Error::NotIndexed { .. }) =
                comet.tx_search(&format!("tx.height={executed}"), 1, 1, true).await
            {
                self.lacks("tracked transfers are not found (the index needs no search)", error);
            }
            all =
                CometFindings { earliest: all.earliest.min(earliest), latest: all.latest.max(latest), ..all };
            all.usable.push(address.clone());
        }
        if all.usable.is_empty() {
            bail!("no address of the CometBFT RPC answers");
        }
        if all.earliest > 1 {
            let remedy = "set min-retain-blocks = 0 in its app.toml and sync it anew, or add the address of an archive \
                          node";
            self.lacks(format!("the index begins at height {}", all.earliest), remedy);
        }
        Ok(all)
    }

    /// The chain's VM. `given` must be among those that the chain has, unless its messages name none and `evm` is given; `None` if it
    /// cannot be found out.
    pub(super) async fn vm(
        &mut self,
        comet: &[String],
        given: Option<Vm>,
        evm: Option<Flavour>,
    ) -> anyhow::Result<Option<Vm>> {
        let comet = comet.iter().map(|address| address.parse()).collect::<Result<_, _>>()?;
        let node = Node::new(Endpoints { comet, ..Endpoints::default() }, LIMITS)?;
        let vms = match node.descriptors().await {
            Ok(descriptors) => {
                self.evm = ingest::advice::evm_of(&descriptors)?;
                ingest::advice::vms(&descriptors)?
            }
            Err(error) => {
                self.lacks("the messages of the chain are unknown", error);
                return Ok(given);
            }
        };
        if let Some(evm) = self.evm.filter(|evm| *evm != Flavour::MiniEvm) {
            let message = evm.message().trim_start_matches('/');
            self.found.push(format!("the EVM is that of {evm}: the chain has {message}"));
        }
        let names = || vms.iter().map(|vm| vm.name()).collect::<Vec<_>>().join(", ");
        match given {
            Some(Vm::Evm) if evm.is_some() && vms == [Vm::None] => Ok(given),
            Some(vm) if !vms.contains(&vm) => {
                Err(Usage(format!("--vm {vm}: the chain has {}; leave --vm out, or correct it", names()))
                    .into())
            }
            Some(vm) => Ok(Some(vm)),
            None if vms.len() > 1 => {
                Err(Usage(format!("the chain has several VMs, choose one by --vm: {}", names())).into())
            }
            None => Ok(vms.first().copied()),
        }
    }

    /// Probes REST.
    pub(super) async fn rest(
        &mut self,
        addresses: &[String],
        chain_id: &str,
        comet: &CometFindings,
    ) -> anyhow::Result<RestFindings> {
        let mut all = RestFindings { usable: Vec::new(), prefix: None };
        for address in addresses {
            let url: Url = address.parse()?;
            let rest = Rest::new(vec![url.clone()], LIMITS)?;
            if self.usable(rest.verify_chain(chain_id).await)?.is_none() {
                continue;
            }
            let app = rest.node_info().await.map(|info| format!("{} {}", info.app_name, info.app_version));
            self.found.push(format!("rest {url}: {}", app.unwrap_or_else(|error| error.to_string())));
            match rest.bech32_prefix().await {
                Ok(prefix) => drop(all.prefix.get_or_insert(prefix)),
                Err(error) => self.lacks("the prefix of account addresses is unknown", error),
            }
            if let Err(error @ Error::Pruned { .. }) = rest.get(STATE, Some(comet.earliest)).await {
                self.lacks("names, URIs and balances of old heights are those of later ones", error);
            }
            all.usable.push(address.clone());
        }
        Ok(all)
    }

    /// Probes the EVM JSON-RPC.
    pub(super) async fn json_rpc(
        &mut self,
        addresses: &[String],
        comet: &CometFindings,
    ) -> anyhow::Result<EvmFindings> {
        let mut all = EvmFindings { usable: Vec::new(), has_traces: false };
        let mut no_traces = None;
        for address in addresses {
            let url: Url = address.parse()?;
            let evm = Evm::new(vec![url.clone()], LIMITS)?;
            let Some(tip) = self.usable(evm.block_number().await)? else { continue };
            is_same_chain(&evm, &url, comet, tip).await?;
            // Of a chain whose transactions are in messages, receipts are derived.
            let asks_receipts = tip > 0 && !self.evm.is_some_and(Flavour::has_ethereum_messages);
            let receipts = if asks_receipts { evm.block_receipts(tip).await.map(drop) } else { Ok(()) };
            if let Err(error) = receipts {
                self.lacks("EVM transactions cannot be indexed", error);
            } else if asks_receipts && evm.block_exists(comet.earliest).await.is_ok_and(|exists| !exists) {
                let pruned = ingest::Error::ReceiptsPruned { height: comet.earliest, tip };
                self.lacks("EVM transactions cannot be indexed", pruned);
            }
            match evm.trace_block(tip.max(FIRST_TRACE)).await {
                Err(error) if error.kind() == Kind::Permanent => no_traces = Some(error),
                // A height that the chain has not reached yet, or a fault that passes, shows no lack.
                outcome => {
                    all.has_traces = true;
                    if let Err(error) = outcome
                        && error.kind() == Kind::Transient
                    {
                        self.lacks("whether the node traces is unknown", error);
                    }
                }
            }
            if let Err(error @ Error::Pruned { .. }) = evm.trace_block(comet.earliest.max(FIRST_TRACE)).await
            {
                self.lacks("internal transactions begin at a later height", error);
            }
            self.found.push(format!("json-rpc {url}: heights to {tip}"));
            all.usable.push(address.clone());
        }
        if all.usable.is_empty() {
            bail!("no address of the EVM JSON-RPC answers, and an EVM chain cannot be indexed without it");
        }
        if let Some(error) = no_traces.filter(|_| !all.has_traces) {
            self.lacks("internal transactions are not indexed (`internal_txs = false`)", error);
        }
        Ok(all)
    }

    /// Probes gRPC; returns the usable addresses.
    pub(super) async fn grpc(&mut self, addresses: &[String]) -> anyhow::Result<Vec<String>> {
        let mut all = Vec::new();
        for address in addresses {
            let url: Url = address.parse()?;
            let descriptors = Grpc::new(vec![url.clone()], LIMITS)?.file_descriptors().await;
            let Some(descriptors) = self.usable(descriptors)? else { continue };
            self.found.push(format!("grpc {url}: descriptors of {} bytes", descriptors.len()));
            all.push(address.clone());
        }
        Ok(all)
    }

    /// The reply of an address; without one, the address is not usable.
    fn usable<T>(&mut self, outcome: Result<T, Error>) -> Result<Option<T>, Error> {
        match outcome {
            Ok(reply) => Ok(Some(reply)),
            Err(error @ Error::WrongChain { .. }) => Err(error),
            Err(error) => {
                self.lacking.push(format!("an address is left out: {error}"));
                Ok(None)
            }
        }
    }

    fn lacks(&mut self, effect: impl std::fmt::Display, reason: impl std::fmt::Display) {
        self.lacking.push(format!("{effect}: {reason}"));
    }
}

/// The first block cannot be traced.
const FIRST_TRACE: u64 = 2;

/// Compares the time of a block, because the EVM's id is another than the chain's.
async fn is_same_chain(evm: &Evm, url: &Url, comet: &CometFindings, tip: u64) -> anyhow::Result<()> {
    let height = tip.min(comet.latest);
    if height == 0 {
        return Ok(());
    }
    let urls = comet.usable.iter().map(|address| address.parse()).collect::<Result<_, _>>()?;
    let block = Comet::new(urls, LIMITS)?.block_time(height).await;
    let block = block.with_context(|| format!("the time of block {height}"))?;
    match evm.block_time(height).await {
        Ok(Some(time)) if time.seconds() != block.seconds() => Err(Usage(format!(
            "json-rpc {url}: its block {height} is of {}, but that of the CometBFT RPC of {}: this is another chain; \
             correct the address",
            time.seconds(),
            block.seconds()
        ))
        .into()),
        // A missing block is found by the other probes.
        _ => Ok(()),
    }
}
