// What a route planner asks about an OFT before a transfer, and a tracker after it.
import { pad, toEventSelector } from "viem";
import { account } from "./chain.mjs";

export const USER = account("user").address.toLowerCase();
// An account that nothing ever touched.
export const FRESH = `0x${"22".repeat(20)}`;
// Whom a planner names as the receiver when it does not know yet.
const NOBODY = "0x000000000000000000000000000000000000dead";
const UNKNOWN_HASH = `0x${"cc".repeat(32)}`;
const UNKNOWN_EID = 40_199;
const RATE = 10n ** 12n;
export const withoutDust = (amount) => amount - (amount % RATE);

export const ONE = 10n ** 18n;
export const ONE_AND_A_HALF = 15n * 10n ** 17n;
export const DUSTY = 1_234_567_890_123_456_789n;
// Less than the smallest amount that a message can carry.
const ONLY_DUST = RATE - 1n;
// The first amount that does not fit the 64 bits of a message.
const TOO_MUCH = 2n ** 64n * RATE;

export const TOPICS = {
  oftSent: toEventSelector("OFTSent(bytes32,uint32,address,uint256,uint256)"),
  oftReceived: toEventSelector("OFTReceived(bytes32,uint32,address,uint256)"),
  packetSent: toEventSelector("PacketSent(bytes,bytes,address)"),
  packetVerified: toEventSelector("PacketVerified((uint32,bytes32,uint64),address,bytes32)"),
  packetDelivered: toEventSelector("PacketDelivered((uint32,bytes32,uint64),address)"),
  lzReceiveAlert: toEventSelector(
    "LzReceiveAlert(address,address,(uint32,bytes32,uint64),bytes32,uint256,uint256,bytes,bytes,bytes)",
  ),
};

export function sendParam(dstEid, amountLD, minAmountLD = withoutDust(amountLD)) {
  return { dstEid, to: pad(USER), amountLD, minAmountLD, extraOptions: "0x", composeMsg: "0x", oftCmd: "0x" };
}

// Everything that does not depend on an amount, then the quotes.
export async function askBeforeSends(chain, farEid, ofts) {
  for (const address of [USER, FRESH]) {
    await chain.record("eth_getBalance", [address, "latest"]);
    await chain.record("eth_getTransactionCount", [address, "latest"]);
  }
  for (const { oft, token } of ofts) {
    for (const name of ["approvalRequired", "token", "sharedDecimals", "decimalConversionRate", "oftVersion"]) {
      await chain.view("OmnichainToken", oft, name);
    }
    for (const eid of [farEid, UNKNOWN_EID]) await chain.view("OmnichainToken", oft, "peers", [eid]);
    await askToken(chain, oft, token);
    for (const amount of [ONE, ONE_AND_A_HALF, DUSTY]) {
      await quote(chain, oft, sendParam(farEid, amount));
      await quote(chain, oft, sendParam(farEid, amount, 0n));
      await quote(chain, oft, { ...sendParam(farEid, amount, 0n), to: pad(NOBODY) });
    }
    await quote(chain, oft, sendParam(farEid, ONLY_DUST));
    // These are refused.
    await quote(chain, oft, sendParam(farEid, DUSTY, DUSTY));
    await quote(chain, oft, sendParam(farEid, TOO_MUCH));
    await quote(chain, oft, sendParam(UNKNOWN_EID, ONE));
  }
}

async function askToken(chain, oft, token) {
  if (token === undefined) return;
  for (const name of ["decimals", "symbol", "name", "totalSupply"]) await chain.view("PlainToken", token, name);
  for (const holder of [USER, FRESH]) await chain.view("PlainToken", token, "balanceOf", [holder]);
  await chain.view("PlainToken", token, "allowance", [USER, oft]);
}

async function quote(chain, oft, param) {
  await chain.view("OmnichainToken", oft, "quoteOFT", [param]);
  await chain.view("OmnichainToken", oft, "quoteSend", [param, false]);
}

// Logs and receipts of all that was sent, and the chain itself as it is at the end.
export async function askAfterSends(chain, endpoint, ofts, incoming) {
  for (const hash of [...chain.hashes, UNKNOWN_HASH]) {
    await chain.record("eth_getTransactionReceipt", [hash]);
    await chain.record("eth_getTransactionByHash", [hash]);
  }
  const logs = (address, topics) =>
    chain.record("eth_getLogs", [{ fromBlock: "0x0", toBlock: "latest", address, topics }]);
  for (const { oft, guid } of incoming) await logs(oft, [TOPICS.oftReceived, guid]);
  for (const topic of [TOPICS.packetSent, TOPICS.packetVerified, TOPICS.packetDelivered]) await logs(endpoint, [topic]);
  for (const { oft } of ofts) {
    await logs(oft, [TOPICS.oftSent]);
    await logs(oft, [TOPICS.oftReceived]);
    await logs(endpoint, [TOPICS.lzReceiveAlert, pad(oft)]);
  }
  for (const method of ["eth_chainId", "net_version", "eth_gasPrice", "eth_syncing", "web3_clientVersion"]) {
    await chain.record(method);
  }
  const { result: head } = await chain.record("eth_blockNumber");
  const heights = Array.from({ length: Number(head) + 1 }, (_, height) => `0x${height.toString(16)}`);
  for (const block of ["latest", "safe", "finalized", ...heights]) {
    await chain.record("eth_getBlockByNumber", [block, false]);
  }
}
