//! Endpoint `/op-hook`: the messages that a user signs so that the rollup wraps a deposited coin on arrival.

use futures_util::future::BoxFuture;
use messages::OpHookRequest;
use serde::{Deserialize, Serialize};
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::json;
use super::pair::Pair;
use super::wire::WireMsg;
use crate::body::Body;
use crate::refresh;
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Post,
    path: "/op-hook",
    tag: "Fungible",
    summary: "What the user signs for a route with required_op_hook.",
    params: &[Param::Body(&REQUEST)],
    response: &RESPONSE,
    handler: Handler::Later(op_hook),
    cache: Freshness::LIST,
}];

const MEMBERS: &[&str] = &[
    "source_address",
    "source_asset_chain_id",
    "source_asset_denom",
    "dest_address",
    "dest_asset_chain_id",
    "dest_asset_denom",
];

static REQUEST: Schema = Schema {
    name: "fungible.OpHookRequest",
    doc: "A route with required_op_hook, by its ends.",
    fields: &[
        Field::new(
            "source_address",
            Kind::String,
            "The user's account; also that of the deposit on the rollup.",
        ),
        Field::new("source_asset_chain_id", Kind::String, "From where."),
        Field::new("source_asset_denom", Kind::String, "What is sent."),
        Field::new("dest_address", Kind::String, "Who gets the converted token."),
        Field::new("dest_asset_chain_id", Kind::String, "The rollup."),
        Field::new("dest_asset_denom", Kind::String, "The converted token."),
    ],
};

static RESPONSE: Schema = Schema {
    name: "fungible.OpHookResponse",
    doc: "Messages of the transaction to sign on the rollup.",
    fields: &[
        Field::new("chain_id", Kind::String, "The rollup."),
        Field::new("hook", Kind::Array(&Kind::Free), "`msg_type_url` and `msg`, amino JSON in a string."),
    ],
};

fn op_hook<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, Refusal>> {
    #[derive(Serialize)]
    struct Answer<'a> {
        chain_id: &'a str,
        hook: Vec<WireMsg>,
    }
    Box::pin(async {
        let body = Body::read(call, MEMBERS)?;
        let mut world = service.world();
        let Pair { source, dest } = Pair::read(&body, &world.registry)?;
        let source_address = body.required("source_address")?;
        world.facts = service.with_contract(&world, dest.asset).await;
        let ask = OpHookRequest {
            registry: &world.registry,
            facts: &world.facts,
            source: source.asset,
            source_address,
            dest: dest.asset,
            dest_address: body.required("dest_address")?,
        };
        let made = messages::op_hook(&ask).map_err(|refused| Refusal::bad_request(refused.to_string()))?;
        let chain = &world.registry[made.chain];
        account_exists(service, chain, source_address).await?;
        json(&Answer { chain_id: &chain.id, hook: made.hook.into_iter().map(WireMsg::from).collect() })
    })
}

/// A hook is signed with the number and sequence of an account that is there. Only a plain no of the rollup counts.
async fn account_exists(service: &Service, chain: &registry::Chain, address: &str) -> Result<(), Refusal> {
    #[derive(Deserialize)]
    struct Any {}
    let Some(account) = chain::Account::parse(address, &chain.bech32_prefix) else { return Ok(()) };
    let address = account.to_bech32(&chain.bech32_prefix);
    let answer: Result<Option<Any>, String> =
        refresh::get(&service.nodes, chain, &format!("/cosmos/auth/v1beta1/accounts/{address}")).await;
    match answer {
        Ok(None) => Err(Refusal::bad_request(format!(
            "account {address} does not exist on {}; make any deposit without conversion first",
            chain.id
        ))),
        Ok(Some(_)) | Err(_) => Ok(()),
    }
}
