"""web3.py over cairn's JSON-RPC of a recorded chain.

python evm.py EVM_URL, of `cairn demo --recording ../recordings/evm-fees --evm-listen ADDR`.
"""

import sys

from web3 import Web3
from web3.exceptions import BlockNotFound, MethodUnavailable, TransactionNotFound

w3 = Web3(Web3.HTTPProvider(sys.argv[1]))
head = w3.eth.block_number
assert (head, w3.eth.chain_id) == (584, 0x7122181E20277)
assert w3.net.version == "1" and w3.client_version.startswith("cairn/")

with w3.batch_requests() as batch:
    for number in range(1, head + 1):
        batch.add(w3.eth.get_block(number, full_transactions=True))
    blocks = batch.execute()
kinds = {}
for before, block in zip([None, *blocks], blocks):
    assert before is None or block["parentHash"] == before["hash"]
    for tx in block["transactions"]:
        assert tx["blockHash"] == block["hash"]
        kinds[tx["type"]] = kinds.get(tx["type"], 0) + 1
assert kinds == {0: 253 + 79, 1: 262, 2: 503, 4: 7}, kinds

logs = w3.eth.get_logs({"fromBlock": 1, "toBlock": "latest"})
places = {(log["blockNumber"], log["logIndex"]) for log in logs}
assert len(places) == len(logs)
of_receipts = 0
for block in blocks:
    receipts = w3.eth.get_block_receipts(block["number"])
    assert [receipt["transactionHash"] for receipt in receipts] == [tx["hash"] for tx in block["transactions"]]
    of_receipts += sum(len(receipt["logs"]) for receipt in receipts)
assert of_receipts == len(logs)

address = logs[0]["address"]
assert w3.eth.get_logs({"fromBlock": 1, "address": address}) == [log for log in logs if log["address"] == address]
by_hash = w3.eth.get_logs({"blockHash": blocks[logs[0]["blockNumber"] - 1]["hash"]})
assert by_hash == [log for log in logs if log["blockNumber"] == logs[0]["blockNumber"]]

tx = blocks[logs[0]["blockNumber"] - 1]["transactions"][0]
assert w3.eth.get_transaction(tx["hash"]) == tx
assert Web3.keccak(w3.eth.get_raw_transaction(tx["hash"])) == tx["hash"]
for missing, error in [
    (lambda: w3.eth.get_block(head + 1), BlockNotFound),
    (lambda: w3.eth.get_block("0x" + "11" * 32), BlockNotFound),
    (lambda: w3.eth.get_transaction("0x" + "11" * 32), TransactionNotFound),
    (lambda: w3.eth.gas_price, MethodUnavailable),
]:
    try:
        missing()
    except error:
        continue
    raise AssertionError(error)
print(f"web3.py: {sum(kinds.values())} transactions, {len(logs)} logs")
