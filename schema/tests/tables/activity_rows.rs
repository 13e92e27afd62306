//! Example rows of the index `activity`.

use schema::activity::{AccountHours, Activity, Days, Hours};
use schema::keys::AccountKey;
use store::{Message, Txn};

pub(crate) fn hour(txn: &mut Txn<'_>, account: AccountKey) {
    let activity = Activity { gas: 70_000, accounts: 2, new_accounts: 1 };
    txn.put::<Hours>(&472_222, &Message(activity));
    txn.put::<Days>(&19_675, &Message(activity));
    txn.put::<AccountHours>(&account, &472_222);
}
