//! Reads and writes of a balance together with its entries in the lists of holders and of the tokens of its account.

use store::{Snapshot, Txn};

use super::{AccountTokens, Address, Balances, Holders};
use crate::Error;

/// The amount in a row of [`Balances`]; `None` if it is longer than 256 bits.
pub fn amount_of(row: &[u8]) -> Option<[u8; 32]> {
    let mut amount = [0; 32];
    let start = 32_usize.checked_sub(row.len())?;
    amount[start..].copy_from_slice(row);
    Some(amount)
}

/// The balance of `account`, big-endian; `None` if it has no row.
pub fn balance(
    snapshot: &dyn Snapshot,
    contract: &Address,
    account: &Address,
) -> Result<Option<[u8; 32]>, Error> {
    let row = store::table::read::<Balances>(snapshot, &(*contract, *account))?;
    row.map(|row| read(contract, &row)).transpose()
}

fn read(contract: &Address, row: &[u8]) -> Result<[u8; 32], Error> {
    amount_of(row).ok_or_else(|| Error::Record {
        table: "balance",
        key: hex::encode(contract),
        reason: "an amount has more than 256 bits".to_owned(),
    })
}

/// Sets the balance of `account` to `amount`, big-endian; `None` deletes its row.
pub fn set_balance(
    txn: &mut Txn<'_>,
    contract: &Address,
    account: &Address,
    amount: Option<[u8; 32]>,
) -> Result<(), Error> {
    let key = (*contract, *account);
    let before = txn.get::<Balances>(&key)?.map(|row| read(contract, &row)).transpose()?;
    if before == amount {
        return Ok(());
    }
    if let Some(held) = before.filter(|held| *held != [0; 32]) {
        txn.remove::<Holders>(contract, &(held, *account))?;
    }
    let token = (*account, *contract);
    match amount {
        None => {
            txn.delete::<Balances>(&key);
            txn.delete::<AccountTokens>(&token);
        }
        Some(amount) => {
            if before.is_none() {
                txn.put::<AccountTokens>(&token, &());
            }
            let zeros = amount.iter().take_while(|byte| **byte == 0).count();
            txn.put::<Balances>(&key, &amount[zeros..].to_vec());
            if amount != [0; 32] {
                txn.insert::<Holders>(contract, &(amount, *account), &())?;
            }
        }
    }
    Ok(())
}
