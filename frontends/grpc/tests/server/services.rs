//! Health, reflection, metrics, start and stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use grpc::v1::{GetStatusRequest, GetTxRequest};
use metrics_exporter_prometheus::PrometheusBuilder;
use prost::Message as _;
use prost_types::FileDescriptorProto;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};
use web::limits::Limits;

use crate::indexed::{PATIENCE, client, connect, eventually, evm, serve, serve_when};

const SERVICE: &str = "cairn.index.v1.IndexService";

#[tokio::test(flavor = "multi_thread")]
async fn health_follows_readiness_and_an_index_appears() {
    let (index, ready) = (Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(false)));
    let is_ready = Arc::clone(&ready);
    let check = move || is_ready.load(Ordering::Relaxed).then_some(()).ok_or("no node".to_owned());
    let server = serve_when(Arc::clone(&index), Limits::default(), check);
    let mut health = HealthClient::new(connect(&server).await);
    let mut client = client(&server).await;

    let request = || HealthCheckRequest { service: SERVICE.to_owned() };
    let mut watch = health.watch(request()).await.unwrap().into_inner();
    let not_serving = ServingStatus::NotServing;
    assert_eq!(watch.message().await.unwrap().unwrap().status(), not_serving);
    assert_eq!(health.check(HealthCheckRequest::default()).await.unwrap().into_inner().status(), not_serving);
    let status = client.get_status(GetStatusRequest {}).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "not ready: no node"));

    index.set(evm().await).ok().unwrap();
    ready.store(true, Ordering::Relaxed);
    let chain = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((chain.chain_id.as_str(), chain.version.as_str()), ("e2e-evm-1", "test"));
    eventually(async || {
        let next = watch.message().await.unwrap().unwrap();
        (next.status() == ServingStatus::Serving).then_some(())
    })
    .await;
    let unknown = HealthCheckRequest { service: "unknown".to_owned() };
    assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);
}

macro_rules! reflection {
    ($version:ident, $server:expr) => {{
        use $version::server_reflection_request::MessageRequest;
        use $version::server_reflection_response::MessageResponse;
        let channel = connect($server).await;
        let mut reflection = $version::server_reflection_client::ServerReflectionClient::new(channel);
        let ask = |message| $version::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(message),
        };
        let requests = [
            ask(MessageRequest::ListServices(String::new())),
            ask(MessageRequest::FileContainingSymbol(format!("{SERVICE}.ListTxs"))),
        ];
        let requests = futures_util::stream::iter(requests);
        let mut answers = reflection.server_reflection_info(requests).await.unwrap().into_inner();
        let mut next = async || answers.message().await.unwrap().unwrap().message_response.unwrap();
        let MessageResponse::ListServicesResponse(list) = next().await else { panic!("not a list") };
        let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
        let MessageResponse::FileDescriptorResponse(files) = next().await else { panic!("not a file") };
        (names, files.file_descriptor_proto)
    }};
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_describes_the_services_in_both_versions() {
    let server = serve(evm().await, Limits::default());
    let (names, files) = reflection!(v1, &server);
    for name in [SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"] {
        assert!(names.iter().any(|other| other == name), "{name} in {names:?}");
    }
    let file = FileDescriptorProto::decode(files[0].as_slice()).unwrap();
    assert_eq!(file.name(), "cairn/index/v1/index_service.proto");
    let comments = file.source_code_info.unwrap().location;
    assert!(comments.iter().any(|of| of.leading_comments().contains("GET /indexer/tx/v1/txs")));
    let (names, of_alpha) = reflection!(v1alpha, &server);
    assert!(names.iter().any(|name| name == SERVICE), "{names:?}");
    assert_eq!(files, of_alpha);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_streams_in_time_and_closes_the_address() {
    let limits = Limits::default();
    let within = limits.stop;
    let server = serve(evm().await, limits);
    let (address, mut health) = (server.address(), HealthClient::new(connect(&server).await));
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    watch.message().await.unwrap().unwrap();
    let begun = Instant::now();
    tokio::task::spawn_blocking(move || server.stop()).await.unwrap();
    assert!(begun.elapsed() < within + PATIENCE / 4, "{:?}", begun.elapsed());
    // A last change of the health may be in flight.
    let ended = async { while matches!(watch.message().await, Ok(Some(_))) {} };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_method_and_code() {
    let metrics = PrometheusBuilder::new().install_recorder().unwrap();
    let server = serve(evm().await, Limits::default());
    let mut client = client(&server).await;
    client.get_tx(GetTxRequest { tx_hash: "00".repeat(32) }).await.unwrap_err();
    let mut unknown = tonic::client::Grpc::new(connect(&server).await);
    unknown.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<GetTxRequest, GetTxRequest>::default();
    let path = http::uri::PathAndQuery::from_static("/no.Service/Method");
    let status = unknown.unary(tonic::Request::new(GetTxRequest::default()), path, codec).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("`no.Service`"), "{status}");
    let text = metrics.render();
    for line in [
        r#"cairn_grpc_requests_total{method="cairn.index.v1.IndexService/GetTx",code="NOT_FOUND"} "#,
        r#"cairn_grpc_requests_total{method="other",code="UNIMPLEMENTED"} "#,
        r#"cairn_grpc_request_seconds_count{method="cairn.index.v1.IndexService/GetTx"} "#,
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
}
