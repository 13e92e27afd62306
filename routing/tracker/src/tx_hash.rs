//! Transaction hashes: the 32 bytes, and the spelling of a chain.

use chain::Vm;
use chain::hash::Hash;
use registry::ChainKind;

use crate::error::BadHash;

/// 64 digits of hex in any case, with or without `0x`.
pub(crate) fn hash_of(text: &str) -> Result<Hash, BadHash> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let mut hash = [0; 32];
    hex::decode_to_slice(digits, &mut hash).map_err(|_| BadHash::new(text))?;
    Ok(hash)
}

/// A hash and its spelling on the chain. A chain with both kinds keeps the given spelling.
pub(crate) fn spelled(text: &str, kind: ChainKind, vm: Vm) -> Result<(Hash, String), BadHash> {
    let hash = hash_of(text)?;
    let is_evm = kind == ChainKind::Evm || (vm == Vm::Evm && text.starts_with(['0']) && text.len() > 64);
    let shown = if is_evm { format!("0x{}", hex::encode(hash)) } else { hex::encode_upper(hash) };
    Ok((hash, shown))
}
