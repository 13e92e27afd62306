//! The methods of Otterscan, `ots_*` at level 8 of erigon's, and the one of erigon that it calls.

use query::evm::Side;
use serde_json::json;

use crate::go_json::Block;
use crate::params::Value;
use crate::reads::{Failure, Outcome, Reads, data, hash, index, no_argument, or_null};
use crate::rpc_error::{DEFAULT, RpcError};

/// Maximum transactions of an account on a page, as erigon has, and of a block: what erigon's parameter can say.
const MAX_PAGE: u64 = 25;
const MAX_BLOCK_PAGE: u64 = 255;

impl Reads<'_> {
    pub(crate) fn header(&self, args: &[Value]) -> Outcome {
        self.of_block(args, |height| self.view.header_only(height))
    }

    pub(crate) fn block_details(&self, args: &[Value]) -> Outcome {
        self.of_block(args, |height| self.view.block_details(height))
    }

    pub(crate) fn block_page(&self, args: &[Value]) -> Outcome {
        let (page, size) = (index(args)?, bounded(third(args)?, MAX_BLOCK_PAGE)?);
        self.of_block(args, |height| self.view.block_page(height, page, size))
    }

    pub(crate) fn search(&self, side: Side, args: &[Value]) -> Outcome {
        let (height, size) = (index(args)?, bounded(third(args)?, MAX_PAGE)?);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        Ok(self.view.search(account(args)?, side, height, size)?)
    }

    pub(crate) fn by_nonce(&self, args: &[Value]) -> Outcome {
        let found = self.view.by_nonce(account(args)?, index(args)?)?;
        Ok(found.map_or_else(|| b"null".to_vec(), |hash| data(&hash)))
    }

    pub(crate) fn contract_creator(&self, args: &[Value]) -> Outcome {
        or_null(self.view.contract_creator(account(args)?))
    }

    pub(crate) fn has_code(&self, args: &[Value]) -> Outcome {
        let Some(Value::Block(block)) = args.get(1) else { return Err(no_argument().into()) };
        let height = self.resolved(*block)?.ok_or_else(|| RpcError::new(DEFAULT, "unknown block"))?;
        Ok(self.view.was_contract(account(args)?, height)?.to_string().into_bytes())
    }

    pub(crate) fn internal_operations(&self, args: &[Value]) -> Outcome {
        let hash = hash(args)?;
        self.view.internal_operations(hash, self.chain.frames)?.ok_or_else(|| not_found(hash))
    }

    pub(crate) fn trace(&self, args: &[Value]) -> Outcome {
        let hash = hash(args)?;
        self.view.trace(hash, self.chain.frames)?.ok_or_else(|| not_found(hash))
    }

    pub(crate) fn revert_data(&self, args: &[Value]) -> Outcome {
        let hash = hash(args)?;
        let returned = self.view.revert_data(hash)?.ok_or_else(|| not_found(hash))?;
        Ok(format!("\"{returned}\"").into_bytes())
    }
}

/// The parameters of `eth_getCode` from those of `ots_hasCode`.
pub(crate) fn code_params(args: &[Value]) -> String {
    let address = match args.first() {
        Some(Value::Address(address)) => format!("0x{}", hex::encode(address)),
        _ => String::new(),
    };
    let block = match args.get(1) {
        Some(Value::Block(Block::Number(number))) => json!(format!("{number:#x}")),
        Some(Value::Block(Block::Hash(hash))) => json!({ "blockHash": format!("0x{}", hex::encode(hash)) }),
        _ => json!("latest"),
    };
    json!([address, block]).to_string()
}

/// The result of `ots_hasCode` from that of `eth_getCode`.
pub(crate) fn has_code(code: Vec<u8>) -> Vec<u8> {
    let is_none = matches!(&*code, b"\"0x\"" | b"null");
    (!is_none).to_string().into_bytes()
}

fn not_found(hash: &[u8; 32]) -> Failure {
    RpcError::new(DEFAULT, format!("transaction 0x{} not found", hex::encode(hash))).into()
}

pub(crate) fn bounded(size: u64, max: u64) -> Result<u64, RpcError> {
    if size <= max { Ok(size) } else { Err(RpcError::new(DEFAULT, format!("max allowed page size: {max}"))) }
}

pub(crate) fn account(args: &[Value]) -> Result<[u8; 20], Failure> {
    match args.first() {
        Some(Value::Address(address)) => Ok(*address),
        _ => Err(no_argument().into()),
    }
}

fn third(args: &[Value]) -> Result<u64, Failure> {
    match args.get(2) {
        Some(Value::Index(number)) => Ok(*number),
        _ => Err(no_argument().into()),
    }
}
