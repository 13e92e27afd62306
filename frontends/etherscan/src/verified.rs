//! Contracts that a server of Sourcify knows, and their verification there.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use lru::LruCache;
use node::{Limits, SetupError, Sourcify, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::contracts::Contract;
use crate::form::Form;
use crate::outcome::{Failure, Outcome, Success};

/// Time for a reply.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum bytes of a contract with its sources.
const MAX_CONTRACT: usize = 4 << 20;

/// Contracts that are remembered, known or not, and for how long.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
const REMEMBERED_FOR: Duration = Duration::from_mins(10);

/// Longest id of a verification: Sourcify's have 36 characters.
const MAX_ID: usize = 64;

/// Contracts by address, each with the time of the reply.
type Known = LruCache<[u8; 20], (Instant, Option<Contract>)>;

/// A server.
pub struct Verified {
    server: Sourcify,
    known: Mutex<Known>,
}

/// A reply about a verification.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Reply {
    verification_id: String,
    custom_code: String,
    message: String,
    is_job_completed: bool,
    contract: Option<Match>,
    error: Option<Reason>,
}

#[derive(Deserialize)]
struct Match {
    #[serde(rename = "match")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(default)]
    message: String,
}

fn refused(text: impl Into<String>) -> Failure {
    Failure::Text(text.into())
}

impl Verified {
    /// Asks the server at a base address, such as `https://sourcify.dev/server`.
    ///
    /// # Errors
    /// If a client for it cannot be made.
    pub fn new(server: Url) -> Result<Self, SetupError> {
        let limits = Limits { timeout: TIMEOUT, body: MAX_CONTRACT, in_flight: 8, ..Limits::default() };
        Ok(Self { server: Sourcify::new(server, limits)?, known: Mutex::new(LruCache::new(REMEMBERED)) })
    }

    /// A contract of the chain with this EIP-155 id; `None` if it is not verified.
    pub(crate) async fn contract(
        &self,
        chain_id: u64,
        address: &[u8; 20],
    ) -> Result<Option<Contract>, Failure> {
        // The lock is held for look-ups only, which do not panic.
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, contract)) = known().get(address).filter(|(at, _)| at.elapsed() < REMEMBERED_FOR) {
            return Ok(contract.clone());
        }
        let reply = self.server.contract(chain_id, address).await.map_err(|error| unavailable(&error))?;
        let contract = reply.and_then(|bytes| Contract::parse(&bytes));
        known().put(*address, (Instant::now(), contract.clone()));
        Ok(contract)
    }

    /// Action `verifysourcecode`: the result is the id of the verification.
    pub(crate) async fn verify(&self, chain_id: u64, form: &Form, creation: Option<String>) -> Outcome {
        let address = form.one_address("contractaddress")?;
        if form.get("codeformat") != Some("solidity-standard-json-input") {
            return Err(refused("Invalid codeformat: only solidity-standard-json-input is taken"));
        }
        let input: Value = serde_json::from_str(form.required("sourcecode")?)
            .map_err(|error| refused(format!("Error! Invalid sourceCode: {error}")))?;
        let body = json!({
            "stdJsonInput": input,
            "contractIdentifier": form.required("contractname")?,
            "compilerVersion": form.required("compilerversion")?.trim_start_matches('v'),
            "creationTransactionHash": creation,
        });
        let reply = self.server.verify(chain_id, &address, body.to_string()).await;
        let (status, reply) = reply.map_err(|error| unavailable(&error))?;
        let reply = parse(&reply)?;
        match (status, &*reply.custom_code) {
            _ if status.is_success() && !reply.verification_id.is_empty() => {
                Ok(Success::text(&reply.verification_id))
            }
            (StatusCode::CONFLICT, _) => Err(refused("Contract source code already verified")),
            (_, "cannot_fetch_bytecode" | "contract_not_deployed") => {
                Err(refused(format!("Unable to locate ContractCode at 0x{}", hex::encode(address))))
            }
            _ => Err(refused(reply.message)),
        }
    }

    /// Action `checkverifystatus`.
    pub(crate) async fn status(&self, form: &Form) -> Outcome {
        let id = form.required("guid")?;
        if id.len() > MAX_ID || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(refused("Error! Invalid guid"));
        }
        let (_, reply) = self.server.verification(id).await.map_err(|error| unavailable(&error))?;
        let reply = parse(&reply)?;
        if !reply.is_job_completed && reply.custom_code.is_empty() {
            return Err(refused("Pending in queue"));
        }
        if reply.contract.is_some_and(|contract| contract.kind.is_some()) {
            return Ok(Success::text("Pass - Verified"));
        }
        // hardhat compares the whole text, so the reason of the server is only logged.
        let reason = reply.error.map_or(reply.message, |error| error.message);
        tracing::debug!(id, reason, "a contract was not verified");
        Err(refused("Fail - Unable to verify"))
    }
}

fn parse(reply: &[u8]) -> Result<Reply, Failure> {
    serde_json::from_slice(reply)
        .map_err(|_| refused("Error! The server of verified contracts gave no reply in its form"))
}

fn unavailable(error: &node::Error) -> Failure {
    tracing::debug!(%error, "the server of verified contracts does not reply");
    refused("Error! The server of verified contracts is unavailable")
}
