//! Limits of connections, requests, rates and messages.

use std::io::Read as _;
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use grpc::v1::{CountTxsRequest, GetStatusRequest, GetTxRequest};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use web::clock::Clock;
use web::limits::{Limits, Rate};

use crate::indexed::{Client, PATIENCE, client, connect, connect_later, eventually, evm, serve};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_its_rate_is_refused_and_health_is_not_counted() {
    let (start, one) = (Instant::now(), NonZeroU32::MIN);
    let rate = Rate { per_second: one, burst: NonZeroU32::new(2).unwrap() };
    let limits = Limits { per_client: Some(rate), clock: Clock::new(move || start), ..Limits::default() };
    let server = serve(evm().await, limits);
    let mut health = HealthClient::new(connect(&server).await);
    for _ in 0..5 {
        health.check(HealthCheckRequest::default()).await.unwrap();
    }
    let mut client = client(&server).await;
    for _ in 0..2 {
        client.count_txs(CountTxsRequest {}).await.unwrap();
    }
    let status = client.count_txs(CountTxsRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("over 1 requests a second"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_beyond_its_connections_is_closed() {
    let server = serve(evm().await, Limits { connections_per_client: 1, ..Limits::default() });
    let mut first = client(&server).await;
    first.get_status(GetStatusRequest {}).await.unwrap();
    let second = async || Client::new(connect_later(&server)).get_status(GetStatusRequest {}).await;
    second().await.unwrap_err();
    first.get_status(GetStatusRequest {}).await.unwrap();
    drop(first);
    eventually(async || second().await.ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_request_is_refused() {
    let server = serve(evm().await, Limits::default());
    let mut client = client(&server).await;
    let status = client.get_tx(GetTxRequest { tx_hash: "0".repeat(100_000) }).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    client.get_status(GetStatusRequest {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_handshake_is_closed() {
    let head_read = Duration::from_millis(50);
    let server = serve(evm().await, Limits { head_read, ..Limits::default() });
    let address = server.address();
    let closed = tokio::task::spawn_blocking(move || {
        let mut silent = TcpStream::connect(address).unwrap();
        silent.set_read_timeout(Some(PATIENCE)).unwrap();
        silent.read_to_end(&mut Vec::new()).map(|_| ())
    });
    closed.await.unwrap().unwrap();
    // A connection that is open may rest for longer.
    let mut client = client(&server).await;
    client.get_status(GetStatusRequest {}).await.unwrap();
}
