// The examples of the OpenAPI documents: requests of the recorded chains, and what `cairn demo` answers.
// node examples.mjs INDEXER_URL ROUTE_URL compares the answers with those in the repository; --update writes them.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

const [indexerUrl, routeUrl, update] = process.argv.slice(2);

const account = "init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw";
const collection = "0xf17b946aa67aad4c9b7c69031f03e54a01d01724";
const hash = "0x9688368fb1af1de21e70d14ac0179dd72e7d8931d73b39a70ab0c86908157638";
const calls = "0xcebddc99e1deb1e0cf295acd3954de59d6e772d169b63f2e78613f984380fb0a";
const page = { "pagination.limit": 1 };
const indexer = [
  ["/status", {}],
  ["/indexer/block/v1/blocks", { "pagination.limit": 3 }],
  ["/indexer/block/v1/blocks/{height}", { height: 3 }],
  ["/indexer/block/v1/avg_blocktime", {}],
  ["/indexer/tx/v1/txs", page],
  ["/indexer/tx/v1/txs/count", {}],
  ["/indexer/tx/v1/txs/by_account/{account}", { account, ...page }],
  ["/indexer/tx/v1/txs/by_height/{height}", { height: 5 }],
  ["/indexer/tx/v1/txs/{tx_hash}", { tx_hash: "6854C9CF287311D13C9AF72E69E17BAEDB45949DE415766AB3DE8CC8A52B1193" }],
  ["/indexer/tx/v1/evm-txs", page],
  ["/indexer/tx/v1/evm-txs/by_account/{account}", { account, ...page }],
  ["/indexer/tx/v1/evm-txs/by_height/{height}", { height: 4 }],
  ["/indexer/tx/v1/evm-txs/{tx_hash}", { tx_hash: hash }],
  ["/indexer/tx/v1/evm-internal-txs", { "pagination.offset": 2, "pagination.limit": 2 }],
  ["/indexer/tx/v1/evm-internal-txs/by_account/{account}", { account, "pagination.limit": 3 }],
  ["/indexer/tx/v1/evm-internal-txs/by_height/{height}", { height: 5 }],
  ["/indexer/tx/v1/evm-internal-txs/{tx_hash}", { tx_hash: calls }],
  ["/indexer/nft/v1/collections", {}],
  ["/indexer/nft/v1/collections/by_account/{account}", { account }],
  ["/indexer/nft/v1/collections/by_name/{name}", { name: "Zeb" }],
  ["/indexer/nft/v1/collections/{collection_addr}", { collection_addr: collection }],
  ["/indexer/nft/v1/tokens/by_account/{account}", { account }],
  ["/indexer/nft/v1/tokens/by_collection/{collection_addr}", { collection_addr: collection }],
  ["/indexer/nft/v1/txs/{collection_addr}/{token_id}", { collection_addr: collection, token_id: "2" }],
  ["/indexer/richlist/v1/{denom}", { denom: "GAS", ...page }],
  ["/indexer/ledger/v1/transfers", page],
  ["/indexer/ledger/v1/transfers/by_account/{account}", { account, ...page }],
  ["/indexer/ledger/v1/transfers/by_token/{token}", { token: "GAS", ...page }],
  ["/indexer/ledger/v1/transfers/by_height/{height}", { height: 5, ...page }],
  ["/indexer/ledger/v1/balances/by_account/{account}", { account, height: 100 }],
  ["/indexer/ledger/v1/balances/history/{account}/{token}", { account, token: "GAS", ...page }],
  ["/indexer/ledger/v1/holders/{token}", { token: "GAS", height: 100, ...page }],
  ["/indexer/ledger/v1/tokens", { search: "gas" }],
  ["/indexer/ledger/v1/tokens/{token}", { token: "GAS" }],
  ["/indexer/ledger/v1/transfers/by_tx/{tx_hash}", { tx_hash: "6854C9CF287311D13C9AF72E69E17BAEDB45949DE415766AB3DE8CC8A52B1193" }],
];

const pair = {
  source_asset_chain_id: "e2e-l1-1",
  source_asset_denom: "uinit",
  dest_asset_chain_id: "e2e-l2-1",
  dest_asset_denom: "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50",
};
const ask = { amount_in: "1000000", ...pair };
const wrapped = "evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2";
const asset = { denom: "uinit", chain_id: "e2e-l1-1" };
const sender = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
const receiver = "init1sleg2k5c54fytsae3jdk9mrn27yw4qc4mgxkfg";
const transfer = { tx_hash: "80AB577C8435BC2C746415571CD99C7E593E6BBC67749B4C40B4AA5186CDEB4A", chain_id: "e2e-l1-1" };

const nft = {
  from_address: sender,
  from_chain_id: "e2e-l1-1",
  to_address: receiver,
  to_chain_id: "e2e-l2-1",
  collection_address: "0xa955cbcbaf04e15fcd20511785fbf5a61ebf62463494f1e08a1f97df89de3a8c",
  class_id: "move/a955cbcbaf04e15fcd20511785fbf5a61ebf62463494f1e08a1f97df89de3a8c",
  token_ids: ["cat1"],
};

const answers = new Map();
async function record(base, [path, parameters, body]) {
  const method = body === undefined ? "GET" : "POST";
  const query = new URLSearchParams();
  let target = path;
  for (const [name, value] of Object.entries(parameters)) {
    if (path.includes(`{${name}}`)) target = target.replace(`{${name}}`, encodeURIComponent(value));
    else query.append(name, value);
  }
  const response = await fetch(`${base}${target}${query.size ? `?${query}` : ""}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, `${method} ${target}: ${text}`);
  const answer = JSON.parse(text);
  answers.set(path, answer);
  // Of the build, of the clock, or of the ports that the demo's nodes listen on.
  const varies = path === "/status" || path === "/v2/tx/status" || path.includes("/msgs") || path.endsWith("/info/chains") || path === "/nft" || path === "/health";
  return { operation: `${method} ${path}`, parameters, ...(body === undefined ? {} : { body }), response: answer, varies };
}

async function recordAll(base, requests) {
  const all = [];
  for (const request of requests) all.push(await record(base, typeof request === "function" ? await request() : request));
  return all;
}

const route = [
  ["/v2/info/chains", { chain_ids: "e2e-l2-1" }],
  ["/v2/info/bridges", {}],
  ["/v2/info/registry", {}],
  ["/v2/fungible/venues", {}],
  ["/v2/fungible/assets", { chain_ids: "e2e-l2-1" }],
  ["/v2/info/balances", {}, { chains: { "e2e-l1-1": { address: sender, denoms: ["uinit"] } } }],
  ["/v2/fungible/route", {}, ask],
  () => {
    const { operations, amount_out, required_chain_addresses } = answers.get("/v2/fungible/route");
    assert.equal(required_chain_addresses.length, 2);
    return ["/v2/fungible/msgs", {}, { ...ask, amount_out, operations, address_list: [sender, receiver] }];
  },
  ["/v2/fungible/msgs_direct", {}, { ...ask, chain_ids_to_addresses: { "e2e-l1-1": sender, "e2e-l2-1": receiver } }],
  ["/v2/fungible/assets_from_source", {}, { source_asset_denom: asset.denom, source_asset_chain_id: asset.chain_id }],
  ["/v2/fungible/assets_between_chains", { source_chain_id: "e2e-l1-1", dest_chain_id: "e2e-l2-1" }],
  ["/v2/fungible/assets_between_chains", {}, { source_chain_id: "e2e-l1-1", dest_chain_id: "e2e-l2-1" }],
  ["/v2/fungible/ibc_origin_assets", {}, { assets: [asset] }],
  ["/v2/fungible/recommend_assets", {}, { requests: [{ source_asset_denom: asset.denom, source_asset_chain_id: asset.chain_id, dest_chain_id: "e2e-l2-1" }] }],
  ["/op-hook", {}, { ...pair, dest_asset_denom: wrapped, source_address: sender, dest_address: sender }],
  ["/v2/tx/track", {}, transfer],
  ["/v2/tx/status", transfer],
  async () => ["/v2/tx/submit", {}, { chain_id: transfer.chain_id, tx: await signed(transfer) }],
  ["/nft", {}, nft],
  ["/health", {}],
];

// The signed bytes of a transaction of a recorded chain, from its node.
async function signed({ tx_hash, chain_id }) {
  const { chains } = await (await fetch(`${routeUrl}/v2/info/chains?chain_ids=${chain_id}`)).json();
  return (await (await fetch(`${chains[0].rpc}/tx?hash=0x${tx_hash}`)).json()).result.tx;
}

// Names and supplies of tokens are asked of the node, some seconds after the last block.
const described = async () => {
  const { token } = await (await fetch(`${indexerUrl}/indexer/ledger/v1/tokens/GAS`)).json();
  return token?.name_state === "known" && token.supply !== null;
};
while (!(await described())) await new Promise((next) => setTimeout(next, 50));

for (const [base, requests, file] of [
  [indexerUrl, indexer, "../../query/src/examples.json"],
  [routeUrl, route, "../../routing/api/src/examples.json"],
]) {
  const recorded = await recordAll(base, requests);
  const place = new URL(file, import.meta.url);
  const varying = new Set(recorded.filter(({ varies }) => varies).map(({ operation }) => operation));
  for (const example of recorded) delete example.varies;
  if (update === "--update") {
    writeFileSync(place, JSON.stringify(recorded, null, 1) + "\n");
    continue;
  }
  const kept = JSON.parse(readFileSync(place, "utf8"));
  const fixed = (examples) => examples.map((example) => (varying.has(example.operation) ? { ...example, response: 0 } : example));
  assert.deepEqual(fixed(recorded), fixed(kept), `${file} is stale: run this with --update`);
}
console.log(`examples: ${indexer.length} of the indexer and ${route.length} of the routing service are what the demo answers`);
