//! The database of a command, on either engine: RocksDB in a directory or, with the cargo feature `slate`, SlateDB in an
//! object store.

use std::path::Path;
use std::sync::Arc;

use schema::meta::Meta;
use store::{RocksOptions, RocksStore, Store, Table as _, TableSpec};

use crate::settings::{Location, Settings};
use crate::temporary::Temporary;

/// Fails if a program with another format made the database in `data`, or `db copy` did not complete it, as far as its
/// tables differ from ours. To be called before it is opened for writing, which creates the missing tables: after that the
/// program that made it would refuse it.
pub(crate) fn check_format(data: &Path) -> anyhow::Result<()> {
    const IDENTITY: &[&TableSpec] = &[Meta::SPEC];
    if let Err(store::Error::MissingTables { .. }) = RocksStore::check_tables(data, schema::TABLES)
        && RocksStore::check_tables(data, IDENTITY).is_ok()
    {
        let own = Temporary::new("follower")?;
        let store = RocksStore::follow(data, own.path(), IDENTITY, RocksOptions::default())?;
        schema::open::identity(&store)?;
    }
    Ok(())
}

/// The database of a process that writes it.
#[derive(Clone)]
pub(crate) enum Written {
    /// In a directory.
    Rocks(Arc<RocksStore>),
    /// In an object store.
    #[cfg(feature = "slate")]
    Slate(Arc<slate::SlateStore>),
}

impl Written {
    /// Opens or creates the database.
    pub(crate) fn open(settings: &Settings) -> anyhow::Result<Self> {
        match settings.location()? {
            Location::Directory(data) => {
                check_format(data)?;
                let options = RocksOptions {
                    cache_bytes: settings.cache_bytes(),
                    reserve_bytes: settings.disk_reserve.as_u64(),
                    ..RocksOptions::default()
                };
                Ok(Self::Rocks(Arc::new(RocksStore::open(data, schema::TABLES, options)?)))
            }
            #[cfg(feature = "slate")]
            Location::ObjectStore { url, chain } => {
                let (engine, location) = remote::engine(settings, url, &Shared::default())?;
                Ok(Self::Slate(Arc::new(slate::SlateStore::open(&engine, &location, chain)?)))
            }
        }
    }

    /// The store of the indexer, which reads its own commits.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Rocks(store) => Arc::clone(store) as _,
            #[cfg(feature = "slate")]
            Self::Slate(store) => Arc::clone(store) as _,
        }
    }

    /// The store of the servers: what it shows survives the process.
    pub(crate) fn served(&self) -> Arc<dyn Store> {
        match self {
            Self::Rocks(store) => Arc::clone(store) as _,
            #[cfg(feature = "slate")]
            Self::Slate(store) => Arc::new(slate::Announced(Arc::clone(store))) as _,
        }
    }

    /// The RocksDB store and its directory, if it is one.
    #[cfg_attr(not(feature = "slate"), allow(clippy::unnecessary_wraps, reason = "`None` with the feature"))]
    pub(crate) fn rocks(&self) -> Option<&Arc<RocksStore>> {
        match self {
            Self::Rocks(store) => Some(store),
            #[cfg(feature = "slate")]
            Self::Slate(_) => None,
        }
    }

    /// The directory or location, for messages.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::Rocks(store) => store.path(),
            #[cfg(feature = "slate")]
            Self::Slate(store) => store.name(),
        }
    }

    /// Writes what is in memory into table files.
    pub(crate) fn flush(&self) -> Result<(), store::Error> {
        match self {
            Self::Rocks(store) => store.flush(),
            #[cfg(feature = "slate")]
            Self::Slate(store) => store.flush(),
        }
    }

    /// Prepares for much reading and little writing: the index has caught up with the chain. Ends early if it is not wanted
    /// any more.
    pub(crate) fn settle(&self, is_wanted: impl Fn() -> bool) -> Result<(), store::Error> {
        // Flushes the memtables, so that the write-ahead log of the catch-up can be deleted: saves over half of the disk
        // space.
        self.flush()?;
        match self {
            Self::Rocks(store) => store.merge_early(is_wanted),
            #[cfg(feature = "slate")]
            Self::Slate(_) => Ok(()),
        }
    }
}

/// The database of a process that reads it while another one writes it.
#[derive(Clone)]
pub(crate) enum Followed {
    /// In a directory.
    Rocks(Arc<RocksStore>),
    /// In an object store.
    #[cfg(feature = "slate")]
    Slate(Arc<slate::SlateReader>),
}

impl Followed {
    /// The store.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Rocks(store) => Arc::clone(store) as _,
            #[cfg(feature = "slate")]
            Self::Slate(store) => Arc::clone(store) as _,
        }
    }

    /// The RocksDB store, if it is one.
    #[cfg_attr(not(feature = "slate"), allow(clippy::unnecessary_wraps, reason = "`None` with the feature"))]
    pub(crate) fn rocks(&self) -> Option<&Arc<RocksStore>> {
        match self {
            Self::Rocks(store) => Some(store),
            #[cfg(feature = "slate")]
            Self::Slate(_) => None,
        }
    }

    /// Makes the writer's commits visible; false if it is known that there were none.
    pub(crate) fn catch_up(&self) -> Result<bool, store::Error> {
        match self {
            Self::Rocks(store) => store.catch_up().map(|()| true),
            #[cfg(feature = "slate")]
            Self::Slate(store) => store.catch_up(),
        }
    }
}

/// What the databases of a process share: the threads and the cache of those in object stores.
#[derive(Default)]
pub(crate) struct Shared {
    #[cfg(feature = "slate")]
    engine: std::sync::Mutex<Option<Arc<slate::Engine>>>,
}

/// Opens databases that another process writes.
pub(crate) enum Opener<'a> {
    /// Of a directory; `own` is a private directory for RocksDB's log.
    Rocks { data: &'a Path, own: &'a Path, options: RocksOptions },
    /// Of an object store.
    #[cfg(feature = "slate")]
    Slate { engine: Arc<slate::Engine>, location: slate::Location, chain: &'a str },
}

impl<'a> Opener<'a> {
    /// For the location of `settings`.
    pub(crate) fn new(settings: &'a Settings, own: &'a Path) -> anyhow::Result<Self> {
        Self::sharing(settings, own, &Shared::default())
    }

    /// As [`Opener::new`]; all openers of `shared` have one cache for the databases in object stores.
    #[cfg_attr(not(feature = "slate"), expect(unused_variables, reason = "directories share nothing"))]
    pub(crate) fn sharing(settings: &'a Settings, own: &'a Path, shared: &Shared) -> anyhow::Result<Self> {
        match settings.location()? {
            Location::Directory(data) => {
                let options = RocksOptions { cache_bytes: settings.cache_bytes(), ..RocksOptions::default() };
                Ok(Self::Rocks { data, own, options })
            }
            #[cfg(feature = "slate")]
            Location::ObjectStore { url, chain } => {
                let (engine, location) = remote::engine(settings, url, shared)?;
                Ok(Self::Slate { engine, location, chain })
            }
        }
    }

    /// Opens the database; [`store::Error::NotADatabase`] if there is none yet.
    pub(crate) fn open(&self) -> Result<Followed, store::Error> {
        match self {
            Self::Rocks { data, own, options } => {
                Ok(Followed::Rocks(Arc::new(RocksStore::follow(data, own, schema::TABLES, *options)?)))
            }
            #[cfg(feature = "slate")]
            Self::Slate { engine, location, chain } => {
                Ok(Followed::Slate(Arc::new(slate::SlateReader::open(engine, location, chain)?)))
            }
        }
    }
}

#[cfg(feature = "slate")]
mod remote {
    use std::sync::{Arc, PoisonError};

    use anyhow::Context as _;

    use crate::settings::Settings;

    /// The shared engine, which is started if it is not running, and the location `url`.
    pub(super) fn engine(
        settings: &Settings,
        url: &str,
        shared: &super::Shared,
    ) -> anyhow::Result<(Arc<slate::Engine>, slate::Location)> {
        let mut engine = shared.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = if let Some(engine) = &*engine {
            Arc::clone(engine)
        } else {
            let options = slate::Options { cache_bytes: settings.cache_bytes(), ..slate::Options::default() };
            let started = slate::Engine::start(options).context("starting threads")?;
            Arc::clone(engine.insert(started))
        };
        Ok((engine, slate::Location::parse(url)?))
    }
}
