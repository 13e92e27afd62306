//! Metadata questions of a block: planned from its events, and asked before the block is committed.
//!
//! Blocks are derived in any order, but their questions are planned in the order of heights: a subject that a lower
//! uncommitted block reveals is not asked about again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chain::Account;
use chain::nft::{NftEvent, TokenRef, Updated};
use node::Probe;
use schema::keys::AccountKey;
use schema::meta::{self, BlockLane};
use schema::nft::{About, Collections, ObjectTokens, Refusals, Subject, TokenKey, Tokens};
use store::key::Text;
use store::{Snapshot, Store};
use tokio::sync::watch;
use tokio::time::timeout;

use super::client::MetadataClient;
use super::{NftAt, QuestionKey, Replies, Reply};
use crate::Error;

/// Time that a block waits for answers about its NFTs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The same while the node is unresponsive: it must not delay blocks. The backfill detects its recovery.
const SHORT_ANSWER_TIMEOUT: Duration = Duration::from_millis(200);

/// Fetches the metadata that blocks need.
pub(crate) struct MetadataFetcher {
    client: Arc<MetadataClient>,
    store: Arc<dyn Store>,
    /// True if the index began after the chain: it lacks some collections and tokens.
    mid_chain: bool,
    /// The height to be planned next.
    turn: watch::Sender<u64>,
    in_flight: Mutex<InFlight>,
}

/// Subjects that uncommitted blocks reveal or ask about, each with the block's height.
type InFlight = HashMap<QuestionKey, u64>;

/// The questions of one block.
#[derive(Default)]
struct Plan {
    subjects: Vec<About>,
    /// Each token with its collection, which may turn out not to be one.
    uris: Vec<(Account, About)>,
}

impl MetadataFetcher {
    /// For a lane that starts at `next`.
    pub(crate) fn new(
        client: Arc<MetadataClient>,
        store: Arc<dyn Store>,
        mid_chain: bool,
        next: u64,
    ) -> Self {
        Self { client, store, mid_chain, turn: watch::Sender::new(next), in_flight: Mutex::default() }
    }

    /// The replies about `nfts` of `height` (`probe` is of its block); answers that the node cannot give now are
    /// missing. Call it for each height, and again if the height turns out to have other events.
    pub(crate) async fn ask(
        &self,
        height: u64,
        probe: Option<&Probe>,
        nfts: &[NftAt],
    ) -> Result<Replies, Error> {
        // The sender is ours, so this cannot fail.
        drop(self.turn.subscribe().wait_for(|turn| *turn >= height).await);
        let plan = if nfts.is_empty() || !self.client.can_ask() {
            Plan::default()
        } else {
            let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
            // The events of the height may have changed.
            in_flight.retain(|_, of| *of != height);
            self.plan(height, nfts, &mut in_flight)?
        };
        // A height that is planned again does not advance the turn.
        self.turn.send_if_modified(|turn| {
            let first = *turn <= height;
            if first {
                *turn = height + 1;
            }
            first
        });
        let mut answers = Replies::new();
        let at = (height, probe);
        self.put(at, plan.subjects, &mut answers).await;
        self.put(at, self.collections_of_objects(&answers)?, &mut answers).await;
        let is_one = |collection: &Account| match answers.get(&QuestionKey::Collection(*collection)) {
            Some(reply) => matches!(reply, Reply::Collection { .. }),
            None => true,
        };
        let uris = plan.uris.into_iter().filter(|(collection, _)| is_one(collection));
        let uris = uris.map(|(_, about)| about).collect();
        self.put(at, uris, &mut answers).await;
        Ok(answers)
    }

    /// Asks once. Questions without a reply are left to the backfill: a block waits neither for the node's state nor
    /// for the repair of a node.
    async fn put(
        &self,
        (height, probe): (u64, Option<&Probe>),
        questions: Vec<About>,
        answers: &mut Replies,
    ) {
        if questions.is_empty() {
            return;
        }
        let limit = if self.client.is_unresponsive() { SHORT_ANSWER_TIMEOUT } else { ANSWER_TIMEOUT };
        let Ok(replies) = timeout(limit, self.client.ask(height, probe, &questions)).await else {
            self.client.give_up();
            return;
        };
        for (about, reply) in questions.iter().zip(replies) {
            let key = QuestionKey::about(about);
            answers.extend(key.zip(reply.ok()));
        }
    }

    /// Plans the questions about `nfts`, and records the subjects that they reveal as in flight.
    fn plan(&self, height: u64, nfts: &[NftAt], in_flight: &mut InFlight) -> Result<Plan, Error> {
        let snapshot = self.store.snapshot()?;
        let committed: BlockLane = meta::read(&*snapshot)?.unwrap_or_default();
        in_flight.retain(|_, of| *of > committed.height);
        let owners = final_owners(nfts);
        let mut plan = Plan::default();
        for nft in nfts {
            for key in self.open(height, &nft.event, &*snapshot, in_flight)? {
                in_flight.insert(key.clone(), height);
                match key {
                    QuestionKey::Collection(collection) => {
                        plan.subjects.push(About::Collection(subject(collection, &owners)));
                    }
                    QuestionKey::Object(object) => plan.subjects.push(About::Object(bare_subject(object))),
                    QuestionKey::Uri(collection, token_id) => {
                        let key = (collection, token_id);
                        // A token that is burnt by the end of the block has no URI then.
                        if owners.get(&key).is_none_or(Option::is_some) {
                            let (collection, token_id) = (collection.as_bytes().to_vec(), key.1);
                            let about = About::Uri(TokenKey { collection, token_id, object: Vec::new() });
                            plan.uris.push((key.0, about));
                        }
                    }
                }
            }
            in_flight.extend(revealed(&nft.event).into_iter().map(|key| (key, height)));
        }
        Ok(plan)
    }

    /// The subjects of an event that are still unknown.
    fn open(
        &self,
        height: u64,
        event: &NftEvent,
        snapshot: &dyn Snapshot,
        in_flight: &InFlight,
    ) -> Result<Vec<QuestionKey>, Error> {
        let mut open = Vec::new();
        if let Some(collection) = collection_of(event) {
            let (key, owner) = (QuestionKey::Collection(collection), AccountKey(collection));
            let is_known = in_flight.contains_key(&key)
                || store::table::read::<Collections>(snapshot, &owner)?.is_some();
            if !is_known {
                match Refusals::read(snapshot, owner)? {
                    Some(refusals) if !self.client.asks_again() || !refusals.may_ask(height) => {
                        return Ok(open);
                    }
                    // It has no token whose metadata could change.
                    None if matches!(event, NftEvent::Metadata { .. }) => return Ok(open),
                    _ => open.push(key),
                }
            }
        }
        match event {
            NftEvent::Mint { collection, token_id, uri, object, .. } => match (object, token_id, uri) {
                (Some(_), Some(_), Some(_)) => {}
                (Some(object), ..) => open.push(QuestionKey::Object(*object)),
                // A token that is minted again may have another URI.
                (None, Some(token_id), None) => open.push(QuestionKey::Uri(*collection, token_id.clone())),
                (None, ..) => {}
            },
            NftEvent::Transfer { token: TokenRef::Id { collection, token_id }, .. } => {
                let key = QuestionKey::Uri(*collection, token_id.clone());
                let row = (AccountKey(*collection), Text(token_id.clone()));
                if !in_flight.contains_key(&key) && store::table::read::<Tokens>(snapshot, &row)?.is_none() {
                    open.push(key);
                }
            }
            NftEvent::Transfer { token: TokenRef::Object(object), .. } if self.mid_chain => {
                let key = QuestionKey::Object(*object);
                if !in_flight.contains_key(&key) && !is_known_object(snapshot, *object)? {
                    open.push(key);
                }
            }
            NftEvent::Metadata { collection, tokens: Updated::Token(token_id) } => {
                let key = QuestionKey::Uri(*collection, token_id.clone());
                let row = (AccountKey(*collection), Text(token_id.clone()));
                // The state at the end of the block is asked only once.
                let is_new = in_flight.get(&key).is_none_or(|of| *of != height);
                let exists =
                    in_flight.contains_key(&key) || store::table::read::<Tokens>(snapshot, &row)?.is_some();
                if is_new && exists {
                    open.push(key);
                }
            }
            // The other events are about known subjects, or are irrelevant.
            NftEvent::Create { .. }
            | NftEvent::Instantiate { .. }
            | NftEvent::Transfer { .. }
            | NftEvent::Burn { .. }
            | NftEvent::SetUri { .. }
            | NftEvent::Metadata { .. }
            | NftEvent::Unread { .. }
            | NftEvent::ClassName { .. } => {}
        }
        Ok(open)
    }

    /// The collections of the tokens in `answers`, if they are unknown.
    fn collections_of_objects(&self, answers: &Replies) -> Result<Vec<About>, Error> {
        let snapshot = self.store.snapshot()?;
        let mut questions = Vec::new();
        let mut seen = HashSet::new();
        for reply in answers.values() {
            if let Reply::Token { collection, .. } = reply
                && seen.insert(*collection)
                && !answers.contains_key(&QuestionKey::Collection(*collection))
                && !is_classified(&*snapshot, *collection)?
            {
                questions.push(About::Collection(bare_subject(*collection)));
            }
        }
        Ok(questions)
    }
}

/// The collection that an event refers to without creating it.
fn collection_of(event: &NftEvent) -> Option<Account> {
    match event {
        NftEvent::Instantiate { collection }
        | NftEvent::Mint { collection, .. }
        | NftEvent::Metadata { collection, .. }
        | NftEvent::Transfer { token: TokenRef::Id { collection, .. }, .. } => Some(*collection),
        NftEvent::Create { .. }
        | NftEvent::Transfer { .. }
        | NftEvent::Burn { .. }
        | NftEvent::Unread { .. }
        | NftEvent::SetUri { .. }
        | NftEvent::ClassName { .. } => None,
    }
}

/// The subjects that an event reveals.
fn revealed(event: &NftEvent) -> Vec<QuestionKey> {
    match event {
        NftEvent::Create { collection, .. } => vec![QuestionKey::Collection(*collection)],
        NftEvent::Mint { collection, token_id, object, .. } => {
            let uri = token_id.iter().map(|token_id| QuestionKey::Uri(*collection, token_id.clone()));
            uri.chain(object.map(QuestionKey::Object)).collect()
        }
        _ => Vec::new(),
    }
}

/// The final owner of each token whose id the events contain; `None` if it is burnt.
pub(crate) fn final_owners(nfts: &[NftAt]) -> HashMap<(Account, String), Option<Account>> {
    let mut owners = HashMap::new();
    for nft in nfts {
        match &nft.event {
            NftEvent::Mint { collection, token_id: Some(token_id), owner, .. } => {
                owners.insert((*collection, token_id.clone()), *owner);
            }
            NftEvent::Transfer { token: TokenRef::Id { collection, token_id }, to } => {
                owners.insert((*collection, token_id.clone()), Some(*to));
            }
            NftEvent::Burn { token: TokenRef::Id { collection, token_id } } => {
                owners.insert((*collection, token_id.clone()), None);
            }
            _ => {}
        }
    }
    owners
}

/// A collection as the subject of a question, with one of its tokens to test it with: the first by id among those that
/// are not burnt, so that the choice is deterministic.
pub(crate) fn subject(collection: Account, owners: &HashMap<(Account, String), Option<Account>>) -> Subject {
    let left = owners.iter().filter(|((of, _), _)| *of == collection);
    let left = left.filter_map(|((_, id), owner)| owner.map(|owner| (id, owner)));
    let (token_id, owner) = match left.min_by(|(a, _), (b, _)| a.cmp(b)) {
        Some((id, owner)) => (id.clone(), owner.as_bytes().to_vec()),
        None => Default::default(),
    };
    Subject { token_id, owner, ..bare_subject(collection) }
}

/// An address as the subject of a question, without a token to test it with.
pub(crate) fn bare_subject(address: Account) -> Subject {
    Subject { address: address.as_bytes().to_vec(), ..Subject::default() }
}

/// True if the collection is known to exist or not to exist.
fn is_classified(snapshot: &dyn Snapshot, collection: Account) -> Result<bool, Error> {
    let owner = AccountKey(collection);
    Ok(store::table::read::<Collections>(snapshot, &owner)?.is_some()
        || Refusals::read(snapshot, owner)?.is_some())
}

fn is_known_object(snapshot: &dyn Snapshot, object: Account) -> Result<bool, Error> {
    let owner = AccountKey(object);
    Ok(store::table::read::<ObjectTokens>(snapshot, &owner)?.is_some()
        || Refusals::read(snapshot, owner)?.is_some())
}
