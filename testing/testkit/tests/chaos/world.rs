//! One run: a chain, some endpoints of it, an index, and the events that affect them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ingest::Config;
use node::{Endpoints, Limits, Node};
use replay::{Addresses, Fault, Options, Recording, ReplayNode};
use schema::balances::BALANCES;
use schema::contracts::CONTRACTS;
use schema::digest::TableDigest;
use schema::index::Index;
use schema::ledger::LEDGER;
use schema::logs::LOGS;
use schema::packets::PACKETS;
use schema::parties::PARTIES;
use schema::tokens::TOKENS;
use store::{MemStore, RocksOptions, RocksStore, Store};
use tempfile::TempDir;
use testkit::crashing_store::CrashingStore;
use testkit::full_disk_store::FullDiskStore;
use testkit::indexed;
use testkit::live::Live;
use tokio::task::JoinHandle;
use web::app::App;

use crate::dice::Dice;
use crate::reader::{Read, Reader, Truths};

/// Transient faults, of any endpoint at any time.
const TROUBLES: [&str; 9] = [
    "delay=10ms@0.3",
    "429@0.1",
    "429=1s@0.02",
    "500@0.15",
    "cut@0.1",
    "hang-up@0.1",
    "stale=3@0.2",
    "json-rpc:null-receipts@0.3",
    "comet:no-results@0.2",
];

/// On a real node the state is sometimes one height behind its blocks; here always, because the state of few heights is
/// queried.
const LAG: &str = "state-lag=400ms";
/// A chain's blocks while states lag.
const BLOCK_TIME: Duration = Duration::from_millis(60);

/// False replies, never of the first endpoint. A changed header with its new hash is not included: at the head it
/// cannot be distinguished from a true one before the next block.
const LIES: [&str; 5] =
    ["lie-txs@0.3", "lie-header@0.3", "lie-results@0.3", "lie-receipts@0.3", "other-height@0.3"];

/// Optional indexes whose tables are compared too.
static OF_ALL: [Index; 3] = [LEDGER, TOKENS, PACKETS];
/// Those that follow from what only EVM chains have.
static OF_EVM: [Index; 3] = [LOGS, CONTRACTS, PARTIES];
/// On an EVM chain the rich list has the balances.
static OF_OTHERS: [Index; 1] = [BALANCES];

fn config(chain: &Recording) -> Result<Config> {
    let further: &[Index] = if chain.is_evm() { &OF_EVM } else { &OF_OTHERS };
    Ok(Config { indexes: OF_ALL.iter().chain(further).collect(), ..indexed::config(chain)? })
}

/// Waits until each index of `config` has the block `height`: those are behind the lanes while they are built from stored blocks, and
/// nothing announces them.
async fn reach_indexes(config: &Config, store: &dyn Store, height: u64) -> Result<()> {
    for index in &config.indexes {
        let reached = async {
            while index.state(&*store.snapshot()?)?.is_none_or(|state| state.height < height) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            anyhow::Ok(())
        };
        let waited = tokio::time::timeout(Duration::from_mins(1), reached).await;
        waited.with_context(|| format!("the index {} does not reach {height}", index.name))??;
    }
    Ok(())
}

pub(crate) struct World {
    dice: Dice,
    /// The current history of the chain.
    chain: Arc<Recording>,
    /// The current height.
    shown: u64,
    truths: Truths,
    nodes: Vec<ReplayNode>,
    disk: Arc<FullDiskStore>,
    disk_is_full: bool,
    life: Option<Life>,
    story: Vec<String>,
    kinds: Vec<&'static str>,
    /// Keeps the database for the duration of the run.
    _dir: Option<TempDir>,
}

/// An index that runs, or waits for a node or for disk space.
struct Life {
    starting: Option<JoinHandle<Result<Live>>>,
    live: Option<Live>,
    ending: Arc<CrashingStore>,
}

impl Life {
    /// The index, once it runs.
    async fn live(&mut self) -> Result<&mut Live> {
        if let Some(starting) = self.starting.take() {
            self.live = Some(starting.await??);
        }
        self.live.as_mut().context("it could not start")
    }

    /// Ends the process at its next commit, or before it runs.
    async fn end(mut self) -> Result<()> {
        self.ending.end();
        match self.starting.take() {
            Some(starting) if !starting.is_finished() => {
                starting.abort();
                // An abort is an error here; only the end of the task matters.
                drop(starting.await);
                Ok(())
            }
            starting => {
                self.starting = starting;
                self.live().await?;
                self.live.take().context("nothing runs")?.ended().await
            }
        }
    }
}

impl World {
    pub(crate) async fn new(seed: u64) -> Result<Self> {
        let mut dice = Dice::new(seed);
        let name = *dice.pick(&["evm-scenario", "move-scenario", "wasm-scenario"]);
        let chain = Arc::new(Recording::open(&testkit::recording(name))?);
        let shown = dice.roll(chain.first(), chain.first() + (chain.last() - chain.first()) / 2);
        let mut nodes = Vec::new();
        for _ in 0..dice.roll(1, 3) {
            let options = Options { up_to: Some(shown), seed: dice.roll(0, 1 << 40), ..Options::default() };
            nodes.push(ReplayNode::start(Arc::clone(&chain), Addresses::default(), options).await?);
        }
        let dir = (dice.roll(0, 3) == 0).then(tempfile::tempdir).transpose()?;
        let store: Arc<dyn Store> = match &dir {
            Some(dir) => Arc::new(RocksStore::open(dir.path(), schema::TABLES, RocksOptions::default())?),
            None => Arc::new(MemStore::new()),
        };
        let truths = Truths::default();
        truths.add(&chain);
        let story = vec![format!("{name} to {shown} by {} endpoints", nodes.len())];
        let disk = Arc::new(FullDiskStore::new(store));
        Ok(Self {
            dice,
            chain,
            shown,
            truths,
            nodes,
            disk,
            disk_is_full: false,
            life: None,
            story,
            kinds: Vec::new(),
            _dir: dir,
        })
    }

    /// The events, in order.
    pub(crate) fn story(&self) -> &[String] {
        &self.story
    }

    /// Number of replies from the state of the previous height.
    pub(crate) fn lagged(&self) -> u64 {
        self.nodes.iter().map(ReplayNode::lagged).sum()
    }

    /// The kinds of events that happened.
    pub(crate) fn kinds(&self) -> &[&'static str] {
        &self.kinds
    }

    /// Runs the events, then a quiet period, and compares. Returns the number of pages read meanwhile.
    pub(crate) async fn live_through(&mut self) -> Result<Read> {
        self.begin()?;
        self.reach(self.chain.first()).await?;
        let app = App::new(indexed::indexer(self.store())?, query::ENDPOINTS)?;
        let reader = Reader::start(app, self.truths.clone());
        for _ in 0..self.dice.roll(3, 8) {
            self.something_happens().await?;
            tokio::time::sleep(Duration::from_millis(self.dice.roll(0, 60))).await;
        }
        let ended = self.peace().await;
        let read =
            reader.stop().map_err(|wrong| anyhow::anyhow!("the API answered what is not true: {wrong}"));
        ended?;
        let read = read?;
        ensure!(read.with_blocks > 0 && read.second > 0, "nobody read a block: {read:?}");
        Ok(read)
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<FullDiskStore>::clone(&self.disk)
    }

    /// Starts an index on the current database.
    fn begin(&mut self) -> Result<()> {
        let mut all = Endpoints::default();
        for played in &self.nodes {
            let one = indexed::endpoints(played)?;
            all.comet.extend(one.comet);
            // State and receipts come from the first endpoint: a node with another history would answer from that
            // history, and no header proves them.
            if all.rest.is_empty() {
                (all.rest, all.json_rpc) = (one.rest, one.json_rpc);
            }
        }
        let limits = Limits { timeout: Duration::from_secs(5), ..Limits::default() };
        let ending = Arc::new(CrashingStore::after(u64::MAX, self.store()));
        // As in a daemon, results missing below the tip do not end the index.
        let keep_trying = Some(Duration::from_millis(50));
        let config = Config { keep_trying, ..config(&self.chain)? };
        let node = Arc::new(Node::new(all, limits)?);
        let store = Arc::<CrashingStore>::clone(&ending);
        let starting = tokio::spawn(Live::start(node, config, store));
        self.life = Some(Life { starting: Some(starting), live: None, ending });
        Ok(())
    }

    /// Whether queries about NFTs are pending.
    fn has_questions(&self) -> Result<bool> {
        testkit::indexed::has_questions(&*self.store())
    }

    /// Waits until the index has `height` of the chain.
    async fn reach(&mut self, height: u64) -> Result<()> {
        let life = self.life.as_mut().context("nothing runs")?;
        life.live().await?.reach(&self.chain, height).await
    }

    async fn something_happens(&mut self) -> Result<()> {
        let kind = *self.dice.pick(&[
            "grow",
            "grow",
            "lag",
            "kill",
            "trouble",
            "trouble",
            "lie",
            "stray",
            "down",
            "disk full",
            "reset",
            "restore",
        ]);
        let what = match kind {
            "grow" => Some(self.grow()),
            "lag" => self.lag().await?,
            "kill" => self.kill().await?,
            "trouble" => self.trouble()?,
            "lie" => self.lie()?,
            "stray" => self.stray().await?,
            "down" => Some(self.down()),
            "disk full" => Some(self.disk_full()),
            "reset" => Some(self.reset()),
            _ => self.restore()?,
        };
        if let Some(what) = what {
            self.kinds.push(kind);
            self.story.push(what);
        }
        Ok(())
    }

    /// The chain grows.
    fn grow(&mut self) -> String {
        self.shown = self.dice.roll(self.shown, self.chain.last());
        self.show_all(self.shown);
        format!("grows to {}", self.shown)
    }

    /// The chain grows block by block, and the state of some heights lags on every endpoint. Only an index at the head
    /// queries it meanwhile.
    async fn lag(&mut self) -> Result<Option<String>> {
        if self.disk_is_full {
            return Ok(None);
        }
        self.nodes[0].up();
        self.show_all(self.shown);
        self.reach(self.shown).await?;
        for at in 0..self.nodes.len() {
            self.set_faults(at, &[LAG])?;
        }
        for height in self.shown..self.chain.last().min(self.shown + self.dice.roll(5, 30)) {
            self.shown = height + 1;
            self.show_all(self.shown);
            tokio::time::sleep(BLOCK_TIME).await;
        }
        Ok(Some(format!("{LAG} to {}", self.shown)))
    }

    fn show_all(&self, height: u64) {
        for node in &self.nodes {
            node.show(height.clamp(node.recording().first(), node.recording().last())).unwrap();
        }
    }

    /// The process ends at a commit and is restarted.
    async fn kill(&mut self) -> Result<Option<String>> {
        self.life.take().context("nothing runs")?.end().await?;
        self.begin()?;
        Ok(Some("killed".to_owned()))
    }

    /// An endpoint fails intermittently.
    fn trouble(&mut self) -> Result<Option<String>> {
        let at = self.endpoint(0);
        let faults = [*self.dice.pick(&TROUBLES), *self.dice.pick(&TROUBLES)];
        self.set_faults(at, &faults)?;
        Ok(Some(format!("{at}: {}", faults.join(" "))))
    }

    /// An endpoint gives a false reply.
    fn lie(&mut self) -> Result<Option<String>> {
        if self.nodes.len() < 2 {
            return Ok(None);
        }
        let at = self.endpoint(1);
        let lie = *self.dice.pick(&LIES);
        self.set_faults(at, &[lie])?;
        self.nodes[0].up();
        Ok(Some(format!("{at}: {lie}")))
    }

    /// An endpoint has another history, from below the indexed height: if two endpoints differ above it, there is no
    /// evidence which is right.
    async fn stray(&mut self) -> Result<Option<String>> {
        if self.nodes.len() < 2 || self.shown <= self.chain.first() + 1 || self.disk_is_full {
            return Ok(None);
        }
        self.nodes[0].up();
        self.show_all(self.shown);
        self.reach(self.shown).await?;
        let at = self.endpoint(1);
        let from = self.dice.roll(self.chain.first(), self.shown - 1);
        let own = self.chain.forked(from, self.dice.roll(1, 1 << 40))?;
        let height = self.dice.roll(from, own.last());
        self.nodes[at].switch(Arc::new(own), height)?;
        Ok(Some(format!("{at}: strays from {from} on, to {height}")))
    }

    /// An endpoint goes down, or comes up again. The first stays up, because otherwise only a false endpoint could
    /// remain.
    fn down(&mut self) -> String {
        let first = u64::from(self.nodes.len() > 1);
        let at = self.endpoint(first);
        let goes = self.dice.roll(0, 1) == 0;
        if goes {
            self.nodes[at].down();
        } else {
            self.nodes[at].up();
        }
        format!("{at}: {}", if goes { "down" } else { "up" })
    }

    fn disk_full(&mut self) -> String {
        let full = self.dice.roll(0, 1) == 0;
        self.disk.set_full(full);
        self.disk_is_full = full;
        format!("disk {}", if full { "full" } else { "has room" })
    }

    /// Every node loses its last blocks, and executes them again later.
    fn reset(&mut self) -> String {
        let to = self.dice.roll(self.chain.first(), self.shown);
        self.show_all(to);
        format!("reset to {to}")
    }

    /// The chain is restored from an older state, and has another history above it.
    fn restore(&mut self) -> Result<Option<String>> {
        // Heights that were never shown belong to no history that a client could have read: the index is at the shown
        // height or below.
        let from = self.dice.roll(self.chain.first(), self.shown);
        let chain = Arc::new(self.chain.forked(from, self.dice.roll(1, 1 << 40))?);
        self.truths.add(&chain);
        self.shown = self.dice.roll(from, chain.last());
        for node in &self.nodes {
            node.switch(Arc::clone(&chain), self.shown)?;
        }
        self.chain = chain;
        Ok(Some(format!("restored from {from} on, to {}", self.shown)))
    }

    /// An endpoint with an index of at least `first`.
    fn endpoint(&mut self, first: u64) -> usize {
        usize::try_from(self.dice.roll(first, self.nodes.len() as u64 - 1)).unwrap_or(0)
    }

    fn set_faults(&mut self, at: usize, faults: &[&str]) -> Result<()> {
        let faults = faults.iter().map(|text| text.parse()).collect::<Result<Vec<Fault>, _>>()?;
        self.nodes[at].set_faults(faults);
        Ok(())
    }

    /// All faults end; the index must become equal to that of an undisturbed run.
    async fn peace(&mut self) -> Result<()> {
        self.disk.set_full(false);
        for node in &self.nodes {
            node.set_faults(Vec::new());
            node.up();
            node.switch(Arc::clone(&self.chain), self.chain.last())?;
        }
        self.reach(self.chain.last()).await?;
        let mut life = self.life.take().context("nothing runs")?;
        // Late replies about NFTs follow after the blocks.
        let progress = &mut life.live().await?.progress;
        while self.has_questions()? {
            progress.moved().await;
        }
        let (config, last) = (config(&self.chain)?, self.chain.last());
        reach_indexes(&config, &*self.store(), last).await?;
        life.live.context("nothing runs")?.stop().await?;
        let undisturbed: Arc<dyn Store> = Arc::new(MemStore::new());
        let played =
            ReplayNode::start(Arc::clone(&self.chain), Addresses::default(), Options::default()).await?;
        let node = Arc::new(indexed::clients(&played)?);
        let mut calm = Live::start(node, config.clone(), Arc::clone(&undisturbed)).await?;
        calm.reach(&self.chain, last).await?;
        while indexed::has_questions(&*undisturbed)? {
            calm.progress.moved().await;
        }
        reach_indexes(&config, &*undisturbed, last).await?;
        calm.stop().await?;
        let (ours, theirs) = (indexed::digest(&*self.store())?, indexed::digest(&*undisturbed)?);
        let names = |digests: &[TableDigest]| digests.iter().map(|digest| digest.table).collect::<Vec<_>>();
        ensure!(names(&ours) == names(&theirs), "other tables than those of an undisturbed run");
        let differ: Vec<_> = ours.iter().zip(&theirs).filter(|(a, b)| a != b).collect();
        ensure!(differ.is_empty(), "these tables are not those of an undisturbed run: {differ:?}");
        for (table, of) in [("account_movement", true), ("balance_token", !self.chain.is_evm())] {
            let digest = ours.iter().find(|digest| digest.table == table);
            ensure!(!of || digest.is_some_and(|digest| digest.rows > 0), "{table} is empty");
        }
        Ok(())
    }
}
