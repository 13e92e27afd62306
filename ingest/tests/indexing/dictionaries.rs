//! The shipped dictionaries favour no chain: they have the form of records and none of the accounts of the benchmark.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chain::Account;
use replay::{Options, Recording};
use schema::evm_tx::AccountEvmTxs;
use schema::internal_tx::AccountCalls;
use schema::keys::AccountKey;
use schema::payload::Kind;
use schema::tx::AccountTxs;
use store::{Bounds, COUNT, Key as _, List as _, MemStore, Store as _};
use testkit::{indexed, recording};

/// Every account with a list of transactions or call frames.
async fn accounts(name: &str) -> BTreeSet<Vec<u8>> {
    let chain = Arc::new(Recording::open(&recording(name)).unwrap());
    let store = Arc::new(MemStore::new());
    indexed::index(chain, Options::default(), Arc::<MemStore>::clone(&store)).await.unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut accounts = BTreeSet::new();
    store::for_each_row(&*snapshot, COUNT, Bounds::all(), |key, _| {
        // The owners of these lists begin with an account.
        let (tag, mut owner) = key.split_first().unwrap();
        if [AccountTxs::SPEC.tag, AccountEvmTxs::SPEC.tag, AccountCalls::SPEC.tag].contains(tag) {
            accounts.insert(AccountKey::take(&mut owner).unwrap().0.as_bytes().to_vec());
        }
        Ok::<_, store::Error>(())
    })
    .unwrap();
    accounts
}

/// An account as a text or bytes may have it.
fn forms(account: &[u8]) -> Vec<Vec<u8>> {
    let bech32 = Account::from_bytes(account).unwrap().to_bech32("init").into_bytes();
    // Of base64, the digits that do not depend on the bytes before and after.
    let base64 = |offset: usize| {
        let shifted = [&vec![0; offset][..], account].concat();
        let digits = STANDARD_NO_PAD.encode(&shifted).into_bytes();
        digits[(offset * 8).div_ceil(6)..shifted.len() * 8 / 6].to_vec()
    };
    vec![account.to_vec(), hex::encode(account).into_bytes(), bech32, base64(0), base64(1), base64(2)]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_account_of_the_benchmark_is_in_a_shipped_dictionary() {
    let accounts = accounts("evm-load").await;
    assert!(accounts.len() > 5_000, "{}", accounts.len());
    for kind in Kind::ALL {
        let dictionary = kind.shipped();
        // In lower case too, as the case of hex is arbitrary.
        let lower = dictionary.to_ascii_lowercase();
        // Precompiles are the same everywhere.
        for account in accounts.iter().filter(|account| account[..3] != [0; 3]) {
            for form in forms(account) {
                let found = [dictionary, &lower[..]]
                    .into_iter()
                    .any(|text| memchr::memmem::find(text, &form).is_some());
                assert!(
                    !found,
                    "{kind:?} has {} as {}",
                    hex::encode(account),
                    String::from_utf8_lossy(&form)
                );
            }
        }
    }
}
