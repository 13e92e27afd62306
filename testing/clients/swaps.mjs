// Swaps by the published @skip-go/client: route, messages and executeRoute to the end of a recorded transfer, for each way to
// swap. What the client asks the wallet to sign is decoded by @initia/initia.js, a second implementation of BCS, and encoded
// again from the route alone: the bytes must be the same.
// node swaps.mjs ROUTE_URL, of a service that relays over the recording l1-l2-swaps (`cairn demo --submit`).
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { Secp256k1, Secp256k1Signature, sha256 } from "@cosmjs/crypto";
import { DirectSecp256k1Wallet, makeSignBytes } from "@cosmjs/proto-signing";
import { bcs, MsgCall, MsgExecute, MsgTransfer } from "@initia/initia.js";
import { MsgCall as MsgCallType } from "@initia/initia.proto/minievm/evm/v1/tx.js";
import { executeRoute, messages, route, setClientOptions } from "@skip-go/client";
import { bech32 } from "bech32";
import { TxBody, TxRaw } from "cosmjs-types/cosmos/tx/v1beta1/tx.js";
import { decodeFunctionData, parseAbi } from "viem";
import { withAccounts } from "./accounts.mjs";

const [routeUrl] = process.argv.slice(2);
const [l1, l2] = ["swap-l1-1", "swap-l2-1"];
const slippage = "1";
const bridged = "l2/771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd";
const returned = "ibc/82EB1C694C571F954E68BFD68CFCFCD6123B0EBB69AAA8BAB7A082939B45E802";
const sentOn = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";
const wrapped = "evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2";

// A way to swap: its ends, the kinds of pools, the call that swaps, the messages, and a recorded transaction of the same way
// with what it gave.
const ways = [
  {
    name: "a weighted pool",
    ask: { amountIn: "5000000" },
    ends: [l1, "uusdc", l1, "uinit"],
    venues: [0],
    call: "dex::swap_script",
    recorded: "966CDA69CA85CFB03CCA81E798DB797DF013AB3CC42B0551CDEA0480ACB7A87F",
    released: ["uinit", "56385721"],
  },
  {
    name: "two pools in a row",
    ask: { amountIn: "1000000" },
    ends: [l1, "uinit", l1, "uusdt"],
    venues: [0, 1],
    call: "entry_point::swap_and_action_with_recover",
    recorded: "1B58019B79B77EDDF38301B054C97A3EA4D6BEABC208A6F50E73B2B76576A0EC",
    released: ["uinit", "308204671"],
  },
  {
    name: "a StableSwap pool",
    ask: { amountIn: "1000000" },
    ends: [l1, "uusdc", l1, "uusdt"],
    venues: [1],
    call: "stableswap::swap_script",
    recorded: "110641FF11B05EB4C30159AA5BC6BCE5CAF088872FE6428FDB5B5FBDEB238820",
    released: ["uusdt", "992191"],
  },
  {
    name: "a swap, then IBC",
    ask: { amountIn: "5000000" },
    ends: [l1, "uusdc", l2, sentOn],
    venues: [0],
    call: "entry_point::swap_and_action_with_recover",
    recorded: "97F288DCDAF61B092A214C70F59BFBFC594E87D2C55AD3B91A62084EEF44B255",
    released: [sentOn, "61624432"],
  },
  {
    name: "a fast withdrawal",
    ask: { amountIn: "55000000" },
    ends: [l2, bridged, l1, "uinit"],
    venues: [2],
    call: "entry_point::swap_and_action_with_recover",
    recorded: "CB9961FB16E834658D558EB71D871EE918ACF9745020175D7650F8B6AACD7616",
    released: ["uinit", "52232723"],
  },
  {
    name: "a fast withdrawal out of the wrapper",
    ask: { amountIn: "44000000000000000000" },
    ends: [l2, wrapped, l1, "uinit"],
    venues: [2],
    call: "entry_point::swap_and_action_with_recover",
    recorded: "5502066EDCCF644E5184DEFB5B2321909F5D800EDF427CE1CBA77B62F6E5DA99",
    released: ["uinit", "41655228"],
  },
  {
    name: "an amount out",
    ask: { amountOut: "1000000000" },
    ends: [l1, "uusdc", l1, "uinit"],
    venues: [0],
    call: "entry_point::swap_and_action",
    recorded: "D6A076C2F0740E33CC3C9427C8AF9B189CD102E929EADBA2FD9E7335D877FFD8",
    released: ["uinit", "999999994"],
  },
];

const json = async (url) => (await fetch(url)).json();
const { chains } = await json(`${routeUrl}/v2/info/chains`);
const at = Object.fromEntries(chains.map(({ chain_id, rpc, rest }) => [chain_id, { rpc, rest }]));
const nodes = { [l1]: await withAccounts(at[l1].rpc, 7n), [l2]: await withAccounts(at[l2].rpc, 7n) };
setClientOptions({
  apiUrl: routeUrl,
  // The client leaves the messages of a rollup's VM to its user.
  registryTypes: [["/minievm.evm.v1.MsgCall", MsgCallType]],
  endpointOptions: {
    getRpcEndpointForChain: async (chain) => nodes[chain],
    getRestEndpointForChain: async (chain) => at[chain].rest,
  },
});

// A recorded account, which has the tokens, and a key of this test in place of its own.
const user = "init14sq0e5dw2x6k26303u75yt58v5p4t2evl0kyda";
const key = createHash("sha256").update("the test key of cairn's clients").digest();
const wallet = await DirectSecp256k1Wallet.fromKey(key, "init");
const [{ address: signer, algo, pubkey }] = await wallet.getAccounts();

const list = (inner) => bcs.vector(inner);
const signatures = {
  "dex::swap_script": [bcs.object(), bcs.object(), bcs.u64(), bcs.option(bcs.u64())],
  "stableswap::swap_script": [bcs.object(), bcs.object(), bcs.object(), bcs.u64(), bcs.option(bcs.u64())],
};
const adapted = [
  list(bcs.u8()), bcs.u8(), bcs.u64(), bcs.u64(), list(list(bcs.string())), list(list(bcs.string())), bcs.u8(), bcs.u64(),
  bcs.string(), list(list(bcs.u8())),
];
const signatureOf = (name) => signatures[name] ?? adapted;
const base64 = (types, values) => types.map((type, place) => type.serialize(values[place]).toBase64());

/** The object of a coin: that of an LP token is in its denomination. */
function metadata(denom) {
  if (denom.startsWith("move/")) return `0x${denom.slice(5).padStart(64, "0")}`;
  const owner = Buffer.alloc(32);
  owner[31] = 1;
  return `0x${createHash("sha3-256").update(Buffer.concat([owner, Buffer.from(denom), Buffer.from([0xfe])])).digest("hex")}`;
}

const percentOf = (amount, percent) => (BigInt(amount) * BigInt(percent) + 99n) / 100n;

/** The arguments that a route's swap must have, from the route alone; `timeout` is the service's clock. */
function expected(way, planned, timeout) {
  const { swap } = planned.operations.find(({ swap }) => swap);
  const { swapOperations: legs } = swap.swapIn ?? swap.swapOut;
  const last = planned.operations.at(-1);
  const amountIn = swap.swapIn?.swapAmountIn ?? planned.amountIn;
  const least = percentOf(swap.swapIn?.estimatedAmountOut ?? planned.amountOut, 99);
  const ends = [metadata(swap.denomIn), metadata(swap.denomOut)];
  if (way.call === "dex::swap_script") return [metadata(legs[0].pool), ends[0], amountIn, least];
  if (way.call === "stableswap::swap_script") return [metadata(legs[0].pool), ...ends, amountIn, least];
  const action = last.transfer
    ? [1, [bcs.string().serialize(last.transfer.channel), bcs.string().serialize(user), bcs.string().serialize("")]]
    : [0, [bcs.string().serialize(user)]];
  // The most that is offered for an amount out is rounded down.
  const amounts = swap.swapOut ? [(BigInt(amountIn) * 101n) / 100n, planned.amountOut] : [amountIn, least];
  return [
    way.venues, swap.swapOut ? 1 : 0, ...amounts, legs.map(({ pool }) => [pool]),
    legs.map(({ denomIn, denomOut }) => [denomIn, denomOut]), action[0], timeout, user, action[1].map((arg) => [...arg.toBytes()]),
  ];
}

/** The Move call of a signed message, or of the memo of its packet. */
function moveCall({ typeUrl, value }) {
  const proto = { typeUrl, value };
  if (typeUrl === "/initia.move.v1.MsgExecute") {
    const msg = MsgExecute.unpackAny(proto);
    assert.equal(msg.sender, user);
    return { module: msg.module_address, call: `${msg.module_name}::${msg.function_name}`, args: msg.args };
  }
  const packet = typeUrl === "/minievm.evm.v1.MsgCall" ? wrappedPacket(MsgCall.unpackAny(proto)) : plainPacket(MsgTransfer.unpackAny(proto));
  const { message } = JSON.parse(packet.memo).move;
  const call = `${message.module_name}::${message.function_name}`;
  const hash = createHash("sha256").update(`${message.module_address}::${call}`).digest();
  assert.equal(packet.receiver, bech32.encode("init", bech32.toWords(hash)), "the receiver is not that of the hook");
  return { module: message.module_address, call, args: message.args, amount: packet.amount };
}

function plainPacket(msg) {
  assert.equal(msg.sender, user);
  return { receiver: msg.receiver, memo: msg.memo, amount: BigInt(msg.token.amount) };
}

const wrapper = parseAbi(["function toRemoteAndIBCTransfer(string, uint256, string, string, uint256, string)"]);
function wrappedPacket(msg) {
  assert.equal(msg.sender, user);
  const { args } = decodeFunctionData({ abi: wrapper, data: msg.input });
  // 18 decimals there, 6 in the packet.
  return { receiver: args[3], memo: args[5], amount: args[1] / 10n ** 12n };
}

/** Compares the call that is to be signed with the route. */
function check(way, planned, msg) {
  const { module, call, args, amount } = moveCall(msg);
  assert.equal(call, way.call);
  const types = signatureOf(call);
  const decoded = types.map((type, place) => type.parse(Buffer.from(args[place], "base64")));
  assert.equal(args.length, types.length);
  const timeout = types === adapted ? decoded[7] : undefined;
  assert.deepEqual(args, base64(types, expected(way, planned, timeout)), `${way.name}: ${JSON.stringify(decoded)}`);
  if (timeout !== undefined) {
    const left = Number(BigInt(timeout) / 1_000_000n) - Date.now();
    assert.ok(left > 4 * 60_000 && left <= 5 * 60_000, `a timeout in ${left} ms`);
    assert.notEqual(module, "0x1");
  }
  if (amount !== undefined) assert.equal(BigInt(decoded[2]), amount, "not all of the packet is swapped");
}

/** The client's part of a way, with a wallet that signs what it is asked to, and then hands out the recorded transaction. */
async function run(way) {
  const [sourceAssetChainId, sourceAssetDenom, destAssetChainId, destAssetDenom] = way.ends;
  const pair = { sourceAssetChainId, sourceAssetDenom, destAssetChainId, destAssetDenom };
  const planned = await route({ ...way.ask, ...pair, smartSwapOptions: { splitRoutes: false } });
  assert.equal(planned.doesSwap, true);
  assert.equal(planned.txsRequired, 1);
  assert.equal(planned.swapVenues.length, 1);
  assert.match(planned.swapPriceImpactPercent, /^-?\d+\.\d\d$/);
  const addressList = planned.requiredChainAddresses.map(() => user);
  const asked = { ...pair, amountIn: planned.amountIn, amountOut: planned.amountOut, operations: planned.operations };
  const made = await messages({ ...asked, addressList, slippageTolerancePercent: slippage });
  const { txs } = made;
  assert.equal(txs.length, 1);

  const { result } = await json(`${at[sourceAssetChainId].rpc}/tx?hash=0x${way.recorded}`);
  const raw = TxRaw.decode(Buffer.from(result.tx, "base64"));
  let signed = 0;
  const signDirect = async (address, document) => {
    assert.equal(address, user);
    const { signature } = await wallet.signDirect(signer, document);
    const fixed = Secp256k1Signature.fromFixedLength(Buffer.from(signature.signature, "base64"));
    assert.ok(await Secp256k1.verifySignature(fixed, sha256(makeSignBytes(document)), pubkey));
    assert.equal(document.chainId, sourceAssetChainId);
    const body = TxBody.decode(document.bodyBytes);
    check(way, planned, body.messages.at(-1));
    const { msgs } = txs[0].cosmosTx;
    assert.deepEqual(body.messages.map(({ typeUrl }) => typeUrl), msgs.map(({ msgTypeUrl }) => msgTypeUrl));
    signed += 1;
    return {
      signed: { ...document, bodyBytes: raw.bodyBytes, authInfoBytes: raw.authInfoBytes },
      signature: { signature: Buffer.from(raw.signatures[0]).toString("base64"), pub_key: {} },
    };
  };
  const seen = [];
  let completed;
  await executeRoute({
    route: planned,
    slippageTolerancePercent: slippage,
    simulate: false,
    userAddresses: planned.requiredChainAddresses.map((chainId) => ({ chainId, address: user })),
    getCosmosSigner: async () => ({ getAccounts: async () => [{ address: user, algo, pubkey }], signDirect }),
    getFallbackGasAmount: async () => 700000,
    onTransactionBroadcast: async ({ txHash }) => seen.push(txHash),
    onTransactionTracked: async ({ txHash }) => seen.push(txHash),
    onTransactionCompleted: async ({ status }) => (completed = status),
  });
  assert.equal(signed, 1);
  assert.deepEqual(seen, [way.recorded, way.recorded]);
  assert.equal(completed.state, "STATE_COMPLETED_SUCCESS");
  const { denom, amount } = completed.transferAssetRelease;
  assert.deepEqual([denom, amount], way.released, way.name);
  return { RouteResponse: planned, MsgsResponse: made, TxStatusResponse: completed };
}

/** A program that compiles if the responses have the client's types, of which null stands for an absent member. */
function typed(responses) {
  const text = (value) => JSON.stringify(value, (_, member) => member ?? undefined, 1);
  const names = ["RouteResponse", "MsgsResponse", "TxStatusResponse"];
  return `import type { ${names.join(", ")} } from "@skip-go/client";
type Plain<T> = T extends string ? \`\${T}\` : T extends (infer E)[] ? readonly Plain<E>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
${responses.flatMap(Object.entries).map(([name, value], place) => `const of${place} = ${text(value)} as const;
const checked${place}: Plain<${name}> = of${place};`).join("\n")}
`;
}

/** The chain's own packing of arguments, recorded, is that of initia.js. */
async function compareViews() {
  const { venues: adapters } = await json(`${routeUrl}/v2/fungible/venues`);
  assert.deepEqual(adapters.map(({ name }) => name), ["initia-dex", "minitswap"]);
  const recipient = "init1r9f38j5ljez0galegsmezv74a4cs92da3hr5cu";
  const views = {
    pack_action_transfer_args: [[bcs.string(), recipient]],
    pack_action_ibctransfer_args: [[bcs.string(), "channel-0"], [bcs.string(), recipient], [bcs.string(), ""]],
    pack_action_opbridge_args: [[bcs.u64(), 1], [bcs.string(), recipient], [list(bcs.u8()), []]],
  };
  const module_address = "0x00000000000000000000000003224960d8df3d8c41ba48390cc7acdd36abe322";
  for (const [function_name, values] of Object.entries(views)) {
    const packed = values.map(([type, value]) => type.serialize(value));
    const view = `${at[l1].rest}/initia/move/v1/accounts/${module_address}/modules/entry_point/view_functions/${function_name}`;
    const body = JSON.stringify({ type_args: [], args: packed.map((arg) => arg.toBase64()) });
    const response = await fetch(view, { method: "POST", body, headers: { "content-type": "application/json" } });
    const { data, message } = await response.json();
    assert.deepEqual(JSON.parse(data ?? "null"), packed.map((arg) => arg.toHex()), `${function_name}: ${message}`);
  }
}

// The service reads pools and chains after its start.
const isRead = async () => {
  const { venues } = await json(`${routeUrl}/v2/fungible/venues`);
  const fast = { amountIn: "41000000", sourceAssetChainId: l2, sourceAssetDenom: bridged, destAssetChainId: l1, destAssetDenom: "uinit" };
  return venues.some(({ name }) => name === "minitswap") && (await route(fast)).doesSwap;
};
const start = Date.now();
while (!(await isRead())) assert.ok(Date.now() - start < 60_000, "the pools are not read");
await compareViews();
const responses = [];
for (const way of ways) responses.push(await run(way));
writeFileSync(new URL("generated/swaps.ts", import.meta.url), typed(responses));

// The widget's two boxes: the default is fast, the flag means the bridge.
const pair = { sourceAssetChainId: l2, sourceAssetDenom: bridged, destAssetChainId: l1, destAssetDenom: "uinit" };
const fast = await route({ amountIn: "41000000", ...pair });
const body = JSON.stringify({ amount_in: "41000000", source_asset_chain_id: l2, source_asset_denom: bridged, dest_asset_chain_id: l1, dest_asset_denom: "uinit", is_op_withdraw: true });
const lossless = await (await fetch(`${routeUrl}/v2/fungible/route`, { method: "POST", body, headers: { "content-type": "application/json" } })).json();
assert.ok(lossless.operations[0].op_init_transfer && lossless.estimated_route_duration_seconds > fast.estimatedRouteDurationSeconds);
assert.equal(fast.operations.at(-1).swap.swapIn.swapOperations[0].denomIn, returned);
console.log(`swaps: ${ways.map(({ name }) => name).join(", ")}`);
// The client keeps connections open.
process.exit(0);
