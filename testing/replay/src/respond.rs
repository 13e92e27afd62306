//! The answer of a replay node to one HTTP request, with the faults that hit it.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use tokio::time::sleep;
use web::raw::RawReply;

use crate::answers::{Answer, Service, Work, answer};
use crate::state::NodeState;
use crate::websocket;

/// Answers a request to a service, after the delays that faults and pace give it.
pub(crate) async fn reply(state: Arc<NodeState>, service: Service, request: Request<Bytes>) -> RawReply {
    let snapshot = state.snapshot();
    if snapshot.down {
        return RawReply::HangUp;
    }
    let effects = state.next_effects(service, &snapshot);
    if !effects.delay.is_zero() {
        sleep(effects.delay).await;
        // What is under way when a node goes down is never answered.
        if state.snapshot().down {
            return RawReply::HangUp;
        }
    }
    if effects.hang_up {
        return RawReply::HangUp;
    }
    if let Some((status, after)) = effects.status {
        return refusal(status, after).into();
    }
    if service == Service::Comet && request.uri().path() == websocket::PATH {
        return websocket::open(state, &request, effects.websocket);
    }
    let waited = state.take_time(|| Work::of(&snapshot.recording, service, &request)).await;
    if waited && state.snapshot().down {
        return RawReply::HangUp;
    }
    // A node that is slow answers with what it knows by then.
    let answer = state.view(service, &state.snapshot(), &effects, |view| answer(service, view, &request));
    let half = answer.body.len() / 2;
    let response = response(service, answer);
    if effects.cut { RawReply::Cut(response, half) } else { response.into() }
}

fn response(service: Service, answer: Answer) -> Response<Bytes> {
    let Answer { status, body } = answer;
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let is_text = service == Service::Executor && !status.is_success();
    let kind = if is_text { "text/plain; charset=utf-8" } else { "application/json" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = match service {
            Service::JsonRpc => "POST",
            Service::Executor => "GET",
            Service::Comet | Service::Rest => "GET, POST",
        };
        headers.insert(ALLOW, HeaderValue::from_static(allowed));
    }
    response
}

/// What a proxy in front of a node says: text, not the node's JSON.
fn refusal(status: StatusCode, after: Option<u64>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"a fault played by the replay node\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Some(seconds) = after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
