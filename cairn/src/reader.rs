//! `cairn query`: serves databases that other processes write.
//!
//! # Invariants
//! * While catching up fails, the last state is served and `/readyz` reports the failure.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::database::Opener;
use crate::local_index::CurrentIndex;
use crate::metrics::Samples;
use crate::pages::Pages;
use crate::serve::{Probes, Serving};
use crate::settings::sources::{FOLLOWER, Sources};
use crate::settings::{Settings, values};
use crate::{chains, follow, logging, metrics, ready, reload, runtime, shutdown};

/// Runs until a stop signal, or until a newer version writes the database.
pub(crate) fn query(sources: Sources<FOLLOWER>) -> anyhow::Result<()> {
    let values = sources.merged()?;
    let settings = &Settings::new(&values)?;
    let chains = settings.of_chains()?;
    settings.check_evm(None)?;
    if chains.is_empty() && settings.data.is_none() {
        return Err(values::missing_by("data", "--follow (or --data)").into());
    }
    let own = follow::own_dir()?;
    let opener = chains.is_empty().then(|| Opener::new(settings, own.path())).transpose()?;
    runtime::block_on(async {
        let (_screen, filter_handle) = logging::start_server(settings)?;
        let stop = shutdown::watch()?;
        reload::on_hangup(sources, values, filter_handle)?;
        let samples = match settings.metrics {
            Some(at) => metrics::start(at, &stop).await?,
            None => Samples::default(),
        };
        let Some(opener) = opener else { return chains::serve(settings, chains, &samples, &stop).await };
        let Some(database) = follow::await_database(settings, &opener, &stop).await? else { return Ok(()) };
        follow::check_chain(settings, &database)?;
        let (caught_up, last) = watch::channel(Instant::now());
        let is_ready = ready::keeping_up(last);
        samples.set(database.rocks(), is_ready.clone());
        // It asks no node, so it does not know the height of the chain.
        let pages = Pages { index: CurrentIndex::none(), routing: None, head: Arc::new(|| None) };
        let serving = Serving::start(settings, Some(database.store()), Probes::new(is_ready), pages)?;
        let outcome = follow::keep_up(&database, &caught_up, &stop).await;
        serving.stop().await;
        outcome
    })
}
