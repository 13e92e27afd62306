//! Errors of the JSON API as gRPC statuses.

use tonic::{Code, Status};
use web::http_error::HttpError;

/// The status of `error`, with the same code and message as the JSON body.
pub(crate) fn from_error(error: &HttpError) -> Status {
    Status::new(Code::from(i32::from(error.code())), error.message())
}
