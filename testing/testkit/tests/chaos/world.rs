//! One run: a chain, some endpoints of it, an index, and what happens to them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ingest::Config;
use node::{Endpoints, Limits, Node};
use replay::{Addresses, Fault, Options, Recording, ReplayNode};
use schema::nft::Questions;
use store::key::All;
use store::{MemStore, Order, RocksOptions, RocksStore, Store};
use tempfile::TempDir;
use testkit::crashing_store::CrashingStore;
use testkit::full_disk_store::FullDiskStore;
use testkit::indexed;
use testkit::live::Live;
use tokio::task::JoinHandle;
use web::app::App;

use crate::dice::Dice;
use crate::reader::{Read, Reader, Truths};

/// What transiently fails: any endpoint may, at any time.
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

/// As on a real node, whose state is one height behind its blocks now and then; here always, because few heights are asked
/// about their state.
const LAG: &str = "state-lag=400ms";
/// A chain's blocks while states lag.
const BLOCK_TIME: Duration = Duration::from_millis(60);

/// What is not true: never of the first endpoint. A header that is changed and hashed anew is not among it: at the head
/// nothing tells it from a true one before the next block does.
const LIES: [&str; 5] =
    ["lie-txs@0.3", "lie-header@0.3", "lie-results@0.3", "lie-receipts@0.3", "other-height@0.3"];

pub(crate) struct World {
    dice: Dice,
    /// The history that the chain has now.
    chain: Arc<Recording>,
    /// The height that it has.
    shown: u64,
    truths: Truths,
    nodes: Vec<ReplayNode>,
    disk: Arc<FullDiskStore>,
    disk_is_full: bool,
    life: Option<Life>,
    story: Vec<String>,
    kinds: Vec<&'static str>,
    /// Holds the database while the run lasts.
    _dir: Option<TempDir>,
}

/// An index that runs, or waits for what it takes to: a node, room on the disk.
struct Life {
    starting: Option<JoinHandle<Result<Live>>>,
    live: Option<Live>,
    ending: Arc<CrashingStore>,
}

impl Life {
    /// The index, as soon as it runs.
    async fn live(&mut self) -> Result<&mut Live> {
        if let Some(starting) = self.starting.take() {
            self.live = Some(starting.await??);
        }
        self.live.as_mut().context("it could not start")
    }

    /// The process ends at its next commit, or before it came to run.
    async fn end(mut self) -> Result<()> {
        self.ending.end();
        match self.starting.take() {
            Some(starting) if !starting.is_finished() => {
                starting.abort();
                // Aborted, it says so; it is over then, and that is all that counts.
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
        let name = *dice.pick(&["evm-scenario", "move-scenario"]);
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

    /// What happened, in order.
    pub(crate) fn story(&self) -> &[String] {
        &self.story
    }

    /// How many answers about state were those of the height before.
    pub(crate) fn lagged(&self) -> u64 {
        self.nodes.iter().map(ReplayNode::lagged).sum()
    }

    /// The kinds of events that happened.
    pub(crate) fn kinds(&self) -> &[&'static str] {
        &self.kinds
    }

    /// Lets things happen, then gives peace and compares. Gives what was read meanwhile.
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

    /// Starts an index on what there is.
    fn begin(&mut self) -> Result<()> {
        let mut all = Endpoints::default();
        for played in &self.nodes {
            let one = indexed::endpoints(played)?;
            all.comet.extend(one.comet);
            // State and receipts come from the first: of a node with another history they would be that history's, and no
            // header tells.
            if all.rest.is_empty() {
                (all.rest, all.json_rpc) = (one.rest, one.json_rpc);
            }
        }
        let limits = Limits { timeout: Duration::from_secs(5), ..Limits::default() };
        let ending = Arc::new(CrashingStore::after(u64::MAX, self.store()));
        // As a daemon's: results that are missing below the tip are no reason to end.
        let keep_trying = Some(Duration::from_millis(50));
        let config = Config { keep_trying, ..indexed::config(&self.chain)? };
        let node = Arc::new(Node::new(all, limits)?);
        let store = Arc::<CrashingStore>::clone(&ending);
        let starting = tokio::spawn(Live::start(node, config, store));
        self.life = Some(Life { starting: Some(starting), live: None, ending });
        Ok(())
    }

    /// Whether something is still to be asked about NFTs.
    fn has_questions(&self) -> Result<bool> {
        let store = self.store();
        let open = store::table::rows::<Questions>(&*store.snapshot()?, &All, Order::Asc, 1)?;
        Ok(!open.is_empty())
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

    /// The chain has more blocks.
    fn grow(&mut self) -> String {
        self.shown = self.dice.roll(self.shown, self.chain.last());
        self.show_all(self.shown);
        format!("grows to {}", self.shown)
    }

    /// The chain has more blocks, one after another, and the state of some of them lags on every endpoint. Only an index
    /// that is at the head asks while it does.
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

    /// The process ends at some commit, and is started again.
    async fn kill(&mut self) -> Result<Option<String>> {
        self.life.take().context("nothing runs")?.end().await?;
        self.begin()?;
        Ok(Some("killed".to_owned()))
    }

    /// An endpoint fails now and then.
    fn trouble(&mut self) -> Result<Option<String>> {
        let at = self.endpoint(0);
        let faults = [*self.dice.pick(&TROUBLES), *self.dice.pick(&TROUBLES)];
        self.set_faults(at, &faults)?;
        Ok(Some(format!("{at}: {}", faults.join(" "))))
    }

    /// An endpoint says what is not true.
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

    /// An endpoint has a history of its own, from below what is indexed: of two endpoints that differ about what is not
    /// indexed yet, nobody can say which is right.
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

    /// An endpoint is gone, or is there again. The first stays, or a liar would be alone.
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

    /// Every node lost its last blocks, and runs them again later.
    fn reset(&mut self) -> String {
        let to = self.dice.roll(self.chain.first(), self.shown);
        self.show_all(to);
        format!("reset to {to}")
    }

    /// The chain is restored from an older state, and has another history from there on.
    fn restore(&mut self) -> Result<Option<String>> {
        // What was never seen is no history that anybody could have read: the index is where the chain is, or behind.
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

    /// An endpoint, from the `first` on.
    fn endpoint(&mut self, first: u64) -> usize {
        usize::try_from(self.dice.roll(first, self.nodes.len() as u64 - 1)).unwrap_or(0)
    }

    fn set_faults(&mut self, at: usize, faults: &[&str]) -> Result<()> {
        let faults = faults.iter().map(|text| text.parse()).collect::<Result<Vec<Fault>, _>>()?;
        self.nodes[at].set_faults(faults);
        Ok(())
    }

    /// Everything is well again; the index must come to be what it would be if it always had been.
    async fn peace(&mut self) -> Result<()> {
        self.disk.set_full(false);
        for node in &self.nodes {
            node.set_faults(Vec::new());
            node.up();
            node.switch(Arc::clone(&self.chain), self.chain.last())?;
        }
        self.reach(self.chain.last()).await?;
        let mut life = self.life.take().context("nothing runs")?;
        // What the node could not say about NFTs in time comes after the blocks.
        let marks = &mut life.live().await?.marks;
        while self.has_questions()? {
            marks.moved().await;
        }
        life.live.context("nothing runs")?.stop().await?;
        let undisturbed: Arc<MemStore> = Arc::default();
        let played =
            ReplayNode::start(Arc::clone(&self.chain), Addresses::default(), Options::default()).await?;
        let (node, config) = (indexed::clients(&played)?, indexed::config(&self.chain)?);
        indexed::index_from(node, config, Arc::<MemStore>::clone(&undisturbed), self.chain.last()).await?;
        let (ours, theirs) = (indexed::digest(&*self.store())?, indexed::digest(&*undisturbed)?);
        let differ: Vec<_> = ours.iter().zip(&theirs).filter(|(a, b)| a != b).map(|(a, _)| a.table).collect();
        ensure!(differ.is_empty(), "these tables are not those of an undisturbed run: {differ:?}");
        Ok(())
    }
}
