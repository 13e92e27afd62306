// A client generated from the OpenAPI documents, run against `cairn demo`: node built/client.js INDEXER_URL ROUTE_URL
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths as IndexerPaths } from "./generated/indexer.js";
import type { paths as RoutePaths } from "./generated/route.js";

const [indexerUrl, routeUrl] = process.argv.slice(2);
assert(indexerUrl && routeUrl, "usage: node built/client.js INDEXER_URL ROUTE_URL");
const indexer = createClient<IndexerPaths>({ baseUrl: indexerUrl });
const route = createClient<RoutePaths>({ baseUrl: routeUrl });

type Tx = components["schemas"]["tx.Tx"];

/** Walks all transactions by their cursors. */
async function allTxs(): Promise<Tx[]> {
  const all: Tx[] = [];
  for (let key: string | undefined; ; ) {
    const query = { "pagination.limit": 100, ...(key === undefined ? {} : { "pagination.key": key }) };
    const { data, error } = await indexer.GET("/indexer/tx/v1/txs", { params: { query } });
    assert(data, JSON.stringify(error));
    all.push(...data.txs);
    key = data.pagination.next_key ?? undefined;
    if (key === undefined) {
      assert.equal(data.pagination.total, String(all.length));
      return all;
    }
  }
}

const status = await indexer.GET("/status");
assert(status.data && status.data.height > 0);
const txs = await allTxs();
const newest = txs[0];
assert(newest);
const one = await indexer.GET("/indexer/tx/v1/txs/{tx_hash}", { params: { path: { tx_hash: newest.txhash } } });
assert.deepEqual(one.data?.tx, newest);
const missing = await indexer.GET("/indexer/tx/v1/txs/{tx_hash}", { params: { path: { tx_hash: "0".repeat(64) } } });
assert.equal(missing.response.status, 404);
assert.equal(missing.error?.code, 5);

const chains = await route.GET("/v2/info/chains", { params: { query: { include_evm: false } } });
assert(chains.data?.chains.every((chain) => chain.chain_type === "cosmos"));
const assets = await route.GET("/v2/fungible/assets", { params: { query: { chain_ids: ["e2e-l1-1"] } } });
const denom = assets.data?.chain_to_assets_map["e2e-l1-1"]?.assets.find((asset) => asset.denom === "uinit")?.denom;
assert(denom);
const body = {
  amount_in: "1000000",
  source_asset_chain_id: "e2e-l1-1",
  source_asset_denom: denom,
  dest_asset_chain_id: "e2e-l2-1",
  dest_asset_denom: "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50",
};
const quote = await route.POST("/v2/fungible/route", { body });
assert(quote.data, JSON.stringify(quote.error));
assert.equal(quote.data.amount_in, body.amount_in);
console.log(`generated client: ${txs.length} transactions, ${quote.data.operations.length} operations`);
