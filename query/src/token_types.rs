//! The types of tokens by name, as the parameter `type` has them.

use chain::movement::Token;
use schema::movement::TokenKey;
use web::call::Call;
use web::http_error::HttpError;

use crate::params;

/// An expression for the values of `type`.
pub(crate) const PATTERN: &str = r"^\s*(erc20|fa|bank|cw20|erc721|erc1155|collection|cw721)?\s*(,\s*(erc20|fa|bank|cw20|erc721|erc1155|collection|cw721)?\s*)*$";

/// Types by name, with an example that has the byte of their keys.
static NAMED: [(&str, Token); 8] = [
    ("erc20", Token::Erc20([0; 20])),
    ("fa", Token::Asset([0; 32])),
    ("bank", Token::Denom(String::new())),
    ("cw20", Token::Cw20([0; 32])),
    ("erc721", Token::Erc721([0; 20])),
    ("erc1155", Token::Erc1155([0; 20])),
    ("collection", Token::Collection([0; 32])),
    ("cw721", Token::Cw721([0; 32])),
];

/// The types that `type` names, each once.
pub(crate) fn named(call: &Call<'_>) -> Result<Vec<u8>, HttpError> {
    let mut types = Vec::new();
    let texts = call.all("type").flat_map(|value| value.split(',')).map(str::trim);
    for text in texts.filter(|text| !text.is_empty()) {
        let Some((_, example)) = NAMED.iter().find(|(name, _)| *name == text) else {
            let names = NAMED.each_ref().map(|(name, _)| *name).join(", ");
            return Err(HttpError::bad_request(format!(
                "[INVALID_VALUE] invalid value for type: {} (must be any of {names})",
                params::shown(text)
            )));
        };
        let kind = TokenKey(example.clone()).type_byte();
        if !types.contains(&kind) {
            types.push(kind);
        }
    }
    Ok(types)
}
