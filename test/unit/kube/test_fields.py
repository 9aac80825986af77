from __future__ import annotations

import pytest

from ktrainer.kube import fields
from ktrainer.kube.fields import FieldError, Path
from ktrainer.kube.quantity import Quantity

A = Path("spec").child("a").index(0).child("b")


def test_a_path_should_read_as_in_kubernetes() -> None:
    assert str(A) == "spec.a[0].b"
    assert str(Path("spec").child("labels").key("foo/bar")) == "spec.labels[foo/bar]"
    assert str(Path().child("spec", "a")) == "spec.a"


@pytest.mark.parametrize(
    "error, expected",
    [
        (fields.invalid(A, "x", "must be y"), 'spec.a[0].b: Invalid value: "x": must be y'),
        (fields.invalid(A, 5, "must be 6"), "spec.a[0].b: Invalid value: 5: must be 6"),
        (fields.invalid(A, True, "no"), "spec.a[0].b: Invalid value: true: no"),
        (fields.invalid(A, None, "no"), "spec.a[0].b: Invalid value: null: no"),
        (fields.invalid(A, "", ""), 'spec.a[0].b: Invalid value: ""'),
        (
            fields.invalid(A, {"a": [1, "<é>&\u2028"]}, "no"),
            r'spec.a[0].b: Invalid value: {"a":[1,"\u003cé\u003e\u0026\u2028"]}: no',
        ),
        (fields.invalid(A, Quantity.parse("1000m"), "no"), 'spec.a[0].b: Invalid value: "1": no'),
        (fields.invalid(A, 2**70, "no"), f"spec.a[0].b: Invalid value: {2**70}: no"),
        (fields.required(A), "spec.a[0].b: Required value"),
        (fields.required(A, "set it"), "spec.a[0].b: Required value: set it"),
        (fields.forbidden(A, "not here"), "spec.a[0].b: Forbidden: not here"),
        (fields.not_found(A, "x"), 'spec.a[0].b: Not found: "x"'),
        (fields.duplicate(A, "x"), 'spec.a[0].b: Duplicate value: "x"'),
        (fields.not_supported(A, "x", ["b", "a"]), 'spec.a[0].b: Unsupported value: "x": supported values: "b", "a"'),
        (fields.not_supported(A, "x", []), 'spec.a[0].b: Unsupported value: "x"'),
        (fields.too_long(A, 63), "spec.a[0].b: Too long: may not be more than 63 bytes"),
        (fields.too_long(A, 1), "spec.a[0].b: Too long: may not be more than 1 byte"),
        (fields.too_many(A, 3, 2), "spec.a[0].b: Too many: 3: must have at most 2 items"),
        (fields.too_many(A, 3, 1), "spec.a[0].b: Too many: 3: must have at most 1 item"),
        (fields.forbidden(Path(), "not at all"), "Forbidden: not at all"),
    ],
)
def test_an_error_should_read_as_in_kubernetes(error: FieldError, expected: str) -> None:
    assert str(error) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ('say "hi" \\', r'"say \"hi\" \\"'),
        ("a\n\t\r\a\b\f\v", r'"a\n\t\r\a\b\f\v"'),
        ("\x00\x1f\x7f", r'"\x00\x1f\x7f"'),
        ("é中😀<>&", '"é中😀<>&"'),
        ("\u00a0\u200b\U000e0001", r'"\u00a0\u200b\U000e0001"'),
    ],
)
def test_a_text_should_be_quoted_as_go_does(text: str, expected: str) -> None:
    assert fields.invalid(A, text, "").body == f"Invalid value: {expected}"


def test_errors_should_become_one_message() -> None:
    one, two = fields.required(A), fields.duplicate(A, "x")
    assert fields.message_of([]) == ""
    assert fields.message_of([one, one]) == "spec.a[0].b: Required value"
    assert fields.message_of([one, two, one]) == '[spec.a[0].b: Required value, spec.a[0].b: Duplicate value: "x"]'
