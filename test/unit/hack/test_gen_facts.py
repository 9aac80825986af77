from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

import gen_facts
from ktrainer.kube.facts import ObjectType

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PREFIX = "io.k8s.api.core.v1."

DEFINITIONS: dict[str, Any] = {
    f"{PREFIX}Root": {
        "description": "dropped",
        "type": ["object", "null"],
        "required": ["items"],
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "items": {
                "description": "dropped",
                "type": "array",
                "items": {"$ref": f"#/$defs/{PREFIX}Item"},
                "x-kubernetes-patch-strategy": "merge,retainKeys",
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "limits": {
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/io.k8s.apimachinery.pkg.api.resource.Quantity"},
            },
            "time": {"$ref": f"#/$defs/{PREFIX}Time"},
            "kind": {"type": ["string", "null"], "enum": ["Root"]},
        },
    },
    f"{PREFIX}Item": {"properties": {"root": {"$ref": f"#/$defs/{PREFIX}Root"}, "name": {"type": "string"}}},
    f"{PREFIX}Time": {"type": ["string", "null"], "format": "date-time"},
    f"{PREFIX}Unreachable": {"properties": {}},
}

FACTS = {
    "core.v1.Item": {"fields": {"root": {"ref": "core.v1.Root"}, "name": {"type": "string"}}},
    "core.v1.Root": {
        "fields": {
            "items": {
                "type": "array",
                "items": {"ref": "core.v1.Item"},
                "strategies": ["merge", "retainKeys"],
                "mergeKey": "name",
                "listType": "map",
                "mapKeys": ["name"],
            },
            "limits": {"type": "map", "values": {"type": "quantity"}},
            "time": {"type": "string", "format": "date-time"},
            "kind": {"type": "string", "enum": ["Root"]},
        },
        "required": ["items"],
        "mapType": "atomic",
    },
}


def test_facts_should_hold_what_the_roots_lead_to_and_no_prose() -> None:
    assert gen_facts.build_facts(DEFINITIONS, (f"{PREFIX}Root",)) == FACTS


def test_the_file_should_have_one_type_a_line_and_suit_its_reader() -> None:
    text = gen_facts.render(FACTS)
    assert len(text.splitlines()) == 2 + len(FACTS)
    assert json.loads(text) == FACTS
    assert json.loads(msgspec.json.encode(msgspec.json.decode(text, type=dict[str, ObjectType]))) == FACTS


def test_the_check_should_notice_a_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gen_facts, "FILE", tmp_path / "facts.json")
    monkeypatch.setattr(gen_facts, "load_definitions", lambda: DEFINITIONS)
    monkeypatch.setattr(gen_facts, "ROOTS", (f"{PREFIX}Root",))
    assert gen_facts.main(["--check"]) == 1
    assert "make generate" in capsys.readouterr().err
    assert gen_facts.main([]) == 0
    assert gen_facts.main(["--check"]) == 0
    (tmp_path / "facts.json").write_text("{}")
    assert gen_facts.main(["--check"]) == 1


def test_the_committed_file_should_be_current() -> None:
    assert gen_facts.main(["--check"]) == 0
