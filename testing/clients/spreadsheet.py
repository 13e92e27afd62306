"""Opens 10,000 movements of an account as CSV in a spreadsheet library: rows as in JSON, and no cell is a formula.

usage: spreadsheet.py INDEXER_URL ACCOUNT
"""

import csv
import io
import json
import re
import sys
import tempfile
import urllib.request

import openpyxl

url, account = sys.argv[1:]
path = f"/indexer/ledger/v1/transfers/by_account/{account}"


def get(target):
    with urllib.request.urlopen(url + target) as response:
        return response.headers, response.read().decode()


headers, text = get(f"{path}?format=csv&include_zero=true&pagination.reverse=false")
assert headers["content-type"] == "text/csv; charset=utf-8", headers["content-type"]
assert text.endswith("\r\n") and text.count("\n") == text.count("\r\n") == 10_001, "lines end with CRLF"
names, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
assert len(rows) == 10_000 and all(len(row) == len(names) == 14 for row in rows)

book = openpyxl.Workbook(write_only=False)
for row in [names, *rows]:
    book.active.append(row)
with tempfile.TemporaryFile() as file:
    book.save(file)
    opened = openpyxl.load_workbook(file).active
    cells = [cell for row in opened.iter_rows() for cell in row]
    formulas = [cell.coordinate for cell in cells if cell.data_type == "f"]
    assert opened.max_row == 10_001 and not formulas, formulas
# The library does take such a text for a formula.
book.active.append(["=1+1"])
assert book.active.cell(10_002, 1).data_type == "f"

listed = []
key = ""
while len(listed) < 10_000:
    page = json.loads(get(f"{path}?include_zero=true&pagination.reverse=false&pagination.limit=1000&pagination.key={key}")[1])
    listed += page["transfers"]
    key = page["pagination"]["next_key"]
for row, record in zip(rows, listed):
    shown = dict(zip(names, row))
    assert [shown[name] for name in ("height", "txhash", "kind", "amount")] == [
        record[name] for name in ("height", "txhash", "kind", "amount")
    ], (row, record)

following = re.fullmatch('<([^>]+)>; rel="next"', headers["link"])
_, text = get(following[1])
rest = list(csv.reader(io.StringIO(text, newline=""), strict=True))
total = int(page["pagination"]["total"])
assert rest[0] == names and len(rest) - 1 == min(total - 10_000, 10_000), (len(rest), total)
print(f"spreadsheet: {len(rows)} and {len(rest) - 1} rows of {total}")
