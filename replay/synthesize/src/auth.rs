//! The signer of a raw transaction.

use crate::accounts::{Account, KEY_TYPE};
use crate::wire::{Value, bytes, fields};

/// The signer of a raw transaction: key, sequence, mode; and the fee. `None` unless one key of the usual type signs.
pub(crate) struct Auth<'a> {
    pub(crate) key: [u8; 33],
    pub(crate) sequence: u64,
    pub(crate) mode: &'a [u8],
    pub(crate) fee: &'a [u8],
}

impl<'a> Auth<'a> {
    pub(crate) fn parse(raw: &'a [u8]) -> Option<Self> {
        let raw = fields(raw)?;
        let [(1, _), (2, Value::Bytes(auth)), (3, _)] = raw[..] else { return None };
        let auth = fields(auth)?;
        let [(1, Value::Bytes(signer)), (2, Value::Bytes(fee))] = auth[..] else { return None };
        let signer = fields(signer)?;
        let (key, mode, sequence) = match signer[..] {
            [(1, Value::Bytes(key)), (2, Value::Bytes(mode))] => (key, mode, 0),
            [(1, Value::Bytes(key)), (2, Value::Bytes(mode)), (3, Value::Number(sequence))] => {
                (key, mode, sequence)
            }
            _ => return None,
        };
        let key = fields(key)?;
        if bytes(&key, 1) != KEY_TYPE.as_bytes() {
            return None;
        }
        let value = fields(bytes(&key, 2))?;
        Some(Self { key: bytes(&value, 1).try_into().ok()?, sequence, mode, fee })
    }

    /// The account of the key.
    pub(crate) fn account(&self, prefix: &str) -> Option<Account> {
        let address = chain::key::key_address(KEY_TYPE, &[&[0x0a, 33][..], &self.key].concat())?;
        Some(Account::new(address.as_bytes().try_into().ok()?, Some(self.key), prefix))
    }
}
