//! Move's NFTs: the standard library's events, joined within their transaction, and its resources.
//!
//! One mint is three events: the object with its owner, the mint, the token with its URI. Only the framework at `0x1`
//! can emit them, so their values are correct; an object's owner is tracked until the mint, which may come after a
//! transfer.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{NftEvent, TokenRef, Updated};
use crate::address::Account;
use crate::comet::Event;
use crate::sanitize::{Text, bounded, without_nuls};
use crate::serde_lenient::JsonText;

/// State of one transaction that its later events need.
#[derive(Default)]
pub(super) struct Joins {
    tx: Option<usize>,
    /// Owners of the objects that it created.
    owners: FxHashMap<Account, Account>,
    /// Mints without a URI so far: their positions in the list.
    open: FxHashMap<(Account, String), usize>,
    /// Collections that it created: newer standard libraries emit two events for each.
    made: FxHashSet<Account>,
}

/// The members of all relevant events; each event has some of them.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Data<'a> {
    collection: Option<JsonText<'a>>,
    creator: Option<JsonText<'a>>,
    name: JsonText<'a>,
    nft: Option<JsonText<'a>>,
    object: Option<JsonText<'a>>,
    owner: Option<JsonText<'a>>,
    to: Option<JsonText<'a>>,
    token_id: Option<JsonText<'a>>,
    uri: JsonText<'a>,
    mutated_field_name: JsonText<'a>,
    new_value: JsonText<'a>,
}

/// The types whose data is worth parsing: most events are about fungible assets.
const TYPES: [&str; 9] = [
    "collection::CreateCollectionEvent",
    "collection::CreateEvent",
    "collection::MintEvent",
    "collection::BurnEvent",
    "collection::MutationEvent",
    "nft::CreateEvent",
    "nft::MutationEvent",
    "object::CreateEvent",
    "object::TransferEvent",
];

impl Joins {
    /// Adds the NFT event in an event of type `move`.
    pub(super) fn read(
        &mut self,
        tx: Option<usize>,
        event: &Event<'_>,
        out: &mut Vec<(Option<usize>, NftEvent)>,
    ) {
        if self.tx != tx {
            *self = Self { tx, ..Self::default() };
        }
        // The first value of each key: a field of the struct may have the same name, and its attribute comes later.
        let tag = event.value("type_tag").and_then(|tag| framework_type(tag));
        let Some(kind) = tag.filter(|kind| TYPES.contains(kind)) else { return };
        let Some(Ok(data)) = event.value("data").map(|data| serde_json::from_str::<Data<'_>>(data)) else {
            return;
        };
        let nft_event = match kind {
            "collection::CreateCollectionEvent" | "collection::CreateEvent" => self.create(&data),
            "collection::MintEvent" => self.mint(&data, out.len()),
            "collection::BurnEvent" => account(data.nft.as_deref()).map(burn),
            "collection::MutationEvent" => rename(&data),
            "nft::MutationEvent" => mutate(&data),
            "nft::CreateEvent" => self.describe(&data, out),
            "object::TransferEvent" => self.transfer(&data),
            _ => self.own(&data),
        };
        out.extend(nft_event.map(|nft_event| (tx, nft_event)));
    }

    fn create(&mut self, data: &Data<'_>) -> Option<NftEvent> {
        let (collection, creator) = (account(data.collection.as_deref())?, account(data.creator.as_deref())?);
        let name = without_nuls(&data.name);
        self.made.insert(collection).then_some(NftEvent::Create { collection, creator, name })
    }

    /// A mint that will be at this position of the list.
    fn mint(&mut self, data: &Data<'_>, at: usize) -> Option<NftEvent> {
        let (collection, object) = (account(data.collection.as_deref())?, account(data.nft.as_deref())?);
        let token_id = data.token_id.as_deref().map(without_nuls);
        if let Some(token_id) = &token_id {
            self.open.insert((collection, token_id.clone()), at);
        }
        let owner = self.owners.get(&object).copied();
        Some(NftEvent::Mint { collection, token_id, object: Some(object), owner, uri: None })
    }

    /// Completes the mint that this token belongs to.
    fn describe(&mut self, data: &Data<'_>, out: &mut [(Option<usize>, NftEvent)]) -> Option<NftEvent> {
        let token = (account(data.collection.as_deref())?, data.token_id.as_deref().map(without_nuls)?);
        if let Some((_, NftEvent::Mint { uri, .. })) = self.open.remove(&token).and_then(|at| out.get_mut(at))
        {
            *uri = Some(without_nuls(&data.uri));
        }
        None
    }

    fn transfer(&mut self, data: &Data<'_>) -> Option<NftEvent> {
        let (object, to) = (account(data.object.as_deref())?, account(data.to.as_deref())?);
        if let Some(owner) = self.owners.get_mut(&object) {
            *owner = to;
        }
        Some(NftEvent::Transfer { token: TokenRef::Object(object), to })
    }

    fn own(&mut self, data: &Data<'_>) -> Option<NftEvent> {
        self.owners.insert(account(data.object.as_deref())?, account(data.owner.as_deref())?);
        None
    }
}

fn burn(object: Account) -> NftEvent {
    NftEvent::Burn { token: TokenRef::Object(object) }
}

fn rename(data: &Data<'_>) -> Option<NftEvent> {
    let collection = account(data.collection.as_deref()).filter(|_| data.mutated_field_name == "name")?;
    Some(NftEvent::Metadata { collection, tokens: Updated::Name })
}

fn mutate(data: &Data<'_>) -> Option<NftEvent> {
    let object = account(data.nft.as_deref()).filter(|_| data.mutated_field_name == "uri")?;
    Some(NftEvent::SetUri { object, uri: without_nuls(&data.new_value) })
}

fn account(text: Option<&str>) -> Option<Account> {
    Account::from_hex_literal(text?)
}

/// The part after `0x1::` in the tag of a framework's type; the address may have its leading zeros.
fn framework_type(tag: &str) -> Option<&str> {
    tag.strip_prefix("0x")?.trim_start_matches('0').strip_prefix("1::")
}

/// The resource `0x1::nft::Nft` of a token's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NftResource {
    /// The collection that it belongs to.
    pub collection: Account,
    /// Its id, without NULs.
    pub token_id: String,
    /// Its URI.
    pub uri: Text,
}

/// The resource `0x1::collection::Collection` of a collection's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionResource {
    /// Its creator.
    pub creator: Account,
    /// Its name.
    pub name: Text,
}

/// Reads the answer of `/initia/move/v1/accounts/{object}/resources/by_struct_tag?struct_tag=0x1::nft::Nft`.
pub fn nft_resource(answer: &[u8]) -> Option<NftResource> {
    #[derive(Deserialize)]
    struct Nft {
        collection: Object,
        token_id: String,
        uri: String,
    }
    #[derive(Deserialize)]
    struct Object {
        inner: String,
    }
    let nft: Nft = resource(answer)?;
    let (token_id, uri) = (bounded(&nft.token_id).plain()?, bounded(&nft.uri));
    Some(NftResource { collection: Account::from_hex_literal(&nft.collection.inner)?, token_id, uri })
}

/// Reads the answer of
/// `/initia/move/v1/accounts/{object}/resources/by_struct_tag?struct_tag=0x1::collection::Collection`.
pub fn collection_resource(answer: &[u8]) -> Option<CollectionResource> {
    #[derive(Deserialize)]
    struct Collection {
        creator: String,
        name: String,
    }
    let collection: Collection = resource(answer)?;
    let creator = Account::from_hex_literal(&collection.creator)?;
    Some(CollectionResource { creator, name: bounded(&collection.name) })
}

/// Reads the owner in the answer of
/// `/initia/move/v1/accounts/{object}/resources/by_struct_tag?struct_tag=0x1::object::ObjectCore`.
pub fn object_owner(answer: &[u8]) -> Option<Account> {
    #[derive(Deserialize)]
    struct Object {
        owner: String,
    }
    Account::from_hex_literal(&resource::<Object>(answer)?.owner)
}

/// The node returns a resource as JSON in a JSON string.
fn resource<T: DeserializeOwned>(answer: &[u8]) -> Option<T> {
    #[derive(Deserialize)]
    struct Answer {
        resource: Resource,
    }
    #[derive(Deserialize)]
    struct Resource {
        move_resource: String,
    }
    #[derive(Deserialize)]
    struct Annotated<T> {
        data: T,
    }
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    serde_json::from_str::<Annotated<T>>(&answer.resource.move_resource).ok().map(|resource| resource.data)
}
