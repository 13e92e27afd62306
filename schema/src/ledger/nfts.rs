//! Movements of Move's NFTs and of cw721s, whose events name the new owner only.

use chain::movement::{Kind, Movement, Token};
use chain::nft::{NftEvent, TokenRef};
use chain::{Account, U256};
use store::Key as _;
use store::key::Text;

use super::{MovedNfts, NftObjects};
use crate::Error;
use crate::index::Rows;
use crate::keys::AccountKey;
use crate::movement::TokenKey;

/// The movement that an event is; `None` for an object that is no NFT, or one that is older than the first block.
pub(super) fn movement(
    rows: &mut Rows<'_, '_>,
    message: Option<u32>,
    event: NftEvent,
) -> Result<Option<Movement>, Error> {
    let (named, to, kind) = match event {
        NftEvent::Mint { collection, token_id: Some(id), object, owner, .. } => {
            let Some(token) = token(collection, object.is_some()) else { return Ok(None) };
            if let Some(object) = object {
                let name = [token.to_bytes(), id.clone().into_bytes()].concat();
                rows.set::<NftObjects>(&AccountKey(object), &name);
            }
            (Some((token, id)), owner, Kind::Mint)
        }
        NftEvent::Transfer { token, to } => (named(rows, token)?, Some(to), Kind::Transfer),
        NftEvent::Burn { token } => (named(rows, token)?, None, Kind::Burn),
        _ => return Ok(None),
    };
    let Some((TokenKey(token), id)) = named else { return Ok(None) };
    let key = (TokenKey(token.clone()), Text(id.clone()));
    let before = rows.get::<MovedNfts>(&key)?;
    let from = before.and_then(|owner| Account::from_bytes(&owner)).filter(|_| kind != Kind::Mint);
    rows.set::<MovedNfts>(&key, &to.map_or_else(Vec::new, |to| to.as_bytes().to_vec()));
    let amount = U256::ONE;
    Ok(Some(Movement { message, token, token_id: Some(id), from, to, amount, kind, cause: None }))
}

/// The token that an event names by itself; `None` of an object of Move, which only its mint names.
pub(crate) fn named_by(event: &NftEvent) -> Option<Token> {
    let (collection, is_move) = match event {
        NftEvent::Mint { collection, object, .. } => (collection, object.is_some()),
        NftEvent::Transfer { token: TokenRef::Id { collection, .. }, .. }
        | NftEvent::Burn { token: TokenRef::Id { collection, .. } } => (collection, false),
        _ => return None,
    };
    token(*collection, is_move).map(|TokenKey(token)| token)
}

/// A collection of Move, or a contract of cw721.
fn token(collection: Account, is_move: bool) -> Option<TokenKey> {
    let mut address = [0; 32];
    let bytes = collection.as_bytes();
    if !is_move && bytes.len() != address.len() {
        return None;
    }
    // Move writes addresses without leading zeros.
    address[32 - bytes.len()..].copy_from_slice(bytes);
    Some(TokenKey(if is_move { Token::Collection(address) } else { Token::Cw721(address) }))
}

fn named(rows: &Rows<'_, '_>, token: TokenRef) -> Result<Option<(TokenKey, String)>, Error> {
    match token {
        TokenRef::Id { collection, token_id } => {
            Ok(self::token(collection, false).map(|token| (token, token_id)))
        }
        TokenRef::Object(object) => {
            let Some(name) = rows.get::<NftObjects>(&AccountKey(object))? else { return Ok(None) };
            let mut rest = name.as_slice();
            let token = TokenKey::take(&mut rest);
            Ok(token.zip(String::from_utf8(rest.to_vec()).ok()))
        }
    }
}
