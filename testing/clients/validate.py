"""Asks a running cairn every question of a golden file, and validates the answers against its OpenAPI document.

usage: validate.py INDEXER_URL GOLDEN.ndjson.zst
"""

import io
import json
import re
import sys
import urllib.error
import urllib.request

import jsonschema_rs
import zstandard

url, golden = sys.argv[1:]


def get(target):
    try:
        with urllib.request.urlopen(url + target) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


document = json.loads(get("/openapi.json")[1])


def resolve(value):
    while "$ref" in value:
        inner = document
        for name in value["$ref"].removeprefix("#/").split("/"):
            inner = inner[name]
        value = inner
    return value


def validators(operation):
    """By status; the definitions are in every schema's own document."""
    for status, response in operation["responses"].items():
        for content in resolve(response).get("content", {}).values():
            schema = {**content["schema"], "components": document["components"]}
            yield status, jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


# The template whose first literal comes earliest wins, as in the server.
templates = sorted(document["paths"], key=lambda path: ["{" in part for part in path.split("/")])
routes = [
    (re.compile(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path)) + "/?", re.IGNORECASE), dict(validators(methods["get"])))
    for path, methods in ((path, document["paths"][path]) for path in templates)
]

with open(golden, "rb") as file:
    lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8")
    targets = [json.loads(line)["u"] for line in lines]
checked = {}
for target in targets:
    path = target.split("?")[0]
    found = next((by_status for pattern, by_status in routes if pattern.fullmatch(path)), None)
    if found is None:
        continue
    status, body = get(target)
    by = found.get(str(status)) or found["default"]
    errors = [f"{error.instance_path}: {error.message}"[:500] for error in by.iter_errors(json.loads(body))]
    if errors:
        sys.exit(f"{target} answers {status} against the document: {errors[:3]}")
    checked[status] = checked.get(status, 0) + 1
if checked.get(200, 0) < 100:
    sys.exit(f"only {checked} answers were validated")
print(f"schemas: answers by status {checked}")
