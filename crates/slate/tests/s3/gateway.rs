//! A versitygw of a test: an S3 server over a temporary directory.

use std::env;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use slate::Location;
use slate::object_store::aws::AmazonS3Builder;
use slate::object_store::prefix::PrefixStore;
use slate::object_store::{ObjectStore, RetryConfig};
use tempfile::TempDir;

pub(crate) const KEY: &str = "test";
pub(crate) const SECRET: &str = "testtest";
const BUCKET: &str = "chains";

/// A running gateway; it ends when it is dropped.
pub(crate) struct Gateway {
    pub(crate) port: u16,
    process: Child,
    directory: Arc<TempDir>,
}

/// A free port. Another process could take it before the gateway does, which then fails to start.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Gateway {
    pub(crate) fn start() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(directory.path().join("data").join(BUCKET)).unwrap();
        std::fs::create_dir(directory.path().join("attributes")).unwrap();
        Self::run(directory, free_port(), SECRET, &[])
    }

    /// Another gateway of the same objects, with other flags.
    pub(crate) fn beside(&self, flags: &[&str]) -> Self {
        Self::run(Arc::clone(&self.directory), free_port(), SECRET, flags)
    }

    /// Stops it and starts it at the same port with another secret.
    pub(crate) fn with_secret(self, secret: &str) -> Self {
        let (directory, port) = (Arc::clone(&self.directory), self.port);
        drop(self);
        Self::run(directory, port, secret, &[])
    }

    fn run(directory: Arc<TempDir>, port: u16, secret: &str, flags: &[&str]) -> Self {
        let program = env::var("VERSITYGW").expect("VERSITYGW names the program (`make test-slate`)");
        // The shell ends the gateway when its input closes: also that of a static, which is never dropped.
        let process = Command::new("sh")
            .args(["-c", "\"$@\" & read -r _; kill $!; wait", "sh", &program])
            .args(["--port", &format!("127.0.0.1:{port}"), "--access", KEY, "--secret", secret])
            .args(["--region", "us-east-1", "--quiet", "--keep-alive"])
            .args(flags)
            .args(["posix", "--sidecar"])
            .args([directory.path().join("attributes"), directory.path().join("data")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let gateway = Self { port, process, directory };
        let mut attempts = 0;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            attempts += 1;
            assert!(attempts < 4_000, "versitygw does not start");
            sleep(Duration::from_millis(5));
        }
        gateway
    }

    /// Its bucket.
    pub(crate) fn bucket(&self) -> Location {
        bucket_at(self.port)
    }

    /// Its bucket below a prefix.
    pub(crate) fn prefixed(&self, prefix: &str) -> PrefixStore<Arc<dyn ObjectStore>> {
        PrefixStore::new(self.bucket().object_store(), prefix)
    }

    /// The variables for a child process, whose location is [`URL`].
    pub(crate) fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }
}

/// The bucket with a prefix, for child processes.
pub(crate) const URL: &str = "s3://chains/below";

/// The bucket of the gateway, or of a proxy, at `port`.
pub(crate) fn bucket_at(port: u16) -> Location {
    slate::install_crypto();
    let retry =
        RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(4), ..RetryConfig::default() };
    let store = AmazonS3Builder::new()
        .with_endpoint(format!("http://127.0.0.1:{port}"))
        .with_allow_http(true)
        .with_bucket_name(BUCKET)
        .with_region("us-east-1")
        .with_access_key_id(KEY)
        .with_secret_access_key(SECRET)
        .with_retry(retry)
        .build();
    Location::in_store("s3://chains", Arc::new(store.unwrap()))
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}
