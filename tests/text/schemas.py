"""JSON schemas of the kinds that users send: 200 that are followed, and some that are refused, with what is said."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

Schema = dict[str, Any]
WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 8}
SCALARS: list[Schema] = [
    *({"type": kind} for kind in ("integer", "number", "boolean", "null")),
    *({"type": "string", "minLength": a, "maxLength": b} for a, b in ((0, 0), (0, 3), (2, 2), (5, 12))),
    *({"type": "integer", "minimum": a, "maximum": b} for a, b in ((0, 1), (-7, 7), (1900, 2100), (-1000, -990))),
    *({"type": "integer", "exclusiveMinimum": a, "exclusiveMaximum": b} for a, b in ((0, 2), (-5, 100))),
    *({"type": "number", "minimum": a, "maximum": b} for a, b in ((0, 1), (-0.5, 0.25), (36.1, 41.9), (-180, 180))),
    *({"type": "number", "exclusiveMinimum": a, "exclusiveMaximum": b} for a, b in ((0, 1), (2.5, 2.75))),
    {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 95},
    {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 5},
    *({"enum": values} for values in (["a"], ["low", "high"], [1, 2.5, None], ["é", '"', "\n"], [[1], {"a": 1}])),
    *({"const": value} for value in ("x", 0, -1.5, True, None, [], {"a": [1]})),
    {"type": ["string", "null"], "maxLength": 4},
    {"type": ["integer", "boolean"], "minimum": 3, "maximum": 9},
]
PATTERNS = (
    *("^[A-Z]{3}$", "^[a-z]+@[a-z]+\\.(com|org)$", "^#[0-9a-f]{6}$", "^\\d{5}(-\\d{4})?$", "^v\\d{1,2}\\.\\d\\.\\d$"),
    *("^\\+?\\d{7,12}$", "^(yes|no|maybe)$", "^[A-Z]{2}-\\d{2,4}$", "^\\S{1,6}$", "^[^,]{0,5}$", "^a?b*c$", "^$"),
    *("^(\\w{1,3} ){0,2}\\w{1,3}$", "^[\\u0391-\\u03c9]{2}$", "^0x[0-9A-F]{1,8}$", "^[01]?\\d:[0-5]\\d$"),
)
FORMATS = ("date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")
ARRAYS: list[Schema] = [
    *({"type": "array", "items": s, "maxItems": 3} for s in (WORD, {"type": "boolean"}, {"enum": [1, 2]})),
    *({"type": "array", "items": {"const": 0}, "minItems": a, "maxItems": b} for a, b in ((0, 0), (1, 1), (2, 5))),
    {"type": "array", "prefixItems": [{"type": "boolean"}, WORD], "items": False, "minItems": 2},
    {"type": "array", "prefixItems": [WORD], "items": {"enum": ["x"]}, "minItems": 2, "maxItems": 4},
    {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, "maxItems": 2},
]


def closed(required: str = "", **properties: Any) -> Schema:
    """Return an object of these properties and no others; without names in `required` it needs all."""
    names = required.split() if required else [*properties]
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def several(items: Schema, least: int = 0, most: int = 2) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def nested(depth: int) -> Schema:
    return closed(id={"type": "integer", "minimum": 0, "maximum": 99}, **({"in": nested(depth - 1)} if depth else {}))


def referring(definitions: Schema, **properties: Any) -> Schema:
    return {**closed(**properties), "$defs": definitions}


POINT = closed(
    lat={"type": "number", "minimum": -90, "maximum": 90}, lon={"type": "number", "minimum": 0, "maximum": 9}
)
TREE = {"node": closed("v", v={"type": "boolean"}, next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})}
CIRCLE, SQUARE = (closed(kind={"const": kind}, size={"enum": [1, 2]}) for kind in ("circle", "square"))
PERSON = closed(
    name=WORD, age={"type": "integer", "minimum": 0, "maximum": 130}, mail={"type": "string", "format": "email"}
)
OBJECTS: list[Schema] = [
    PERSON,
    POINT,
    closed("a", a=WORD, b={"type": "boolean"}, c={"type": "null"}),
    closed(label={"enum": ["positive", "negative", "neutral"]}, score={"type": "number", "minimum": 0, "maximum": 1}),
    closed(title=WORD, date={"type": "string", "format": "date"}, people=several(WORD)),
    closed(steps=several(closed(explanation=WORD, output=WORD), 1), final_answer=WORD),
    closed(items=several(closed(sku={"type": "string", "pattern": "^[A-Z]{2}\\d{3}$"}, n={"enum": [1, 2, 3]}), 1)),
    closed(type={"const": "Point"}, coordinates=several({"type": "number", "minimum": -9, "maximum": 9}, 2)),
    closed(query=WORD, filters={"anyOf": [{"type": "null"}, closed(field=WORD, op={"enum": ["=", "<", ">"]})]}),
    *(nested(depth) for depth in (1, 2, 3, 5, 8)),
    {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 2},
    {"type": "object", "patternProperties": {"^x_[a-z]{1,3}$": {"enum": [1]}}, "additionalProperties": False},
    {**closed("a", a=WORD, b=WORD), "minProperties": 1},
    {"type": "object", "properties": {"a": WORD}, "required": ["a", "b"], "additionalProperties": {"const": 2}},
    {
        "allOf": [
            {"type": "object", "properties": {"a": WORD}, "required": ["a"]},
            {"additionalProperties": False, "properties": {"a": {}}},
        ]
    },
    {"anyOf": [PERSON, POINT]},
    {"anyOf": [WORD, {"type": "integer", "maximum": 3, "minimum": 0}, several({"type": "boolean"})]},
    {"oneOf": [CIRCLE, SQUARE], "discriminator": {"propertyName": "kind"}},
    {"oneOf": [{"type": "boolean"}, {"enum": [1, 2]}, {"const": "x"}]},
    referring({"point": POINT}, a={"$ref": "#/$defs/point"}, b={"$ref": "#/$defs/point"}),
    referring(TREE, root={"$ref": "#/$defs/node"}),
    referring({"c": CIRCLE, "s": SQUARE}, shape={"oneOf": [{"$ref": "#/$defs/c"}, {"$ref": "#/$defs/s"}]}),
    {**closed(a={"$ref": "#/definitions/w"}), "definitions": {"w": WORD}},
    {**closed(a=WORD), "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T", "description": "d"},
    closed(a={**WORD, "default": "x", "examples": ["y"], "title": "A", "$comment": "c", "deprecated": True}),
    closed(**{"a b": WORD, 'q"': {"const": 1}, "ü": {"type": "boolean"}, "": {"type": "null"}}),
]
# Schemas that are refused, and the keyword or the rule that is named.
REFUSED: list[tuple[Schema, str]] = [
    *(({keyword: value}, keyword) for keyword, value in (("not", {"type": "null"}), ("if", {"type": "null"}))),
    ({"type": "array", "uniqueItems": True}, "uniqueItems"),
    ({"type": "array", "contains": {"const": 1}}, "contains"),
    (closed(a={"type": "object", "propertyNames": WORD}), "propertyNames"),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
    ({"type": "object", "unevaluatedProperties": False}, "unevaluatedProperties"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
    ({"type": "string", "format": "iri"}, "iri"),
    ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
    ({"type": "strin"}, "strin"),
    ({"$ref": "#/$defs/x"}, "/$defs/x"),
    ({"type": "integer", "minimum": 2, "maximum": 1}, "minimum (2) is greater than maximum (1)"),
]


def schemas() -> list[Schema]:
    """Return 200 schemas: each of the above, and objects and lists of two of them."""
    texts = [{"type": "string", "pattern": p} for p in PATTERNS] + [{"type": "string", "format": f} for f in FORMATS]
    found = [*SCALARS, *texts, *ARRAYS, *OBJECTS]
    plain = [one for one in found if "$defs" not in one and "definitions" not in one]  # references begin at the root
    return [*found, *_joined(plain, 200 - len(found))]


def _joined(plain: list[Schema], wanted: int) -> Iterator[Schema]:
    for n in count():
        if n == wanted:
            return
        one, other = plain[(7 * n) % len(plain)], plain[(11 * n + 5) % len(plain)]
        pairs = closed(a=one, b=several(other, 0, 1)), closed("x", x=one, y=other), several({"anyOf": [one, other]}, 1)
        yield pairs[n % 3]
