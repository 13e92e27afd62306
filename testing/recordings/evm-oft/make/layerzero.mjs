// LayerZero on one chain (endpoint, message libraries, one DVN, one executor) and what its workers do off chain.
import {
  concat, decodeAbiParameters, encodeFunctionData, encodePacked, hexToBigInt, hexToNumber,
  keccak256, pad, size, slice, toEventSelector,
} from "viem";
import { ARTIFACTS } from "./artifacts.mjs";
import { account } from "./chain.mjs";

const CONFIRMATIONS = 1n;
const DVN_ID = 7;
const FOREVER = 4_102_444_800n;
// Type 3 options: executor, lzReceive with 120,000 gas.
const LZ_RECEIVE_OPTION = "0x0003010011010000000000000000000000000001d4c0";
const SEND = 1;
const PACKET_SENT = toEventSelector("PacketSent(bytes,bytes,address)");

// Deploys the contracts of LayerZero and opens the way to and from the chain `far`.
export async function deployLayerZero(chain, far) {
  const owner = chain.deployer.address;
  const [verifier, executor] = [account("verifier").address, account("executor").address];
  const at = {};
  at.endpoint = await chain.deploy("EndpointV2", [chain.eid, owner]);
  at.sendLib = await chain.deploy("SendUln302", [at.endpoint, 200_000n, 0n]);
  at.receiveLib = await chain.deploy("ReceiveUln302", [at.endpoint]);
  at.priceFeed = await chain.deploy("PriceFeed");
  at.executorFees = await chain.deploy("ExecutorFeeLib", [chain.eid, 10n ** 18n]);
  at.executor = await chain.deploy("Executor");
  at.dvnFees = await chain.deploy("DVNFeeLib", [chain.eid, 10n ** 18n]);
  at.dvn = await chain.deploy("DVN", [
    chain.eid, DVN_ID, [at.sendLib], at.priceFeed, [verifier], 1n, [owner, verifier],
  ]);

  await chain.call("PriceFeed", at.priceFeed, "initialize", [owner]);
  const price = { priceRatio: 10n ** 20n, gasPriceInUnit: far.gasPrice, gasPerByte: 16 };
  // The feed knows endpoints by the ids of version 1.
  await chain.call("PriceFeed", at.priceFeed, "setPrice", [[{ eid: far.eid % 30_000, price }]]);

  const workers = [at.endpoint, "0x0000000000000000000000000000000000000000", [at.sendLib], at.priceFeed, owner];
  await chain.call("Executor", at.executor, "initialize", [...workers, [owner, executor]]);
  await chain.call("Executor", at.executor, "setWorkerFeeLib", [at.executorFees]);
  await chain.call("Executor", at.executor, "setDstConfig", [[{
    dstEid: far.eid, lzReceiveBaseGas: 50_000n, lzComposeBaseGas: 50_000n, multiplierBps: 12_000,
    floorMarginUSD: 0n, nativeCap: 10n ** 17n,
  }]]);
  await chain.call("DVN", at.dvn, "setWorkerFeeLib", [at.dvnFees]);
  await chain.call("DVN", at.dvn, "setDstConfig", [[{
    dstEid: far.eid, gas: 80_000n, multiplierBps: 12_000, floorMarginUSD: 0n,
  }]]);

  const config = {
    confirmations: CONFIRMATIONS, requiredDVNCount: 1, optionalDVNCount: 0, optionalDVNThreshold: 0,
    requiredDVNs: [at.dvn], optionalDVNs: [],
  };
  for (const lib of ["Send", "Receive"]) {
    const address = lib === "Send" ? at.sendLib : at.receiveLib;
    await chain.call(`${lib}Uln302`, address, "setDefaultUlnConfigs", [[{ eid: far.eid, config }]]);
    await chain.call("EndpointV2", at.endpoint, "registerLibrary", [address]);
  }
  const executorConfig = { maxMessageSize: 10_000, executor: at.executor };
  await chain.call("SendUln302", at.sendLib, "setDefaultExecutorConfigs", [[{ eid: far.eid, config: executorConfig }]]);
  await chain.call("EndpointV2", at.endpoint, "setDefaultSendLibrary", [far.eid, at.sendLib]);
  await chain.call("EndpointV2", at.endpoint, "setDefaultReceiveLibrary", [far.eid, at.receiveLib, 0n]);
  return at;
}

// Makes an OFT know the OFT of the far chain, with enforced options so that senders need to give none.
export async function connect(chain, oft, farEid, farOft) {
  await chain.call("OmnichainToken", oft, "setPeer", [farEid, pad(farOft)]);
  const options = [{ eid: farEid, msgType: SEND, options: LZ_RECEIVE_OPTION }];
  await chain.call("OmnichainToken", oft, "setEnforcedOptions", [options]);
}

// The packet that a transaction sent, out of its receipt.
export function packetOf(receipt) {
  const log = receipt.logs.find((l) => l.topics[0] === PACKET_SENT);
  const [packet] = decodeAbiParameters([{ type: "bytes" }, { type: "bytes" }, { type: "address" }], log.data);
  return {
    header: slice(packet, 0, 81),
    nonce: hexToBigInt(slice(packet, 1, 9)),
    srcEid: hexToNumber(slice(packet, 9, 13)),
    sender: slice(packet, 13, 45),
    receiver: slice(packet, 61, 81),
    guid: slice(packet, 81, 113),
    message: slice(packet, 113, size(packet)),
  };
}

// What the DVN and then the committer do on the destination: afterwards the packet may be executed by anyone.
export async function verify(chain, at, packet) {
  const payloadHash = keccak256(concat([packet.guid, packet.message]));
  const callData = encodeFunctionData({
    abi: ARTIFACTS.ReceiveUln302.abi, functionName: "verify", args: [packet.header, payloadHash, CONFIRMATIONS],
  });
  const instruction = encodePacked(
    ["uint32", "address", "uint256", "bytes"], [DVN_ID, at.receiveLib, FOREVER, callData],
  );
  const signatures = await account("verifier").signMessage({ message: { raw: keccak256(instruction) } });
  const order = { vid: DVN_ID, target: at.receiveLib, callData, expiration: FOREVER, signatures };
  const attested = await chain.call("DVN", at.dvn, "execute", [[order]], { from: account("verifier") });
  const from = account("executor");
  const committed = await chain.call(
    "ReceiveUln302", at.receiveLib, "commitVerification", [packet.header, payloadHash], { from },
  );
  return { attested, committed };
}

// What the executor does: runs the packet, and reports an alert where running it fails.
export function execute(chain, at, packet, gasLimit) {
  const { receiver, srcEid, sender, nonce, guid, message } = packet;
  const params = { receiver, origin: { srcEid, sender, nonce }, guid, message, extraData: "0x", gasLimit };
  return chain.call("Executor", at.executor, "execute302", [params], { from: account("executor") });
}

