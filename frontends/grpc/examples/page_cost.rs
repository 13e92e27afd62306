//! Latency of pages over gRPC and as JSON over HTTP/1.1, one client each, on the recorded chain `evm-scenario`:
//! `cargo run --release -p grpc --example page_cost`.
//!
//! Both servers read the same index. The figure of gRPC includes the decoding of the message by its client, that of JSON
//! no parser.

#![allow(clippy::unwrap_used, reason = "a measurement stops where something is not as expected")]
#![allow(clippy::print_stdout, reason = "its output is the measurement")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use grpc::v1::index_service_client::IndexServiceClient;
use grpc::v1::{GetStatusRequest, ListBlocksRequest, ListEvmTxsRequest, ListTxsRequest};
use replay::{Options, Recording};
use store::MemStore;
use testkit::{indexed, recording};
use tonic::transport::Endpoint;
use web::app::App;
use web::limits::Limits;
use web::serve::server::Server;

const ROUNDS: usize = 500;

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// The length of the body of `GET target`.
fn get(stream: &mut TcpStream, target: &str, buffer: &mut Vec<u8>) -> usize {
    write!(stream, "GET {target} HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
    buffer.clear();
    let mut part = vec![0; 1 << 16];
    loop {
        let read = stream.read(&mut part).unwrap();
        buffer.extend_from_slice(&part[..read]);
        let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..end]).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let length: usize = length.parse().unwrap();
        if buffer.len() == end + 4 + length {
            return length;
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::main]
async fn main() {
    let store = Arc::new(MemStore::new());
    let chain = Arc::new(Recording::open(&recording("evm-scenario")).unwrap());
    indexed::index(chain, Options::default(), Arc::clone(&store) as _).await.unwrap();
    let app = Arc::new(App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap());
    let json = Server::start(listener(), Arc::clone(&app), Limits::default(), 2).unwrap();
    let index = Arc::new(OnceLock::from(app));
    let server = grpc::start(listener(), index, || Ok(()), Limits::default(), 2).unwrap();

    let mut stream = TcpStream::connect(json.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    let channel = Endpoint::from_shared(format!("http://{}", server.address())).unwrap();
    let mut client = IndexServiceClient::new(channel.connect().await.unwrap());
    let mut buffer = Vec::new();
    println!("page                        JSON        gRPC   ratio");
    for target in ["/status", "/indexer/block/v1/blocks", "/indexer/tx/v1/txs", "/indexer/tx/v1/evm-txs"] {
        let (mut of_json, mut of_grpc) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            get(&mut stream, target, &mut buffer);
            of_json.push(begun.elapsed());
            let begun = Instant::now();
            match target {
                "/status" => drop(client.get_status(GetStatusRequest {}).await.unwrap()),
                "/indexer/block/v1/blocks" => {
                    drop(client.list_blocks(ListBlocksRequest::default()).await.unwrap());
                }
                "/indexer/tx/v1/txs" => drop(client.list_txs(ListTxsRequest::default()).await.unwrap()),
                _ => drop(client.list_evm_txs(ListEvmTxsRequest::default()).await.unwrap()),
            }
            of_grpc.push(begun.elapsed());
        }
        let (json, grpc) = (median(of_json), median(of_grpc));
        let ratio = grpc.as_secs_f64() / json.as_secs_f64();
        println!("{target:<26}{:>6} µs   {:>6} µs   {ratio:.2}", json.as_micros(), grpc.as_micros());
    }
}
