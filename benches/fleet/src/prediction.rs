//! A scenario: the servers that it needs, how far each resource is used, and what it costs.

use crate::cache::{self, Class};
use crate::demand::{self, Chain, Group};
use crate::engine;
use crate::inputs::{Measured, Model, Price, Scenario};
use crate::placement;

/// Hours of a month, as in price lists.
const MONTH_HOURS: f64 = 730.0;
const MIB: f64 = 1024.0 * 1024.0;

/// The most servers that are considered.
const MAX_SERVERS: u32 = 4096;

/// A scenario's outcome. Rates are a second, of all servers and chains together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) servers: u32,
    /// Machines of the writers.
    pub(crate) writers: f64,
    pub(crate) hit_ratio: f64,
    pub(crate) gets: Gets,
    pub(crate) puts: f64,
    pub(crate) lists: f64,
    /// Partitions of the keys that the requests need at least.
    pub(crate) partitions: f64,
    /// Use of each resource where it is used most, relative to what is planned for; more than 1 does not fit.
    pub(crate) uses: Vec<Use>,
    pub(crate) cost: Cost,
    /// Milliseconds, at the median, from the commit of a block until a server shows it: of a chain with a block a second or more,
    /// and of one that was quiet.
    pub(crate) lag_ms: (f64, f64),
    /// Seconds until a server that starts has opened its chains.
    pub(crate) start_s: f64,
    /// Requests of each server a second, in the order of the servers.
    pub(crate) loads: Vec<f64>,
}

/// GETs by their cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gets {
    pub(crate) polls: f64,
    pub(crate) misses: f64,
    pub(crate) writers: f64,
}

/// A resource and its use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Use {
    pub(crate) of: &'static str,
    pub(crate) share: f64,
}

/// USD a month.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) polls: f64,
    pub(crate) misses: f64,
    /// Requests and bytes of the writers.
    pub(crate) writes: f64,
    pub(crate) storage: f64,
    pub(crate) servers: f64,
    pub(crate) writers: f64,
}

impl Cost {
    /// Its parts, with names.
    pub(crate) fn parts(self) -> [(&'static str, f64); 6] {
        [
            ("polls of the servers", self.polls),
            ("reads that miss the cache", self.misses),
            ("requests of the writers", self.writes),
            ("storage", self.storage),
            ("servers", self.servers),
            ("writers", self.writers),
        ]
    }

    /// Their sum.
    pub(crate) fn total(self) -> f64 {
        self.parts().iter().map(|(_, usd)| usd).sum()
    }
}

impl Prediction {
    /// The two resources that are used most.
    pub(crate) fn limits(&self) -> (Use, Use) {
        let none = Use { of: "none", share: 0.0 };
        self.uses.iter().fold((none, none), |(first, second), used| match used.share {
            share if share > first.share => (*used, first),
            share if share > second.share => (first, *used),
            _ => (first, second),
        })
    }

    /// The largest part of the cost.
    pub(crate) fn largest_cost(&self) -> &'static str {
        let parts = self.cost.parts().into_iter();
        parts.fold(("", 0.0), |left, right| if right.1 > left.1 { right } else { left }).0
    }
}

/// The mean request of the mix.
struct Mean {
    cpu_ms: f64,
    gets: f64,
    blocks: f64,
    round_trips: f64,
    bytes: f64,
}

/// Everything that does not depend on the number of servers.
struct World<'a> {
    measured: &'a Measured,
    model: &'a Model,
    scenario: &'a Scenario,
    price: &'a Price,
    chains: Vec<Chain>,
    mean: Mean,
}

/// The number in a month of what happens `per_s` times a second.
pub(crate) fn monthly(per_s: f64) -> f64 {
    per_s * MONTH_HOURS * 3600.0
}

/// The smallest fleet that fits `scenario`; if none does, the one of `min_servers`, with a use above 1.
pub(crate) fn predict(measured: &Measured, model: &Model, scenario: &Scenario) -> anyhow::Result<Prediction> {
    let world = World {
        measured,
        model,
        scenario,
        price: model.price(scenario)?,
        chains: demand::chains(scenario, &measured.data),
        mean: mean(measured, model)?,
    };
    let least = scenario.min_servers;
    let mut servers = least;
    while servers <= MAX_SERVERS {
        let prediction = world.with(servers);
        let (limit, _) = prediction.limits();
        if limit.share <= 1.0 {
            return Ok(prediction);
        }
        // More servers help only what they share.
        if scenario.replicas == 0
            && servers > least
            && limit.share > 0.99 * world.with(servers - 1).limits().0.share
        {
            break;
        }
        servers += (servers / 20).max(1);
    }
    Ok(world.with(least))
}

fn mean(measured: &Measured, model: &Model) -> anyhow::Result<Mean> {
    let mut mean = Mean { cpu_ms: 0.0, gets: 0.0, blocks: 0.0, round_trips: 0.0, bytes: 0.0 };
    let shares: f64 = model.mix.iter().map(|part| part.share).sum();
    anyhow::ensure!((shares - 1.0).abs() < 1e-6, "the shares of the mix add up to {shares}, not to 1");
    for part in &model.mix {
        let kind = measured.request.iter().find(|kind| kind.name == part.request);
        let Some(kind) = kind else {
            anyhow::bail!("the mix names `{}`, which was not measured", part.request)
        };
        mean.cpu_ms += part.share * kind.cpu_ms;
        mean.gets += part.share * kind.gets;
        mean.blocks += part.share * kind.read_bytes / measured.data.cache_block_bytes;
        mean.round_trips += part.share * kind.round_trips;
        mean.bytes += part.share * kind.bytes;
    }
    Ok(mean)
}

impl World<'_> {
    fn with(&self, servers: u32) -> Prediction {
        let World { measured, model, scenario, price, chains, mean } = self;
        let (data, store, reader, writer) =
            (&measured.data, &measured.store, &measured.reader, &measured.writer);
        let machine = &model.machine;
        let replicas = self.replicas(servers);
        let hit_ratio = self.hit_ratio(servers, &replicas);
        let misses_per_request = mean.gets * (1.0 - hit_ratio);
        let missed_bytes = mean.blocks * data.cache_block_bytes * (1.0 - hit_ratio);

        let mut on = vec![Load::default(); servers.try_into().unwrap_or(usize::MAX)];
        let (mut polls, mut partition) = (0.0, (0.0_f64, 0.0_f64));
        let (mut commits_per_s, mut polled_bytes) = (0.0, 0.0);
        let placed = placement::place(&replicas, servers);
        for ((chain, places), replicas) in chains.iter().zip(&placed).zip(&replicas) {
            let holders = f64::from(*replicas);
            let commits = self.commits_per_s(chain);
            let rate = engine::polls_per_s(&scenario.polls, engine::poll_ms(reader, store.get_ms), commits);
            let gets = engine::server_gets_per_s(measured, rate, commits);
            let requests = chain.requests_per_s / holders;
            for &server in places {
                let load = &mut on[usize::try_from(server).unwrap_or_default()];
                load.chains += 1.0;
                load.requests += requests;
                load.gets += gets + requests * misses_per_request;
                load.log_mib += reader.views * reader.log_files / 2.0 * self.commit_bytes(chain)
                    / writer.log_files_per_block
                    / MIB;
            }
            polls += gets * holders;
            polled_bytes += holders * commits * reader.views * self.commit_bytes(chain);
            commits_per_s += commits;
            let misses = chain.requests_per_s * misses_per_request;
            let gets = gets * holders + misses + writer.idle_gets_per_s * scenario.writer_polls;
            let puts = commits * writer.puts_per_block;
            partition = (partition.0.max(gets), partition.1.max(puts));
        }

        let number = f64::from(scenario.chains);
        let txs_per_s: f64 = chains.iter().map(|chain| chain.txs_per_s).sum();
        let blocks_per_s: f64 = chains.iter().map(|chain| chain.blocks_per_s).sum();
        let gets = Gets {
            polls,
            misses: scenario.requests_per_s * misses_per_request,
            writers: number * writer.idle_gets_per_s * scenario.writer_polls,
        };
        let puts = commits_per_s * writer.puts_per_block;
        let lists = number * writer.idle_lists_per_s * scenario.writer_polls;
        let written = (txs_per_s * data.bytes_per_tx + blocks_per_s * data.bytes_per_block)
            * writer.write_amplification;
        let missed_bytes_per_s = scenario.requests_per_s * missed_bytes;

        let processes = number / scenario.chains_per_writer;
        let busy_txs_per_s: f64 = chains.iter().map(|chain| chain.txs_per_s.min(writer.txs_per_s)).sum();
        let writer_mib = processes * writer.memory_mib
            + (number - processes) * writer.further_chain_mib
            + busy_txs_per_s * writer.mib_per_tx_per_s;
        let writer_cores = (blocks_per_s * writer.cpu_ms_per_block
            + txs_per_s * writer.cpu_ms_per_tx
            + (gets.writers + puts + lists) * store.cpu_ms_per_request)
            / 1000.0;
        let writers =
            (writer_mib / 1024.0 / machine.memory_gib).max(writer_cores / machine.cores) / machine.target;

        let loads = on.iter().map(|load| load.requests).collect();
        let busiest = on.iter().fold(Load::default(), Load::most);
        let cores = (busiest.requests * mean.cpu_ms + busiest.gets * store.cpu_ms_per_request) / 1000.0;
        let memory = busiest.chains * reader.memory_mib + busiest.log_mib + reader.server_mib;
        let memory = memory / 1024.0 + scenario.cache_gib;
        let bits = 8.0 * busiest.requests * (mean.bytes + missed_bytes);
        // Requests that miss wait once for each read that depends on another one.
        let waiting = busiest.requests * mean.round_trips * (1.0 - hit_ratio) * store.get_ms / 1000.0;
        let uses = [
            ("CPU of a server", cores / machine.cores),
            ("memory of a server", memory / machine.memory_gib),
            ("network of a server", bits / 1e9 / machine.network_gbit_per_s),
            ("reads of a server that wait", waiting / reader.max_waiting),
            ("GETs of one chain", partition.0 / price.partition_gets_per_s),
            ("PUTs of one chain", partition.1 / price.partition_puts_per_s),
        ];
        let uses = uses.map(|(of, share)| Use { of, share: share / machine.target }).to_vec();

        let month = |per_s: f64, per_million: f64| monthly(per_s) / 1e6 * per_million;
        let hour = |machines: f64| machines * machine.hour * MONTH_HOURS;
        let stored: f64 = chains.iter().map(|chain| chain.txs * data.bytes_per_tx).sum();
        let cost = Cost {
            polls: month(gets.polls, price.get_per_million) + month(polled_bytes, price.gb_read / 1e3),
            misses: month(gets.misses, price.get_per_million)
                + month(missed_bytes_per_s, price.gb_read / 1e3),
            writes: month(puts + lists, price.put_per_million)
                + month(gets.writers, price.get_per_million)
                + month(written, price.gb_written / 1e3),
            storage: stored * data.space_amplification / 1e9 * price.gb_month,
            servers: hour(f64::from(servers)),
            writers: hour(writers),
        };
        let pause = |ms: f64| if scenario.polls.announced { 0.0 } else { ms };
        let lag = |ms| engine::lag_ms(measured, pause(ms), store.get_ms, store.put_ms);
        let open_gets = reader.gets_per_poll + reader.log_files / 2.0 * reader.gets_per_log_file;
        let open_ms = engine::open_ms(reader, reader.log_files / 2.0, store.get_ms);
        let start_s = (busiest.chains / reader.max_waiting).max(1.0) * open_ms / 1000.0;
        let start_cpu_s = busiest.chains * open_gets * store.cpu_ms_per_request / 1000.0 / machine.cores;
        let all_gets = gets.polls + gets.misses + gets.writers;
        let partitions =
            (all_gets / price.partition_gets_per_s).max((puts + lists) / price.partition_puts_per_s);
        Prediction {
            servers,
            partitions: partitions.ceil(),
            writers,
            hit_ratio,
            gets,
            puts,
            lists,
            uses,
            cost,
            lag_ms: (lag(scenario.polls.shortest_ms), lag(scenario.polls.longest_ms)),
            start_s: start_s.max(start_cpu_s),
            loads,
        }
    }

    /// Commits of a chain a second: of single blocks, unless they come faster than they may become durable.
    fn commits_per_s(&self, chain: &Chain) -> f64 {
        chain.blocks_per_s.min(self.scenario.max_commits_per_s)
    }

    /// Bytes of the rows of one commit.
    fn commit_bytes(&self, chain: &Chain) -> f64 {
        let data = &self.measured.data;
        let rows = chain.txs_per_s * data.bytes_per_tx + chain.blocks_per_s * data.bytes_per_block;
        rows / self.commits_per_s(chain)
    }

    /// Servers of each chain: more than the least where its requests take more than half of the CPU that is planned for.
    fn replicas(&self, servers: u32) -> Vec<u32> {
        let Scenario { replicas, .. } = *self.scenario;
        let machine = &self.model.machine;
        let of = |chain: &Chain| {
            if replicas == 0 {
                return servers;
            }
            let half = machine.cores * machine.target / 2.0;
            let mut enough = replicas;
            while f64::from(enough) * half < chain.requests_per_s * self.mean.cpu_ms / 1000.0
                && enough < servers
            {
                enough += 1;
            }
            enough.min(servers)
        };
        self.chains.iter().map(of).collect()
    }

    /// Hit ratio of a server's cache. The blocks of a chain are on a server with the probability that the chain is.
    fn hit_ratio(&self, servers: u32, replicas: &[u32]) -> f64 {
        let World { measured, scenario, mean, .. } = self;
        let data = &measured.data;
        let mut classes: Vec<Class> = Vec::new();
        for Group { first, number, mean: chain } in demand::groups(&self.chains) {
            let holders = f64::from(replicas[first]);
            let blocks = (chain.txs * data.bytes_per_tx / data.cache_block_bytes).max(1.0);
            let rate = chain.requests_per_s * mean.blocks / holders;
            let presence = number * holders / f64::from(servers);
            let of_chain = cache::zipf(blocks, scenario.block_zipf, rate);
            classes.extend(of_chain.iter().map(|class| Class { blocks: class.blocks * presence, ..*class }));
        }
        let capacity = scenario.cache_gib * 1024.0 * MIB / data.cache_block_bytes;
        cache::che(&classes, capacity).0
    }
}

/// What one server has.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    chains: f64,
    requests: f64,
    gets: f64,
    log_mib: f64,
}

impl Load {
    /// The maximum of each.
    fn most(self, other: &Self) -> Self {
        Self {
            chains: self.chains.max(other.chains),
            requests: self.requests.max(other.requests),
            gets: self.gets.max(other.gets),
            log_mib: self.log_mib.max(other.log_mib),
        }
    }
}
