"""Holds an OpenAPI document against OpenAPI 3.1, and values against the schemas that it has for them."""

import json
import sys
from decimal import Decimal

from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
document = json.loads(text)["document"]
validate(document)
# Tenths are no multiples of 0.1 in binary.
exact = json.loads(text, parse_float=Decimal)
count = 0
for entry in exact["values"]:
    schema = {**exact["document"], "$ref": f"#/components/schemas/{entry['type']}"}
    for error in Draft202012Validator(schema).iter_errors(entry["values"]):
        sys.exit(f"{entry['type']} {error.json_path}: {error.message}")
    count += len(entry["values"])
print(f"valid, with {len(document['paths'])} paths, {len(document['components']['schemas'])} schemas and {count} values held against them")
