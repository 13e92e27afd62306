//! Etherscan's API over a recorded chain: any form gets an envelope, and no internal error.

use std::sync::{Arc, LazyLock, OnceLock};

use ::etherscan::Etherscan;
use evm_rpc::{Dialect, EvmRpc};
use http::{Request, StatusCode};
use replay::Recording;
use serde_json::Value;
use tokio::runtime::Runtime;
use web::app::App;

use crate::input::Input;

struct Served {
    runtime: Runtime,
    app: App<Etherscan>,
}

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
    let store = runtime.block_on(testkit::indexed::index_for_json_rpc(recording, true)).unwrap();
    let index = App::new(testkit::indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let index = Arc::new(OnceLock::from(Arc::new(index)));
    let rpc = EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0.0.0");
    Served { runtime, app: Etherscan::new(rpc).app().unwrap() }
});

/// Parameters and values.
pub const WORDS: &[&str] = &[
    "&page=2",
    "&offset=1",
    "&sort=desc",
    "&startblock=",
    "&endblock=99999999",
    "&fromBlock=0x1",
    "&toBlock=latest",
    "&topic0_1_opr=or",
    "&topic0=0x",
    "&txhash=0x",
    "&contractaddress=0x",
    "18446744073709551615",
    "%00",
    "%ff",
];

const TOKEN: &str = "0x4605ac7f98658de8dda464aa92f4e75023b1ab9e";

/// A request of each kind.
static REQUESTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let of_account =
        ["txlist", "txlistinternal", "tokentx", "tokennfttx", "token1155tx", "getminedblocks", "balance"];
    let mut requests: Vec<_> =
        of_account.iter().map(|action| format!("module=account&action={action}&address={TOKEN}")).collect();
    requests.extend([
        "module=account&action=txlistinternal".to_owned(),
        format!("module=account&action=tokentx&contractaddress={TOKEN}&page=1&offset=2"),
        "module=block&action=getblocknobytime&timestamp=1795244846&closest=after".to_owned(),
        format!("module=contract&action=getabi&address={TOKEN}"),
        format!("module=contract&action=getsourcecode&address={TOKEN}"),
        format!("module=contract&action=getcontractcreation&contractaddresses={TOKEN}"),
        format!("module=logs&action=getLogs&address={TOKEN}&fromBlock=1&toBlock=50"),
        "module=proxy&action=eth_getBlockByNumber&tag=0x14&boolean=true".to_owned(),
        format!("module=transaction&action=getstatus&txhash=0x{:064}", 1),
        format!("module=transaction&action=gettxreceiptstatus&txhash=0x{:064}", 1),
    ]);
    requests
});

/// Input: the number of a request, and what follows it.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let request = &REQUESTS[usize::from(input.byte()) % REQUESTS.len()];
    let body = [request.as_bytes(), input.rest()].concat();
    let head = Request::builder().method("POST").uri("/api");
    let head = head.header("content-type", "application/x-www-form-urlencoded").body(()).unwrap();
    let Served { runtime, app } = &*SERVED;
    let response = runtime.block_on(app.respond_later(&head.into_parts().0, &body));
    assert_eq!(response.status(), StatusCode::OK);
    let reply: Value = serde_json::from_slice(response.body()).unwrap();
    if reply["jsonrpc"] == "2.0" {
        return reply.get("result").is_some();
    }
    assert!(reply["message"].is_string() && reply.get("result").is_some(), "{reply}");
    assert!(["0", "1", "2"].iter().any(|status| reply["status"] == *status), "{reply}");
    reply["status"] == "1"
}

/// Each request.
pub fn seeds() -> Vec<Vec<u8>> {
    (0..REQUESTS.len()).filter_map(|number| Some(vec![u8::try_from(number).ok()?])).collect()
}
