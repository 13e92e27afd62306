// The page, the registry as its site serves it, and the nodes' REST for pages, which the replayed ones are not open to.
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "esbuild";
import { ASSETS, L1, L2, listed } from "./chains.mjs";

const HTML = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>`;

/** Replies about what the recorded layer one was not asked, all for an account that has nothing of it: staking, and Move
 *  modules of Initia's networks, which the recorded one does not have. */
const OF_NOTHING = [
  [/^\/initia\/mstaking\/v1\/delegations\//, { delegation_responses: [] }],
  [/^\/initia\/mstaking\/v1\/delegators\/[^/]+\/unbonding_delegations$/, { unbonding_responses: [] }],
  [/^\/initia\/distribution\/v1\/delegators\/[^/]+\/rewards$/, { rewards: [], total: [] }],
  [/^\/initia\/move\/v1\/accounts\/0x1\/modules\/usernames\/view_functions\//, { data: "null" }],
  [/^\/initia\/move\/v1\/accounts\/0x1\/modules\/\w+\/view_functions\//, { data: "[]" }],
];
/** The same of Initia's other services: positions of its exchange and its incentives. */
const OTHER_SERVICES = [
  [/^\/dex\/indexer\/clamm\/v1\/positions\//, { positions: [], pagination: { next_key: null } }],
  [/^\/dex\/indexer\/dex\/v1\/check_lp_tokens$/, { data: {} }],
  [/^\/vip\/vesting\/positions\//, []],
];

const found = (replies, path) => replies.find(([pattern]) => pattern.test(path))?.[1];

/** The server's origin, and how to close it. */
export async function serve(chains) {
  const { outputFiles: [{ contents: script }] } = await build({
    entryPoints: [join(import.meta.dirname, "page.jsx")],
    bundle: true,
    format: "esm",
    jsx: "automatic",
    logLevel: "error",
    target: "es2022",
    write: false,
  });

  async function ofNode(node, path) {
    // The recorded node was asked for balances with a limit.
    const asked = /^\/cosmos\/bank\/v1beta1\/balances\/\w+$/.test(path) ? `${path}?pagination.limit=1000` : path;
    const reply = await fetch(node.rest + asked);
    const body = await reply.text();
    const instead = reply.status === 501 && found(OF_NOTHING, path);
    return instead ? { body: JSON.stringify(instead) } : { status: reply.status, body };
  }

  async function respond({ url }) {
    if (url.startsWith("/?")) return { type: "text/html", body: HTML };
    if (url === "/page.js") return { type: "text/javascript", body: script };
    if (url === "/settings.json") return { body: JSON.stringify(settings) };
    if (url === "/registry/chains.json") return { body: JSON.stringify(registry) };
    if (url === "/registry/profiles.json") return { body: "[]" };
    const [, kind, name] = url.split("/");
    const assets = kind === "assets" && ASSETS[name];
    if (assets) return { body: JSON.stringify({ assets }) };
    const node = kind === "node" && chains.nodes[name];
    if (node) return ofNode(node, url.slice(`/node/${name}`.length));
    const other = found(OTHER_SERVICES, url);
    return other ? { body: JSON.stringify(other) } : { status: 404, body: "{}" };
  }

  const server = createServer(async (request, response) => {
    const { status = 200, type = "application/json", body } = await respond(request);
    response.writeHead(status, { "content-type": type }).end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  const registry = listed(
    ({ chain_id }) => ({
      rpc: `${origin}/rpc/${chain_id}`,
      rest: `${origin}/node/${chain_id}`,
      // The widget wants one of each chain; nothing of this test needs that of the layer one.
      indexer: chain_id === L2.chain_id ? chains.index : `${origin}/none`,
      "json-rpc": chain_id === L2.chain_id && chains.evm,
    }),
    ({ chain_id, chain_name }) => ({
      assetlist: `${origin}/assets/${chain_name}`,
      ...(chain_id === L2.chain_id && { executor_uri: `${chains.index}/indexer/bridge/v1` }),
    }),
  );
  const settings = {
    chain: {
      id: L2.evm_chain_id,
      name: L2.pretty_name,
      nativeCurrency: { name: "Gas", symbol: "GAS", decimals: 18 },
      rpcUrls: { default: { http: [chains.evm] } },
    },
    transfer: { srcChainId: L2.chain_id, srcDenom: "GAS", dstChainId: L1.chain_id, dstDenom: "uinit" },
    kit: {
      defaultChainId: L2.chain_id,
      registryUrl: `${origin}/registry`,
      ...Object.fromEntries(["routerApiUrl", "glyphUrl", "minityUrl"].map((name) => [name, chains.route])),
      dexUrl: `${origin}/dex`,
      vipUrl: `${origin}/vip`,
      ...Object.fromEntries(["usernames", "lockStake", "clammVault"].map((name) => [`${name}ModuleAddress`, "0x1"])),
      disableAnalytics: true,
    },
  };
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin, close };
}
