//! The endpoints, and what a request goes through: its form, its action, its envelope.

use std::sync::Arc;

use chain::evm::dialect::Dialect;
use chain::evm::transaction::EthChain;
use evm_rpc::EvmRpc;
use futures_util::future::BoxFuture;
use query::Indexer;
use query::evm::EvmView;
use serde_json::{Value, json};
use web::app::App;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method};
use web::http_error::HttpError;
use web::limits::share::Share;
use web::openapi::schema::of;
use web::reply::Reply;
use web::router::RouteError;

use crate::actions::{self, Source};
use crate::contracts::{Contract, Contracts};
use crate::form::Form;
use crate::node;
use crate::outcome::{Failure, Outcome, into_reply};

/// The interface of an index.
pub struct Etherscan {
    rpc: EvmRpc,
    contracts: Option<Arc<Contracts>>,
}

/// The index in one snapshot, and the parameters of a request.
pub(crate) struct Reads<'a> {
    pub(crate) view: EvmView<'a>,
    pub(crate) form: &'a Form,
    /// The known contracts.
    contracts: Option<&'a Contracts>,
}

impl Reads<'_> {
    /// What is known of a contract; `None` if nothing is.
    ///
    /// # Errors
    /// 500 if its file cannot be used: the reason goes to the log.
    pub(crate) fn contract(&self, address: &[u8; 20]) -> Result<Option<Contract>, HttpError> {
        let contract = self.contracts.map(|contracts| contracts.get(address)).transpose();
        Ok(contract.map_err(HttpError::internal)?.flatten())
    }
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

const ONE_CHAIN: Handler<Etherscan> = Handler::Async(one_chain);
const BY_CHAIN_ID: Handler<Etherscan> = Handler::Async(by_chain_id);

/// The endpoints.
pub const ENDPOINTS: &[&[Endpoint<Etherscan>]] = &[&[
    endpoint(Method::Get, "/api", "Etherscan's API.", ONE_CHAIN),
    endpoint(Method::Post, "/api", "Etherscan's API, with a form.", ONE_CHAIN),
    endpoint(Method::Get, "/v2/api", "Etherscan's API with `chainid`.", BY_CHAIN_ID),
    endpoint(Method::Post, "/v2/api", "Etherscan's API with `chainid`, with a form.", BY_CHAIN_ID),
    endpoint(Method::Get, "/v2/chainlist", "The chains of `chainid`.", Handler::Sync(chains)),
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
        Self { rpc, contracts: None }
    }

    /// Sets the known contracts.
    #[must_use]
    pub fn with_contracts(self, contracts: Option<Contracts>) -> Self {
        Self { contracts: contracts.map(Arc::new), ..self }
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

    async fn reply(&self, call: &Call<'_>, needs_chain: bool) -> Result<Reply, HttpError> {
        // Without a database there is nothing to say in any form.
        self.rpc.index()?;
        let outcome = match Form::read(call) {
            Ok(form) => self.outcome(form, call.share(), needs_chain).await,
            Err(failure) => Err(failure),
        };
        into_reply(outcome)
    }

    async fn outcome(&self, form: Form, share: Option<&Share>, needs_chain: bool) -> Outcome {
        let chain_id = chain_id(self.rpc.index()?);
        if form.chain_id().map_or(needs_chain, |given| given != chain_id) {
            return Err(Failure::Text(actions::NO_CHAIN.to_owned()));
        }
        let action = actions::find(&form)?;
        match action.source {
            Source::Index(read) => {
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
            Source::Node(request, print) => {
                let calls = request(&form)?;
                let reply = self.rpc.reply(&node::body(&calls), share).await?;
                print(&form, node::replies(&reply.body)?)
            }
        }
    }
}

/// The EIP-155 id of the chain.
fn chain_id(index: &App<Indexer>) -> String {
    EthChain::new(index.state().chain_id(), index.state().prefix()).id.to_string()
}

fn one_chain<'a>(api: &'a Etherscan, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(api.reply(call, false))
}

fn by_chain_id<'a>(api: &'a Etherscan, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(api.reply(call, true))
}

fn json_rpc<'a>(api: &'a Etherscan, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(api.rpc.reply(call.body(), call.share()))
}

fn chains(api: &Etherscan, _: &Call<'_>) -> Result<Reply, HttpError> {
    let index = api.rpc.index()?;
    let chain_id = chain_id(index);
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
