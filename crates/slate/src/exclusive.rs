//! The test that an object store lets one of several creators of an object win.
//!
//! Fencing depends on it: a writer claims the database by creating an object. Some stores answer conditional writes
//! and do not keep their promise under concurrency.

use std::process;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use slatedb::object_store::path::Path;
use slatedb::object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};

/// Raced objects. A store that checked before it wrote let several creators win for 189 of 200.
const OBJECTS: usize = 8;

/// Creators of each.
const CREATORS: usize = 8;

/// Races creators of objects under `path`, which are deleted afterwards. Returns why the store must not be used.
///
/// # Errors
/// If a request fails for another reason than a lost race.
pub async fn check(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<Option<String>, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let folder = path.clone().join("race").join(format!("{now}-{}", process::id()));
    let objects: Vec<_> = (0..OBJECTS).map(|object| folder.clone().join(object.to_string())).collect();
    let winners = join_all(objects.iter().map(|object| race(store, object))).await;
    let deleted = store.delete_stream(stream::iter(objects.into_iter().map(Ok)).boxed());
    // Credentials that may not delete leave a few bytes.
    deleted.for_each(|_| async {}).await;
    let winners = winners.into_iter().collect::<Result<Vec<_>, _>>()?;
    let wrong = winners.iter().filter(|&&winners| winners != 1).count();
    Ok((wrong > 0).then(|| {
        format!(
            "{wrong} of {OBJECTS} objects that {CREATORS} creators raced for were not created by exactly one \
             (If-None-Match)"
        )
    }))
}

/// The number of creators that `store` let create `object`.
async fn race(store: &Arc<dyn ObjectStore>, object: &Path) -> Result<usize, Error> {
    let create = |creator: usize| async move {
        let payload = PutPayload::from(creator.to_string());
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match store.put_opts(object, payload, options).await {
            Ok(_) => Ok(1),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(0),
            Err(error) => Err(error),
        }
    };
    let outcomes = join_all((0..CREATORS).map(create)).await;
    let created = outcomes.into_iter().sum::<Result<usize, _>>()?;
    // A winner's object must be there.
    store.head(object).await?;
    Ok(created)
}
