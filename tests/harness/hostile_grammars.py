"""Grammars that were written to hurt, by name: for what they cost to compile, or to follow.

`Hostile.texts` are what a model under the spell of an adversary would write; each is followed as far as it is legal.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    GrammarSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTag,
    StructuralTagSpec,
)


@dataclass(frozen=True)
class Hostile:
    spec: GrammarSpec
    texts: tuple[str, ...] = ()


_REGEXES: dict[str, tuple[str, tuple[str, ...]]] = {
    "nested plus": ("(a+)+b", ("a" * 200,)),
    "a byte far from the end, 20": ("(.|\n)*a(.|\n){20}", ("ab" * 200, "aab" * 200, "the cat sat at a mat " * 20)),
    "a byte far from the end, 200": ("[ab]*a[ab]{200}", ("abbab" * 200, "ab" * 200)),
    "any byte far from the end, 1000": ("(.|\n)*a(.|\n){1000}", ("a man a plan a canal " * 100,)),
    "many bytes far from the end": (
        "|".join(f"(.|\n)*{letter}(.|\n){{{30 + i}}}" for i, letter in enumerate("abcdefghijklmnop")),
        ("the quick brown fox jumps over the lazy dog " * 20,),
    ),
    "optional and counted": ("(x?){5000}x{5000}", ("x" * 500,)),
    "nested ranges": ("(.{0,999}){9}", ("hello " * 100,)),
    "a million times": ("a{1000000}", ("a" * 500,)),
    "a thousand times a thousand": ("(a{1000}){1000}", ("a" * 500,)),
    "three counts": ("((a{99}){99}){99}", ("a" * 500,)),
    "deep optional groups": ("(" * 2000 + "a" + ")?" * 2000, ("a",)),
    "deep groups": ("(" * 20000 + "a" + ")" * 20000, ("a",)),
    "long alternation": ("|".join(f"word{i}x" for i in range(20000)), ("word123", "word19999x")),
    "alternation that shares nothing": ("|".join(f"{i * 7919 % 100003:x}z{i}" for i in range(20000)), ()),
    "alternation of repeats": ("(" + "|".join(f"(ab{{{i}}})*" for i in range(1, 400)) + ")*", ("abbabbbab" * 40,)),
    "letters of unicode": (r"\p{L}{1000}", ("日本語" * 100, "abc" * 100)),
    "words of unicode": (r"(\p{L}+\p{N}*\p{P}?\s?){1,500}", ("hello wörld 日本 " * 40,)),
    "complement of unicode": (r"([^\p{L}]{1,50}[^\p{N}]{1,50}){1,50}", ("12 ab " * 50,)),
    "classes of unicode in a union": (
        "|".join(rf"[\p{{L}}--\x{{{0x4E00 + i:x}}}]{{3,{i + 3}}}" for i in range(60)).replace("--", ""),
        ("漢字" * 30,),
    ),
    "case folding": ("(?i)" + "straße" * 200, ("STRASSE",)),
    "case folding of classes": (r"(?i)(\p{Lu}|\p{Ll}){1,300}", ("aBcD" * 50,)),
    "stars of stars": ("(((((a*)*)*)*)*)*b", ("a" * 300,)),
    "palindromic stars": ("(a*b*c*d*e*f*g*h*)*i{100}", ("abcdefgh" * 40,)),
    "empty alternatives": ("(" + "|" * 5000 + "a)*", ("a" * 100,)),
    "overlapping windows": ("(a|b|ab|ba|aba|bab){1,2000}", ("abba" * 100,)),
    "nested counts of optional": ("((a?b?c?){1,50}){1,50}", ("abcab" * 40,)),
}

_LARKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ambiguous pairs": ('start: s\ns: s s | "a"', ("a" * 600,)),
    "ambiguous triples": ('start: s\ns: s s s | s s | "a" | ""', ("a" * 600,)),
    "ambiguous optional": ("start: x\n" + "x: " + " ".join(["y?"] * 60) + '\ny: "a" | x "b"', ("ab" * 100,)),
    "deep right recursion": ('start: "(" start ")" | "x"', ("(" * 1500,)),
    "deep left recursion": ('start: start "a" | "a"', ("a" * 2000,)),
    "hidden left recursion": ('start: e start "a" | "b"\ne: "" | e e', ("b" + "a" * 300,)),
    "unit circle": ('start: a\na: b | "x"\nb: c | "y"\nc: a | "z"', ("x",)),
    "ten thousand rules": (
        "start: r0\n" + "\n".join(f'r{i}: "a{i}" r{i + 1} | "b{i}"' for i in range(5000)) + '\nr5000: "end"',
        ("a0a1a2a3a4",),
    ),
    "doubling": ('start: d40\nd0: "a"\n' + "\n".join(f"d{i + 1}: d{i} d{i}" for i in range(40)), ("a" * 400,)),
    "doubling of optional": (
        'start: d20\nd0: "a" | ""\n' + "\n".join(f"d{i + 1}: d{i} d{i}" for i in range(20)),
        ("a" * 400,),
    ),
    "terminals that double": (
        "start: T30\nT0: /a|b/\n" + "\n".join(f"T{i + 1}: T{i} T{i}" for i in range(30)),
        ("ab" * 90,),
    ),
    "many terminals": (
        "start: ("
        + " | ".join(f"t{i}" for i in range(800))
        + ")*\n"
        + "\n".join(f"t{i}: /[a-z]*{i}[a-z]*/" for i in range(800)),
        ("abc1def2ghi" * 20,),
    ),
    "many stars in one row": (
        "start: (" + " | ".join(f"/[a-z]+{chr(97 + i % 26)}{i}/" for i in range(400)) + ")+",
        ("abcdef" * 40,),
    ),
    "counted rule": ('start: ("a" | "b" "c"){1,100000}', ("abc" * 200,)),
    "counted rules nested": ('start: a{1,300}\na: b{1,300}\nb: c{1,300}\nc: "x" | "y"', ("xy" * 200,)),
    "optional rule a hundred thousand times": ('start: ("a"?){100000}', ("a" * 200,)),
    "lookalike terminals": (
        "start: (A|B|C|D)*\nA: /(x|y)*x(x|y){12}a/\nB: /(x|y)*y(x|y){13}b/\n"
        "C: /(x|y)*x(x|y){14}c/\nD: /(x|y)*y(x|y){15}d/",
        ("xyxxyy" * 60,),
    ),
}


def _numbered(count: int, value: Callable[[int], Any]) -> dict[str, Any]:
    return {f"k{i}": value(i) for i in range(count)}


def _ref(number: int) -> dict[str, Any]:
    return {"$ref": f"#/$defs/k{number}"}


def _nested(depth: int, inner: Any, wrap: Callable[[Any], Any]) -> Any:
    for _ in range(depth):
        inner = wrap(inner)
    return inner


_OPEN_TREE: dict[str, Any] = {
    "$ref": "#/$defs/n",
    "$defs": {"n": {"properties": {f"c{i}": {"$ref": "#/$defs/n"} for i in range(40)}}},
}

_SCHEMAS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a million items": ({"type": "array", "items": {"type": "integer"}, "minItems": 1000000}, ("[" + "1," * 500,)),
    "up to a million items": (
        {"type": "array", "items": {"type": "integer"}, "maxItems": 1000000},
        ("[" + "1," * 500,),
    ),
    "a million tuples": (
        {"items": {"items": {"type": "null"}, "minItems": 1000}, "type": "array", "minItems": 1000},
        ("[[null,",),
    ),
    "a string of a million": ({"type": "string", "minLength": 1000000}, ('"' + "ab " * 400,)),
    "a string up to a million": ({"type": "string", "maxLength": 1000000}, ('"' + "ab " * 400,)),
    "strings of many lengths": (
        {"anyOf": [{"type": "string", "minLength": 50 * i, "maxLength": 60 * i + 1} for i in range(1, 200)]},
        ('"' + "hello " * 300,),
    ),
    "five thousand optional properties": (
        {"type": "object", "properties": _numbered(5000, lambda i: {"type": "string"}), "additionalProperties": False},
        ('{"k1": "a", "k77": "b", "k4999": "c"}',),
    ),
    "five thousand required properties": (
        {"type": "object", "properties": _numbered(5000, lambda i: {}), "required": [f"k{i}" for i in range(5000)]},
        ('{"k0": 1, "k1": 2,',),
    ),
    "properties far down an open object": (
        {"type": "object", "properties": _numbered(3000, lambda i: {"type": "integer"})},
        ('{"other": 1, "k3": 1}',),
    ),
    "ten thousand constants": ({"enum": [f"constant {i}" for i in range(9000)]}, ('"constant 88', '"constant 1234"')),
    "ten thousand numbers": ({"enum": [i * 7919 for i in range(15000)]}, ("7919",)),
    "long constants": ({"enum": ["x" * 2000 + str(i) for i in range(100)]}, ('"' + "x" * 500,)),
    "many objects in a union": (
        {"anyOf": [{"type": "object", "properties": {"kind": {"const": f"k{i}"}, f"v{i}": {}}} for i in range(500)]},
        ('{"kind": "k77", "v77": [1, {}]}',),
    ),
    "nested unions": (
        {
            "$defs": _numbered(40, lambda i: {"anyOf": [_ref(i + 1), {"type": "array", "items": _ref(i + 1)}]})
            | {"k40": {"type": "null"}},
            "$ref": "#/$defs/k0",
        },
        ("[[[null]]]", "[" * 30),
    ),
    "unions that meet": (
        {
            "allOf": [
                {
                    "anyOf": [
                        {"properties": {f"p{i}{j}": {"type": "integer"}}, "required": [f"p{i}{j}"]} for j in range(2)
                    ]
                }
                for i in range(9)
            ]
        },
        ('{"p00": 1,',),
    ),
    "recursive unions that meet": (
        {
            "$defs": {
                "a": {
                    "anyOf": [
                        {"properties": {"x": {"$ref": "#/$defs/b"}}},
                        {"properties": {"y": {"$ref": "#/$defs/a"}}},
                    ]
                },
                "b": {
                    "allOf": [
                        {"$ref": "#/$defs/a"},
                        {
                            "anyOf": [
                                {"properties": {"z": {"$ref": "#/$defs/a"}}},
                                {"properties": {"x": {"$ref": "#/$defs/a"}}},
                            ]
                        },
                    ]
                },
            },
            "$ref": "#/$defs/b",
        },
        ('{"x": {"y": {',),
    ),
    "tree of forty children": (_OPEN_TREE, ('{"c0": ' * 100, '{"z": ' * 200)),
    "a chain of references": (
        {"$defs": _numbered(900, lambda i: {"items": _ref(i + 1)}) | {"k900": {}}, "$ref": "#/$defs/k0"},
        ("[" * 300,),
    ),
    "multiples of a prime": ({"type": "integer", "multipleOf": 1000003}, ("1000003", "2000006" * 8)),
    "multiples of coprime numbers": (
        {"allOf": [{"type": "integer", "multipleOf": p} for p in (97, 89, 83, 79)]},
        ("0", "9" * 40),
    ),
    "multiples of a small fraction": ({"type": "number", "multipleOf": 0.000123}, ("0.000123", "9" * 40)),
    "bounds of many digits": (
        {"type": "number", "minimum": 1.2345678901234567e-300, "maximum": 9.876543210987654e300},
        ("9" * 200, "0." + "0" * 200),
    ),
    "a multiple within bounds": (
        {"type": "integer", "multipleOf": 9973, "minimum": 1, "maximum": 10**15},
        ("9973", "1" * 14),
    ),
    "many patterns on one string": (
        {"allOf": [{"pattern": f"{c}.*{c}.*{c}"} for c in "abcdefgh"]},
        ('"' + "abcdefgh" * 30,),
    ),
    "a search far from the end": ({"type": "string", "pattern": "a.{40}$"}, ('"' + "a man a plan " * 30,)),
    "patterns that meet formats": (
        {"format": "uri", "allOf": [{"pattern": "a.*b"}, {"pattern": "^.{5,500}$"}, {"maxLength": 400}]},
        ('"http://a.b/' + "a/b" * 60,),
    ),
    "many pattern properties": (
        {
            "type": "object",
            "patternProperties": {f"^x{i}_": {"type": "integer"} for i in range(200)},
            "additionalProperties": False,
        },
        ('{"x1_a": 1, "x199_b": 2}',),
    ),
    "patterns of names beside names": (
        {
            "type": "object",
            "properties": _numbered(300, lambda i: {}),
            "patternProperties": {"^[a-z]{1,60}[0-9]{1,60}$": {}},
        },
        ('{"kk1": 1,',),
    ),
    "names by pattern": ({"type": "object", "propertyNames": {"pattern": "^(a|b){1,400}$"}}, ('{"abab": {}, "b": 1}',)),
    "not one of many": ({"type": "string", "not": {"enum": [f"a{i * 7919}" for i in range(3000)]}}, ('"a7919', '"a79')),
    "not one of long ones": (
        {"type": "string", "not": {"enum": ["ab" * 90 + str(i) for i in range(60)]}},
        ('"' + "ab" * 80,),
    ),
    "one of many objects": (
        {"oneOf": [{"type": "object", "properties": {f"a{i}": {}}, "required": [f"a{i}"]} for i in range(12)]},
        ('{"a1": 1}',),
    ),
    "many dependencies": ({"dependentRequired": {f"a{i}": [f"b{i}"] for i in range(9)}}, ('{"a1": 1, "b1": 2}',)),
    "a count of names": (
        {
            "type": "object",
            "properties": _numbered(14, lambda i: {}),
            "additionalProperties": False,
            "minProperties": 7,
        },
        ('{"k0": 1,',),
    ),
    "contains in sixteen": (
        {"type": "array", "maxItems": 16, "contains": {"type": "object", "required": ["a"]}},
        ("[1,2,",),
    ),
    "orders of five": (
        {"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", "c", "d", "e"]}},
        ('["b","a",',),
    ),
    "deep lists": (_nested(62, {"type": "null"}, lambda s: {"type": "array", "items": s}), ("[" * 62,)),
    "deep objects": (
        _nested(30, {"type": "null"}, lambda s: {"type": "object", "properties": {"a": s}, "required": ["a"]}),
        ('{"a": ' * 30,),
    ),
    "any value": ({}, ("[" * 400, '{"a":' * 400, '"' + "\\" * 300, "1" * 900, '["a",' * 200)),
    "long names": ({"type": "object", "properties": {"n" * 5000 + str(i): {} for i in range(20)}}, ('{"' + "n" * 400,)),
}


def hostile_grammars() -> Iterator[tuple[str, Hostile]]:
    for name, (pattern, texts) in _REGEXES.items():
        yield f"regex: {name}", Hostile(RegexSpec(pattern), texts)
        quoted = tuple(f'"{text}' for text in texts)
        schema = {"type": "string", "pattern": f"^(?:{pattern})$"}
        yield f"pattern: {name}", Hostile(JsonSchemaSpec(json.dumps(schema).encode()), quoted)
    for name, (grammar, texts) in _LARKS.items():
        yield f"lark: {name}", Hostile(LarkSpec(grammar), texts)
    for name, (schema, texts) in _SCHEMAS.items():
        yield f"schema: {name}", Hostile(JsonSchemaSpec(json.dumps(schema).encode()), texts)
    yield (
        "choice: twenty thousand",
        Hostile(ChoiceSpec(tuple(f"choice {i * 7919}" for i in range(15000))), ("choice 79",)),
    )
    yield "choice: one letter each", Hostile(ChoiceSpec(tuple(chr(0x4E00 + i) for i in range(20000))), ("漢",))
    yield "choice: nested prefixes", Hostile(ChoiceSpec(tuple("a" * i for i in range(1, 700))), ("a" * 600,))
    tags = tuple(StructuralTag(f"<t{i}>", b'{"type":"object"}', f"</t{i}>") for i in range(300))
    yield "tags: three hundred", Hostile(StructuralTagSpec(tags, ("<t",)), ("text <t77>{}</t77> more " * 8,))
    many = tuple(StructuralTag(f"<{i}>", b"{}", "") for i in range(200))
    yield (
        "tags: two hundred triggers",
        Hostile(StructuralTagSpec(many, tuple(f"<{i}>" for i in range(200))), ("a < b <7>{} <199>[] " * 8,)),
    )
