//! Encoding of the NFT events that wait for a reply.

use chain::Account;
use chain::nft::{NftEvent, TokenRef, Updated};
use schema::nft::PendingEvent;
use schema::nft::renewal::{decode_range, encode_range};

/// Kinds of [`PendingEvent`].
const INSTANTIATE: u32 = 0;
const MINT: u32 = 1;
const TRANSFER: u32 = 2;
const BURN: u32 = 3;
const SET_URI: u32 = 4;
const METADATA: u32 = 5;
const NAME: u32 = 6;

/// A waiting event in its stored form.
pub(super) fn encode(event: &NftEvent, tx: u64, time: i64) -> PendingEvent {
    let bytes = |account: &Account| account.as_bytes().to_vec();
    let of = |token: &TokenRef| match token {
        TokenRef::Id { collection, token_id } => PendingEvent {
            collection: bytes(collection),
            token_id: Some(token_id.clone()),
            ..PendingEvent::default()
        },
        TokenRef::Object(object) => PendingEvent { object: bytes(object), ..PendingEvent::default() },
    };
    let row = match event {
        NftEvent::Instantiate { collection } => {
            PendingEvent { kind: INSTANTIATE, collection: bytes(collection), ..PendingEvent::default() }
        }
        NftEvent::Mint { collection, token_id, object, owner, uri } => PendingEvent {
            kind: MINT,
            collection: bytes(collection),
            token_id: token_id.clone(),
            object: object.as_ref().map(bytes).unwrap_or_default(),
            owner: owner.as_ref().map(bytes).unwrap_or_default(),
            uri: uri.clone(),
            ..PendingEvent::default()
        },
        NftEvent::Transfer { token, to } => PendingEvent { kind: TRANSFER, owner: bytes(to), ..of(token) },
        NftEvent::Burn { token } => PendingEvent { kind: BURN, ..of(token) },
        NftEvent::SetUri { object, uri } => PendingEvent {
            kind: SET_URI,
            object: bytes(object),
            uri: Some(uri.clone()),
            ..PendingEvent::default()
        },
        NftEvent::Metadata { collection, tokens } => {
            let row =
                PendingEvent { kind: METADATA, collection: bytes(collection), ..PendingEvent::default() };
            match tokens {
                Updated::Token(token_id) => PendingEvent { token_id: Some(token_id.clone()), ..row },
                Updated::Range(first, last) => PendingEvent { range: encode_range(*first, *last), ..row },
                Updated::All => row,
                Updated::Name => PendingEvent { kind: NAME, ..row },
            }
        }
        // Such events change no token, and never wait.
        NftEvent::Create { .. } | NftEvent::Unread { .. } | NftEvent::ClassName { .. } => {
            PendingEvent::default()
        }
    };
    PendingEvent { tx, time, ..row }
}

/// The event of a stored row; `None` if it is malformed.
pub(super) fn decode(row: &PendingEvent) -> Option<NftEvent> {
    let collection = Account::from_bytes(&row.collection);
    let object = Account::from_bytes(&row.object);
    let owner = Account::from_bytes(&row.owner);
    let token = || match (collection, &row.token_id) {
        (Some(collection), Some(token_id)) => Some(TokenRef::Id { collection, token_id: token_id.clone() }),
        _ => object.map(TokenRef::Object),
    };
    Some(match row.kind {
        INSTANTIATE => NftEvent::Instantiate { collection: collection? },
        MINT => NftEvent::Mint {
            collection: collection?,
            token_id: row.token_id.clone(),
            object,
            owner,
            uri: row.uri.clone(),
        },
        TRANSFER => NftEvent::Transfer { token: token()?, to: owner? },
        BURN => NftEvent::Burn { token: token()? },
        SET_URI => NftEvent::SetUri { object: object?, uri: row.uri.clone()? },
        NAME => NftEvent::Metadata { collection: collection?, tokens: Updated::Name },
        METADATA => NftEvent::Metadata {
            collection: collection?,
            tokens: match (&row.token_id, decode_range(&row.range)) {
                (Some(token_id), _) => Updated::Token(token_id.clone()),
                (None, Some((first, last))) => Updated::Range(first, last),
                (None, None) => Updated::All,
            },
        },
        _ => return None,
    })
}
