"""Filters of web3.py over a chain that grows.

filters.py EVM_URL, of a node that shows new blocks of ../recordings/evm-fees from 300 on, with evm_filters.
"""

import sys
import time

from web3 import Web3

WANTED = 15
w3 = Web3(Web3.HTTPProvider(sys.argv[1]))
logs, blocks = w3.eth.filter({}), w3.eth.filter("latest")
found_logs, found_blocks = [], []
while len(found_logs) < WANTED or len(found_blocks) < WANTED:
    found_logs += logs.get_new_entries()
    found_blocks += blocks.get_new_entries()
    time.sleep(0.05)

numbers = [w3.eth.get_block(block)["number"] for block in found_blocks]
assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
for log in found_logs:
    same = w3.eth.get_logs({"fromBlock": log["blockNumber"], "toBlock": log["blockNumber"]})
    assert log in same, log
first = numbers[0]
whole = w3.eth.filter({"fromBlock": first, "toBlock": first + 3})
assert whole.get_all_entries() == w3.eth.get_logs({"fromBlock": first, "toBlock": first + 3})
assert w3.eth.uninstall_filter(logs.filter_id) and not w3.eth.uninstall_filter(logs.filter_id)
print(f"filters: {len(found_logs)} logs, {len(found_blocks)} blocks of web3.py")
