//! The gRPC server: the index service, reflection (v1 and v1alpha) and health, on an address of its own.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use http::{Request, Response};
use tokio::sync::oneshot;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};
use tower_service::Service;
use web::http_error::HttpError;
use web::limits::Limits;
use web::serve::http2::{Incoming, RequestHandler, RequestKind, serve_http2};
use web::serve::server::Server;

use crate::DESCRIPTORS;
use crate::index_service::{Index, IndexReader, MAX_RESPONSE, Ready};
use crate::meter;
use crate::methods::Methods;
use crate::status;
use crate::v1::index_service_server::IndexServiceServer;

/// The RPC of health checks, which no limit applies to.
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// Interval at which the health service takes over the readiness.
const HEALTH_EVERY: Duration = Duration::from_secs(1);

/// Serves `index` on `listener` (port 0 is allowed) with `workers` threads, at least one. `ready` is the readiness
/// check; until there is an index, RPCs get `UNAVAILABLE` with its reason.
///
/// # Errors
/// If the threads cannot be started or the socket cannot be used.
pub fn start(
    listener: TcpListener,
    index: Index,
    ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    limits: Limits,
    workers: usize,
) -> io::Result<Server> {
    let ready: Ready = Arc::new(ready);
    let (reporter, health) = health_reporter();
    let (stop, stopped) = oneshot::channel::<Infallible>();
    // A dropped sender is a stop.
    let stopped = async { drop(stopped.await) }.boxed().shared();
    let reader = IndexReader::new(index, Arc::clone(&ready), stopped);
    let services = Services {
        index: IndexServiceServer::new(reader)
            .max_decoding_message_size(limits.body)
            .max_encoding_message_size(MAX_RESPONSE),
        health: health.max_decoding_message_size(limits.body),
        reflection: reflection().build_v1().map_err(io::Error::other)?.max_decoding_message_size(limits.body),
        alpha: reflection().build_v1alpha().map_err(io::Error::other)?.max_decoding_message_size(limits.body),
        methods: Methods::from_descriptors(&[
            DESCRIPTORS,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ])
        .map_err(io::Error::other)?,
    };
    Server::run(listener, workers, |listener, stopped| async move {
        report(&reporter, &ready).await;
        let stopped = stopped.map(|()| drop(stop));
        tokio::select! {
            () = serve_http2(listener, services, limits, stopped) => {}
            never = follow(&reporter, &ready) => match never {},
        }
    })
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// Takes over the readiness, again and again.
async fn follow(reporter: &HealthReporter, ready: &Ready) -> Infallible {
    loop {
        tokio::time::sleep(HEALTH_EVERY).await;
        report(reporter, ready).await;
    }
}

/// Takes over the readiness, for the server and its service.
async fn report(reporter: &HealthReporter, ready: &Ready) {
    let status = if ready().is_ok() { ServingStatus::Serving } else { ServingStatus::NotServing };
    for service in ["", IndexServiceServer::<IndexReader>::NAME] {
        reporter.set_service_status(service, status).await;
    }
}

/// The services by name. Their types have parameters because those of reflection and health have no names.
struct Services<H, V1, V1Alpha> {
    index: IndexServiceServer<IndexReader>,
    health: H,
    reflection: V1,
    alpha: V1Alpha,
    methods: Methods,
}

/// A service that tonic has generated.
trait GrpcService:
    Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
    + NamedService
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> GrpcService for S where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static
{
}

impl<H: GrpcService, V1: GrpcService, V1Alpha: GrpcService> RequestHandler for Services<H, V1, V1Alpha> {
    type Body = Body;

    fn kind(&self, path: &str) -> RequestKind {
        match path {
            CHECK => RequestKind::Probe,
            path if self.methods.is_stream(path) => RequestKind::Stream,
            _ => RequestKind::Reply,
        }
    }

    fn reject(&self, path: &str, error: &HttpError) -> Response<Body> {
        let status = status::from_error(error);
        meter::observe(self.methods.name(path), Some(&status), Duration::ZERO);
        status.into_http()
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let (begun, uri) = (Instant::now(), request.uri().clone());
        // `/package.Service/Method`
        let service = uri.path().split('/').nth(1).unwrap_or_default();
        let response = if service == IndexServiceServer::<IndexReader>::NAME {
            call(&self.index, request).await
        } else if service == H::NAME {
            call(&self.health, request).await
        } else if service == V1::NAME {
            call(&self.reflection, request).await
        } else if service == V1Alpha::NAME {
            call(&self.alpha, request).await
        } else {
            Status::unimplemented(format!("no service `{service}`; reflection lists them")).into_http()
        };
        if uri.path() != CHECK {
            let status = response.extensions().get::<Status>();
            meter::observe(self.methods.name(uri.path()), status, begun.elapsed());
        }
        response
    }
}

async fn call<S: GrpcService>(service: &S, request: Request<Incoming>) -> Response<Body> {
    match service.clone().call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
