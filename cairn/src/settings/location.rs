//! The places of the databases: one, or one of each chain.

use std::path::{Path, PathBuf};

use super::Settings;
use super::values::{Error, missing};

/// Where a database is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Location<'a> {
    /// A directory of RocksDB.
    Directory(&'a Path),
    /// An object store. Every chain has a database there.
    #[cfg(feature = "slate")]
    ObjectStore {
        /// As in `s3://bucket/prefix`.
        url: &'a str,
        /// The chain's id.
        chain: &'a str,
    },
}

impl Settings {
    /// Where the database is.
    pub(crate) fn location(&self) -> Result<Location<'_>, Error> {
        let data = self.data.as_deref().ok_or_else(|| missing("data"))?;
        let Some(url) = data.to_str().filter(|text| text.contains("://")) else {
            return Ok(Location::Directory(data));
        };
        #[cfg(feature = "slate")]
        {
            let chain = self.chain_id.as_deref().ok_or_else(|| missing("chain_id"))?;
            Ok(Location::ObjectStore { url, chain })
        }
        #[cfg(not(feature = "slate"))]
        {
            Err(Error(format!(
                "`data` is {url}, but this program was built without the cargo feature `slate`: build it with \
                 --features cairn/slate, or name a directory"
            )))
        }
    }

    /// These settings for another database.
    pub(crate) fn of_database(&self, data: PathBuf, chain_id: String) -> Self {
        Self { data: Some(data), chain_id: Some(chain_id), chains: Vec::new(), ..self.clone() }
    }

    /// The settings of each of `chains`, with its host names; empty without the setting.
    pub(crate) fn of_chains(&self) -> Result<Vec<(Self, Vec<String>)>, Error> {
        if self.chains.is_empty() {
            return Ok(Vec::new());
        }
        if self.data.is_some() {
            return Err(Error(
                "`data` and `chains` exclude each other: add the database to `chains`".to_owned(),
            ));
        }
        let of_one = [
            ("grpc_listen", self.grpc_listen),
            ("comet_listen", self.comet_listen),
            ("evm_listen", self.evm_listen),
        ];
        if let Some((name, _)) = of_one.iter().find(|(_, address)| address.is_some()) {
            return Err(Error(format!("`{name}` serves one chain: remove it or `chains`")));
        }
        let known = |id: &String| self.chains.iter().filter(|(other, _)| other == id).count();
        if let Some((host, id)) = self.hosts.iter().find(|(_, id)| known(id) == 0) {
            return Err(Error(format!("`hosts` names `{host}={id}`, and `chains` has no `{id}`")));
        }
        let of_chain = |(id, location): &(String, PathBuf)| {
            if known(id) > 1 {
                return Err(Error(format!("`chains` names `{id}` twice")));
            }
            let own = self.of_database(location.clone(), id.clone());
            own.location()?;
            let hosts = self.hosts.iter().filter(|(_, of)| of == id).map(|(host, _)| host.clone()).collect();
            Ok((own, hosts))
        };
        self.chains.iter().map(of_chain).collect()
    }

    /// The data directory, for commands that need one.
    pub(crate) fn data(&self) -> Result<&Path, Error> {
        match self.location()? {
            Location::Directory(data) => Ok(data),
            #[cfg(feature = "slate")]
            Location::ObjectStore { url, .. } => Err(Error(format!(
                "this command needs a database in a directory, and `data` is {url}: name a directory"
            ))),
        }
    }
}
