//! The endpoints, and what a request goes through: its form, its action, its envelope.

use std::sync::Arc;

use chain::evm::dialect::Dialect;
use evm_rpc::{EvmRpc, Group};
use futures_util::future::BoxFuture;
use http::StatusCode;
use query::Indexer;
use serde_json::{Value, json};
use web::app::App;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::limits::share::Share;
use web::openapi::schema::of;
use web::reply::Reply;
use web::router::RouteError;

use crate::actions::{self, Source};
use crate::contracts::{Contract, Contracts};
use crate::decoded;
use crate::form::{self, Form};
use crate::holders::Follow;
use crate::node::{self, JsonCall};
use crate::outcome::{Failure, Outcome, into_reply};
use crate::reads::Reads;
use crate::verified::Verified;

/// The interface of an index.
pub struct Etherscan {
    rpc: EvmRpc,
    contracts: Option<Arc<Contracts>>,
    verified: Option<Arc<Verified>>,
}

const fn endpoint(
    method: Method,
    path: &'static str,
    summary: &'static str,
    handler: Handler<Etherscan>,
) -> Endpoint<Etherscan> {
    let (tag, response) = ("Etherscan", of::<query::v1::GetStatusResponse>());
    Endpoint { method, path, tag, summary, params: &[], response, handler, cache: MaxAge::LIST }
}

const ACTION: Handler<Etherscan> = Handler::Async(action);

const SOURCIFY_CHAINS: Handler<Etherscan> = Handler::Sync(sourcify_chains);

const SOURCIFY_CONTRACT: &[Param] = &[
    Param::path("chain", "The chain's EIP-155 id, in decimal."),
    Param::path("address", "The contract's address, in hex."),
];

const fn sourcify_contract(path: &'static str) -> Endpoint<Etherscan> {
    let summary = "A known contract, as Sourcify's API has it.";
    Endpoint { params: SOURCIFY_CONTRACT, ..endpoint(Method::Get, path, summary, Handler::Sync(sourcify)) }
}

/// The endpoints.
pub const ENDPOINTS: &[&[Endpoint<Etherscan>]] = &[&[
    endpoint(Method::Get, "/api", "Etherscan's API.", ACTION),
    endpoint(Method::Post, "/api", "Etherscan's API, with a form.", ACTION),
    endpoint(Method::Get, "/v2/api", "Etherscan's API, second version.", ACTION),
    endpoint(Method::Post, "/v2/api", "Etherscan's API, second version, with a form.", ACTION),
    endpoint(Method::Get, "/v2/chainlist", "The chains of `chainid`.", Handler::Sync(chains)),
    sourcify_contract("/sourcify/v2/contract/{chain}/{address}"),
    // Safe's client has the path of sourcify.dev itself.
    sourcify_contract("/server/v2/contract/{chain}/{address}"),
    endpoint(Method::Get, "/sourcify/chains", "The chain, as Sourcify's API has it.", SOURCIFY_CHAINS),
    endpoint(Method::Get, "/server/chains", "The chain, as Sourcify's API has it.", SOURCIFY_CHAINS),
    Endpoint {
        params: &[Param::path("hash", "The hash of an EVM transaction, in hex.")],
        ..endpoint(
            Method::Get,
            "/indexer/evm/v1/decoded/{hash}",
            "The call and the logs of a transaction, by the ABIs of known contracts.",
            Handler::Async(decoded_tx),
        )
    },
    endpoint(
        Method::Post,
        "/api/eth-rpc",
        "Ethereum's JSON-RPC, as Blockscout has it.",
        Handler::Async(json_rpc),
    ),
]];

impl Etherscan {
    /// Reads the index of `rpc`, and calls it for what needs the state of the chain.
    pub fn new(rpc: EvmRpc) -> Self {
        Self { rpc, contracts: None, verified: None }
    }

    /// Sets the known contracts.
    #[must_use]
    pub fn with_contracts(self, contracts: Option<Contracts>) -> Self {
        Self { contracts: contracts.map(Arc::new), ..self }
    }

    /// Sets the server that is asked for other contracts, and that verifies them.
    #[must_use]
    pub fn with_verified(self, verified: Option<Verified>) -> Self {
        Self { verified: verified.map(Arc::new), ..self }
    }

    /// What it reads.
    pub fn rpc(&self) -> &EvmRpc {
        &self.rpc
    }

    /// The server over it.
    ///
    /// # Errors
    /// None: see [`web::router::Router::new`].
    pub fn app(self) -> Result<App<Self>, RouteError> {
        App::new(self, ENDPOINTS)
    }

    async fn reply(&self, call: &Call<'_>) -> Result<Reply, HttpError> {
        // Without a database there is nothing to say in any form.
        self.rpc.index()?;
        let outcome = match Form::read(call) {
            Ok(form) => self.outcome(form, call.share()).await,
            Err(failure) => Err(failure),
        };
        into_reply(outcome)
    }

    async fn outcome(&self, form: Form, share: Option<&Share>) -> Outcome {
        let chain_id = chain_id(self.rpc.index()?)?;
        if form.chain_id().is_some_and(|given| given != chain_id.to_string()) {
            return Err(Failure::Text(actions::NO_CHAIN.to_owned()));
        }
        match actions::find(&form)?.source {
            Source::Index(read) => self.read(share, read, form).await,
            Source::Node(group, request, print) => {
                let calls = request(&form)?;
                group.map_or(Ok(()), |group| self.require(group))?;
                print(&form, self.called(&calls, share).await?)
            }
            Source::IndexAndNode(read) => {
                let Follow { calls, print } = self.read(share, read, form).await?;
                self.require(Group::State)?;
                print(self.called(&calls, share).await?)
            }
            Source::Contract(print) => {
                let address = form.one_address("address")?;
                print(self.contract(share, address, form).await?.as_ref())
            }
            Source::Check(address, print) => {
                let address = address(&form)?;
                print(&form, self.contract(share, address, form.clone()).await?.as_ref())
            }
            Source::Verify => {
                let server = self.verified()?;
                let address = form.one_address("contractaddress")?;
                // It helps the server, which can do without.
                let creation =
                    self.read(share, move |reads| Ok(reads.view.creation_of(address)?), form.clone()).await;
                server.verify(chain_id, &form, creation.ok().flatten().map(|creation| creation.hash)).await
            }
            Source::Verification => self.verified()?.status(&form).await,
        }
    }

    /// An error unless calls of `group` are forwarded.
    fn require(&self, group: Group) -> Result<(), Failure> {
        if self.rpc.forwards(group) {
            return Ok(());
        }
        Err(Failure::Text(format!("Error! It needs `{}` in the setting `evm_forward`", group.name())))
    }

    /// The replies to calls of JSON-RPC.
    async fn called(&self, calls: &[JsonCall], share: Option<&Share>) -> Result<Vec<Value>, Failure> {
        node::replies(&self.rpc.reply(&node::body(calls), share, None).await?.body)
    }

    /// What is known of a contract: in the folder, or else by the server.
    async fn contract(
        &self,
        share: Option<&Share>,
        address: [u8; 20],
        form: Form,
    ) -> Result<Option<Contract>, Failure> {
        let known = self.read(share, move |reads| reads.contract(&address), form).await?;
        match (known, &self.verified) {
            (None, Some(server)) => server.contract(chain_id(self.rpc.index()?)?, &address).await,
            (known, _) => Ok(known),
        }
    }

    fn verified(&self) -> Result<&Verified, Failure> {
        self.verified
            .as_deref()
            .ok_or_else(|| Failure::Text("Error! It needs the setting `sourcify`".to_owned()))
    }

    /// What `read` finds in the index, in the share of the client.
    async fn read<T: Send + 'static>(
        &self,
        share: Option<&Share>,
        read: impl Fn(&Reads<'_>) -> Result<T, Failure> + Send + Sync + 'static,
        form: Form,
    ) -> Result<T, Failure> {
        let (index, contracts) = (Arc::clone(self.rpc.index()?), self.contracts.clone());
        let job = move || {
            // As Ethereum counts: positions of logs in the block.
            let view = index.state().evm(Dialect::Fixed)?;
            read(&Reads { view, form: &form, contracts: contracts.as_deref() })
        };
        match share {
            Some(share) => share.run(job).await?,
            None => job(),
        }
    }
}

/// The EIP-155 id of the chain.
fn chain_id(index: &App<Indexer>) -> Result<u64, HttpError> {
    index.state().evm_chain_id()
}

fn action<'a>(api: &'a Etherscan, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(api.reply(call))
}

fn json_rpc<'a>(api: &'a Etherscan, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(api.rpc.reply(call.body(), call.share(), None))
}

/// A transaction by ABIs of the folder.
fn decoded_tx<'a>(api: &'a Etherscan, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async move {
        let hash: [u8; 32] = form::bytes(call.text("hash"))
            .ok_or_else(|| HttpError::bad_request("the hash is not 32 bytes in hex"))?;
        let read = move |reads: &Reads<'_>| Ok(decoded::tx(reads, &hash)?);
        match api.read(call.share(), read, Form::default()).await {
            Ok(Some(found)) => Ok(Reply::json(found.to_string())),
            Ok(None) => Err(HttpError::not_found("there is no such EVM transaction")),
            Err(Failure::Http(error) | Failure::Index(query::evm::Error::Failed(error))) => Err(error),
            Err(_) => Err(HttpError::bad_request("the transaction has more bytes than a response may have")),
        }
    })
}

/// A contract of the folder, for programs that read Sourcify's API.
fn sourcify(api: &Etherscan, call: &Call<'_>) -> Result<Reply, HttpError> {
    let (chain, text) = (chain_id(api.rpc.index()?)?.to_string(), call.text("address"));
    let address = form::bytes::<20>(text)
        .ok_or_else(|| HttpError::bad_request("the address is not 20 bytes in hex"))?;
    let contracts = api.contracts.as_deref().filter(|_| chain == call.text("chain"));
    let contract = contracts.map(|contracts| contracts.get(&address)).transpose();
    let known = contract.map_err(HttpError::internal)?.flatten();
    let unknown = json!({ "match": null, "creationMatch": null, "runtimeMatch": null });
    let (status, mut members) = match known {
        Some(contract) => (StatusCode::OK, contract.into_json()),
        None => (StatusCode::NOT_FOUND, unknown),
    };
    members["chainId"] = chain.into();
    members["address"] = text.into();
    Ok(Reply { status, ..Reply::json(members.to_string()) })
}

/// Sourcify's list of chains.
fn sourcify_chains(api: &Etherscan, _: &Call<'_>) -> Result<Reply, HttpError> {
    let index = api.rpc.index()?;
    let (name, chain_id) = (index.state().chain_id(), chain_id(index)?);
    let chain = json!({ "name": name, "title": name, "chainId": chain_id, "supported": true, "rpc": [] });
    Ok(Reply::json(json!([chain]).to_string()))
}

fn chains(api: &Etherscan, _: &Call<'_>) -> Result<Reply, HttpError> {
    let index = api.rpc.index()?;
    let chain_id = chain_id(index)?.to_string();
    let chain = json!({
        "chainname": index.state().chain_id(),
        "chainid": chain_id,
        "blockexplorer": "",
        "apiurl": format!("/v2/api?chainid={chain_id}"),
        "status": 1,
        "comment": "",
    });
    let list: Value = json!({ "comments": "", "totalcount": "1", "result": [chain] });
    Ok(Reply::json(list.to_string()))
}
