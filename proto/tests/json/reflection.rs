//! The reflection client against an in-process gRPC service that speaks the real framing.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http_body_util::{BodyExt, Full};
use proto::reflection::{MAX_ANSWER, PATH, ReflectionClient};
use tonic::Code;
use tonic::codegen::{Bytes, Service};

/// Answers every call with one gRPC message, or with a status only.
#[derive(Clone)]
struct Node {
    message: Vec<u8>,
    status: &'static str,
}

impl Service<http::Request<tonic::body::Body>> for Node {
    type Response = http::Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        assert_eq!(request.uri().path(), PATH);
        assert_eq!(request.headers()["content-type"], "application/grpc");
        let length = u32::try_from(self.message.len()).unwrap();
        let mut frame = vec![0];
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(&self.message);
        ready(Ok(http::Response::builder()
            .header("content-type", "application/grpc")
            .header("grpc-status", self.status)
            .body(Full::new(Bytes::from(frame)))
            .unwrap()))
    }
}

#[tokio::test]
async fn the_answer_is_passed_on_byte_for_byte() {
    let message = vec![0x0a, 0x02, 0x12, 0x00, 0xff];
    let mut client = ReflectionClient::new(Node { message: message.clone(), status: "0" });
    assert_eq!(client.file_descriptors().await.unwrap(), message);
}

#[tokio::test]
async fn a_refusal_of_the_node_is_an_error_with_its_code() {
    let mut client = ReflectionClient::new(Node { message: Vec::new(), status: "12" });
    assert_eq!(client.file_descriptors().await.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused() {
    let mut client = ReflectionClient::new(Node { message: vec![0; MAX_ANSWER + 1], status: "0" });
    assert_eq!(client.file_descriptors().await.unwrap_err().code(), Code::OutOfRange);
}

#[tokio::test]
async fn the_request_has_no_fields() {
    struct Capture;
    impl Service<http::Request<tonic::body::Body>> for Capture {
        type Response = http::Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
            Box::pin(async move {
                let sent = request.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(sent, [0u8; 5].as_slice(), "an empty gRPC message is five zero bytes");
                let body = Full::new(Bytes::from_static(&[0; 5]));
                Ok(http::Response::builder().header("grpc-status", "0").body(body).unwrap())
            })
        }
    }
    assert!(ReflectionClient::new(Capture).file_descriptors().await.unwrap().is_empty());
}
