// A recorded CometBFT node that also knows the accounts of a test: a recording has no `Query/Account`.
import http from "node:http";
import { BaseAccount } from "cosmjs-types/cosmos/auth/v1beta1/auth.js";
import { QueryAccountRequest, QueryAccountResponse } from "cosmjs-types/cosmos/auth/v1beta1/query.js";

/** Serves the node at `rpc`, and every account with one sequence; resolves to its URL. */
export async function withAccounts(rpc, sequence) {
  const node = http.createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const call = body && JSON.parse(body);
    response.setHeader("content-type", "application/json");
    if (call.method === "abci_query" && call.params.path.endsWith(".Query/Account")) {
      const { address } = QueryAccountRequest.decode(Buffer.from(call.params.data, "hex"));
      const account = {
        typeUrl: "/cosmos.auth.v1beta1.BaseAccount",
        value: BaseAccount.encode(BaseAccount.fromPartial({ address, sequence })).finish(),
      };
      const value = Buffer.from(QueryAccountResponse.encode({ account }).finish()).toString("base64");
      const result = { response: { code: 0, value, height: "1" } };
      return response.end(JSON.stringify({ jsonrpc: "2.0", id: call.id, result }));
    }
    const headers = { "content-type": "application/json" };
    const answer = await fetch(rpc + request.url, { method: request.method, body: body || undefined, headers });
    response.statusCode = answer.status;
    return response.end(await answer.text());
  });
  await new Promise((listening) => node.listen(0, "127.0.0.1", listening));
  return `http://127.0.0.1:${node.address().port}`;
}
