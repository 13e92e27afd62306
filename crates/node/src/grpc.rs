//! gRPC client for the application's descriptors, the fastest source of them.
//!
//! # Invariants
//!
//! * A call tries each address at most once, under the same time limits as the other services.
//! * A gRPC status is classified by the same codes as those of REST.

use std::sync::Arc;

use bytes::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use proto::reflection::{PATH, ReflectionClient};

use crate::error::{Error, RequestContext};
use crate::limits::Limits;
use crate::pool::transport::{self, Protocol};
use crate::pool::{better, no_address};
use crate::rest::gateway::{self, GrpcStatus};
use crate::setup_error::SetupError;
use crate::url::Url;

/// Queries one chain's gRPC servers.
pub struct Grpc {
    endpoints: Vec<(Arc<str>, tonic::transport::Endpoint)>,
    connector: HttpsConnector<HttpConnector>,
    limits: Limits,
}

impl Grpc {
    /// A client over one or more addresses of the same chain: scheme, host and port only.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        if urls.is_empty() {
            return Err(SetupError::NoUrls { service: "grpc" });
        }
        let tls = urls.iter().any(Url::is_https);
        let connector = transport::connector(tls, limits.connect, Protocol::Http2)?;
        let endpoints = urls.iter().map(|url| Ok((Arc::clone(url.host()), endpoint(url)?)));
        Ok(Self { endpoints: endpoints.collect::<Result<_, SetupError>>()?, connector, limits })
    }

    /// The application's descriptors: the bytes of a `FileDescriptorSet`.
    pub async fn file_descriptors(&self) -> Result<Bytes, Error> {
        let mut best = None;
        for (host, endpoint) in &self.endpoints {
            match self.descriptors_of(host, endpoint).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => best = Some(better(best, error)),
            }
        }
        // The constructor refuses an empty list, so there is always a last failure.
        Err(best.unwrap_or_else(|| no_address(context(&Arc::default()))))
    }

    async fn descriptors_of(
        &self,
        host: &Arc<str>,
        endpoint: &tonic::transport::Endpoint,
    ) -> Result<Bytes, Error> {
        let at = || context(host);
        let whole = async {
            let channel = endpoint.connect_with_connector(self.connector.clone()).await;
            let channel =
                channel.map_err(|e| Error::Unreachable { at: at(), reason: transport::reason(&e) })?;
            ReflectionClient::new(channel).file_descriptors().await.map_err(|status| {
                let (code, message) = (i64::from(i32::from(status.code())), status.message().to_owned());
                gateway::classify(at(), GrpcStatus { code, message })
            })
        };
        let after = self.limits.timeout;
        tokio::time::timeout(after, whole).await.map_err(|_| Error::TimedOut { at: at(), after })?
    }
}

fn context(host: &Arc<str>) -> RequestContext {
    RequestContext { service: "grpc", host: Arc::clone(host), method: PATH.into(), height: None }
}

fn endpoint(url: &Url) -> Result<tonic::transport::Endpoint, SetupError> {
    let refuse = |reason: String| SetupError::GrpcAddress { url: url.to_string(), reason };
    if url.authorization().is_some() || url.has_path() {
        return Err(refuse("a user, password or path is not supported for gRPC".to_owned()));
    }
    tonic::transport::Endpoint::from_shared(url.to_string()).map_err(|e| refuse(e.to_string()))
}
