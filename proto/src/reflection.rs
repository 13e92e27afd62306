//! The reflection call that returns a chain's own file descriptors over gRPC.
//!
//! The answer's only field is `repeated FileDescriptorProto files = 1`, the same as that of a `FileDescriptorSet`. It
//! is therefore passed on without decoding: hashing and storing its bytes gives the same result as for `abci_query` of
//! [`PATH`], which returns the same bytes.

use bytes::{Buf, Bytes};
use tonic::client::{Grpc, GrpcService};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{Body, StdError};
use tonic::{Request, Status};

/// Path of the call, both on gRPC and as `path` of CometBFT's `abci_query` (cosmos-sdk
/// `proto/cosmos/reflection/v1/reflection.proto`).
pub const PATH: &str = "/cosmos.reflection.v1.ReflectionService/FileDescriptors";

/// Maximum bytes of an accepted answer. Recorded chains answer with about 0.5 MiB.
pub const MAX_ANSWER: usize = 32 << 20;

/// Client of `cosmos.reflection.v1.ReflectionService` over any gRPC channel.
#[derive(Debug, Clone)]
pub struct ReflectionClient<T> {
    inner: Grpc<T>,
}

impl<T> ReflectionClient<T>
where
    T: GrpcService<tonic::body::Body>,
    T::ResponseBody: Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as Body>::Error: Into<StdError> + Send,
{
    /// A client that sends over `channel`; does not send yet.
    pub fn new(channel: T) -> Self {
        Self { inner: Grpc::new(channel).max_decoding_message_size(MAX_ANSWER) }
    }

    /// The chain's file descriptors: the bytes of a `FileDescriptorSet`, not checked.
    ///
    /// Errors: the channel is not ready (`unavailable`), the node's own status, or an answer over
    /// [`MAX_ANSWER`] (`out of range`).
    pub async fn file_descriptors(&mut self) -> Result<Bytes, Status> {
        self.inner.ready().await.map_err(|error| {
            Status::unavailable(format!("reflection channel is not ready: {}", error.into()))
        })?;
        let path = http::uri::PathAndQuery::from_static(PATH);
        let answer = self.inner.unary(Request::new(()), path, Undecoded).await?;
        Ok(answer.into_inner())
    }
}

/// Sends a request without fields and returns the answer's bytes unchanged.
#[derive(Debug, Clone, Copy, Default)]
struct Undecoded;

impl Codec for Undecoded {
    type Encode = ();
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Undecoded {
    type Item = ();
    type Error = Status;

    fn encode(&mut self, (): (), _: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Ok(())
    }
}

impl Decoder for Undecoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}
