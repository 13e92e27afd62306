//! Descriptors with and without gRPC.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{HeaderMap, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use node::{Comet, Endpoints, Error, Grpc, Kind, Limits, Node, Url};
use tokio::net::TcpListener;

use crate::scripted::{Server, limits, nowhere, result};

/// An HTTP/2 server that answers every call with one message and a status.
async fn server(message: &'static [u8], status: &'static str, text: &'static str) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service =
                service_fn(move |_| async move { Ok::<_, Infallible>(answer(message, status, text)) });
            let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(http2.serve_connection(TokioIo::new(socket), service));
        }
    });
    url
}

fn answer(
    message: &[u8],
    status: &'static str,
    text: &'static str,
) -> Response<StreamBody<impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>>>> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let data = Bytes::from([&[0], &length[..], message].concat());
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    trailers.insert("grpc-message", text.parse().unwrap());
    let frames = [Ok(Frame::data(data)), Ok(Frame::trailers(trailers))];
    let body = StreamBody::new(stream::iter(frames));
    Response::builder().header("content-type", "application/grpc").body(body).unwrap()
}

fn grpc(urls: Vec<Url>) -> Grpc {
    Grpc::new(urls, limits()).unwrap()
}

#[tokio::test]
async fn the_bytes_of_the_message_come_from_the_first_server_that_answers() {
    let good = server(b"\x0a\x03abc", "0", "").await;
    let bytes = grpc(vec![nowhere().await, good]).file_descriptors().await.unwrap();
    assert_eq!(&bytes[..], b"\x0a\x03abc");
}

#[tokio::test]
async fn a_status_has_the_meaning_of_its_code() {
    let missing = server(b"", "12", "unknown service").await;
    let error = grpc(vec![missing.clone()]).file_descriptors().await.unwrap_err();
    assert!(matches!(error, Error::MethodMissing { .. }), "{error:?}");
    let place = format!("grpc {}, /cosmos.reflection.v1.ReflectionService/FileDescriptors: ", missing.host());
    assert!(error.to_string().starts_with(&place), "{error}");
    let down = server(b"", "14", "down").await;
    let error = grpc(vec![missing, down]).file_descriptors().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Transient, "one of two may come back: {error}");
}

#[tokio::test]
async fn descriptors_come_by_grpc_or_else_by_rpc() {
    let comet = Server::always(result(r#"{"response":{"code":0,"value":"CgNkZWY="}}"#)).await;
    let good = server(b"\x0a\x03abc", "0", "").await;
    let node = |grpc: Vec<Url>| {
        let endpoints = Endpoints { comet: vec![comet.url.clone()], grpc, ..Endpoints::default() };
        Node::new(endpoints, limits()).unwrap()
    };
    assert_eq!(&node(vec![good]).descriptors().await.unwrap().bytes[..], b"\x0a\x03abc");
    assert_eq!(comet.count(), 0);
    for grpc in [vec![], vec![nowhere().await]] {
        let descriptors = node(grpc).descriptors().await.unwrap();
        assert_eq!(&descriptors.bytes[..], b"\x0a\x03def");
        // sha256 of 0a 03 64 65 66
        assert_eq!(
            hex::encode(descriptors.sha256),
            "22dc41b73d33879f91c465a9ff1989530493c4c4b5bd649886fa6dacace0792f"
        );
    }
}

#[test]
fn an_address_that_grpc_cannot_use_is_refused_at_the_start() {
    for text in ["http://me:hunter2@n:9090", "http://n:9090/hunter2"] {
        let Err(error) = Grpc::new(vec![text.parse().unwrap()], Limits::default()) else { panic!("{text}") };
        assert!(error.to_string().starts_with("grpc address `http://n:9090`: "), "{error}");
    }
    assert!(Comet::new(Vec::new(), Limits::default()).is_err());
}
