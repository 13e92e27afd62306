//! Where the databases of chains are: an object store and a prefix.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use slatedb::object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use slatedb::object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use slatedb::object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::path::Path;
use slatedb::object_store::{ClientConfigKey, ObjectStore, RetryConfig};
use store::Error;

use crate::engine::install_crypto;
use crate::failure::{OPENING, describe, remote};

/// Time limit of one request, which may upload a file of 64 MiB, and its name in the client's settings.
const REQUEST_TIMEOUT: &str = "30s";

/// Repetitions of a request by the client, within [`RETRY_TIMEOUT`]. The writer repeats what still fails.
const REQUEST_RETRIES: usize = 4;
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// An object store and a prefix, under which each chain has a database of its own.
#[derive(Debug, Clone)]
pub struct Location {
    url: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Whether objects can be replaced on condition, which [`LocalFileSystem`] cannot.
    pub(crate) replaces: bool,
}

impl Location {
    /// The location of `url`: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX`, `file:///DIR`, or
    /// `memory:///` for tests. Endpoints and credentials come from the variables of the providers' own tools, such as
    /// `AWS_ENDPOINT` and `AWS_ACCESS_KEY_ID`.
    ///
    /// # Errors
    /// If the URL has another form, or the variables lack something.
    pub fn parse(url: &str) -> Result<Self, Error> {
        install_crypto();
        let fail = |message: &str| remote(&PathBuf::from(url), OPENING, message);
        let url = url.trim_end_matches('/');
        let (scheme, rest) = url.split_once("://").ok_or_else(|| fail(FORMS))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let has_bucket = !matches!(scheme, "file" | "memory");
        if has_bucket == bucket.is_empty() {
            return Err(fail(FORMS));
        }
        let retry = RetryConfig {
            max_retries: REQUEST_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
            ..RetryConfig::default()
        };
        let timeout = ClientConfigKey::Timeout;
        let client: Result<Arc<dyn ObjectStore>, _> = match scheme {
            "s3" => AmazonS3Builder::from_env()
                .with_url(url)
                .with_config(AmazonS3ConfigKey::Client(timeout), REQUEST_TIMEOUT)
                .with_retry(retry)
                .build()
                .map(|client| Arc::new(client) as _),
            "gs" => GoogleCloudStorageBuilder::from_env()
                .with_url(url)
                .with_config(GoogleConfigKey::Client(timeout), REQUEST_TIMEOUT)
                .with_retry(retry)
                .build()
                .map(|client| Arc::new(client) as _),
            "az" => MicrosoftAzureBuilder::from_env()
                .with_url(url)
                .with_config(AzureConfigKey::Client(timeout), REQUEST_TIMEOUT)
                .with_retry(retry)
                .build()
                .map(|client| Arc::new(client) as _),
            "file" => Ok(Arc::new(LocalFileSystem::new()) as _),
            "memory" => Ok(Arc::new(InMemory::new()) as _),
            _ => return Err(fail(FORMS)),
        };
        let store = client.map_err(|error| fail(&describe(&error)))?;
        let prefix = Path::parse(prefix).map_err(|error| fail(&describe(&error)))?;
        Ok(Self { url: url.to_owned(), store, prefix, replaces: scheme != "file" })
    }

    /// The location of `store` without a prefix, called `url` in messages.
    pub fn in_store(url: &str, store: Arc<dyn ObjectStore>) -> Self {
        Self { url: url.to_owned(), store, prefix: Path::default(), replaces: true }
    }

    /// The object store.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// The name and the path of the database of `chain`.
    pub(crate) fn database(&self, chain: &str) -> (PathBuf, Path) {
        (PathBuf::from(format!("{}/{chain}", self.url)), self.prefix.clone().join(chain))
    }
}

const FORMS: &str =
    "the location is not s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIR";
