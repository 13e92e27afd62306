// executeRoute of the published @skip-go/client, from a Cosmos chain to the end of the transfer. The wallet is a
// recording: it returns a transaction that the user of the recorded chains signed, which the service relays to the
// recorded node and follows.
// node execute.mjs ROUTE_URL, of a service that relays (`cairn demo --submit`).
import assert from "node:assert/strict";
import { setClientOptions, assetsBetweenChains, executeRoute, route } from "@skip-go/client";
import { AuthInfo, TxRaw } from "cosmjs-types/cosmos/tx/v1beta1/tx.js";
import { withAccounts } from "./accounts.mjs";

const [routeUrl] = process.argv.slice(2);
const hash = "7C27A135DF17CB9A54ED67E84174690BEBFD034E579D20F1960C9FC430791DF9";
const [source, dest] = ["e2e-l1-1", "e2e-l2-1"];
const [sender, receiver] = ["init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd", "init1sleg2k5c54fytsae3jdk9mrn27yw4qc4mgxkfg"];
const pair = {
  sourceAssetChainId: source,
  sourceAssetDenom: "uinit",
  destAssetChainId: dest,
  destAssetDenom: "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50",
};

const json = async (url) => (await fetch(url)).json();
const { chains } = await json(`${routeUrl}/v2/info/chains?chain_ids=${source}`);
const { rpc, rest } = chains[0];
const raw = TxRaw.decode(Buffer.from((await json(`${rpc}/tx?hash=0x${hash}`)).result.tx, "base64"));
const [signerInfo] = AuthInfo.decode(raw.authInfoBytes).signerInfos;

const node = await withAccounts(rpc, signerInfo.sequence);
const endpointOptions = {
  getRpcEndpointForChain: async () => node,
  getRestEndpointForChain: async () => rest,
};
setClientOptions({ apiUrl: routeUrl, endpointOptions });

const pairs = await assetsBetweenChains({ sourceChainId: source, destChainId: dest });
assert.ok(pairs.assetsBetweenChains.some(({ assetOnDest }) => assetOnDest.denom === pair.destAssetDenom));
const exactOut = await route({ amountOut: "777", ...pair });
assert.deepEqual([exactOut.amountIn, exactOut.amountOut], ["777", "777"]);

const wallet = {
  getAccounts: async () => [{ address: sender, algo: "secp256k1", pubkey: signerInfo.publicKey.value.slice(2) }],
  signDirect: async () => ({
    signed: { bodyBytes: raw.bodyBytes, authInfoBytes: raw.authInfoBytes, chainId: source, accountNumber: 0n },
    signature: { signature: Buffer.from(raw.signatures[0]).toString("base64"), pub_key: {} },
  }),
};
const seen = [];
let completed;
await executeRoute({
  route: await route({ amountIn: "1000000", ...pair }),
  simulate: false,
  userAddresses: [{ chainId: source, address: sender }, { chainId: dest, address: receiver }],
  getCosmosSigner: async () => wallet,
  getFallbackGasAmount: async () => 300000,
  onTransactionBroadcast: async ({ txHash }) => seen.push(txHash),
  onTransactionTracked: async ({ txHash }) => seen.push(txHash),
  onTransactionCompleted: async ({ status }) => (completed = status.state),
});
assert.deepEqual(seen, [hash, hash]);
assert.equal(completed, "STATE_COMPLETED_SUCCESS");
console.log("executeRoute: broadcast by /v2/tx/submit, tracked and completed");
// The client keeps connections open.
process.exit(0);
