from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.machinery.admission.hook import AdmissionResponse, Hook, allowed, denied
from ktrainer.machinery.admission.review import (
    MAX_WARNING_CHARS,
    MAX_WARNINGS,
    BadReview,
    decode_review,
    encode_review,
    find_flaw,
    tidy,
    uid_of,
)
from support.cases import cases
from support.jsonvalues import VALUES
from support.reviews import accept, review


async def never(_: object) -> AdmissionResponse:
    raise NotImplementedError


VALIDATING = Hook("/validate", never, is_mutating=False)
MUTATING = Hook("/mutate", never, is_mutating=True)
PATCHED = AdmissionResponse(is_allowed=True, patch=({"op": "remove", "path": "/a"},))


def test_a_question_should_be_decoded() -> None:
    request = decode_review(review("u-7", object={"a": [1]}))
    assert (request.uid, request.object, request.user_info.username) == ("u-7", b'{"a":[1]}', "me")


@pytest.mark.parametrize(
    "body, uid",
    [
        pytest.param(b"", "", id="empty"),
        pytest.param(b"{", "", id="cut off"),
        pytest.param(b"\xff\xfe", "", id="not text"),
        pytest.param(b"[]", "", id="not an object"),
        pytest.param(b"{}", "", id="nothing in it"),
        pytest.param(b'{"request":null}', "", id="null"),
        pytest.param(b'{"request":{"uid":"u-1"}}', "u-1", id="only a uid"),
        pytest.param(review(uid=""), "", id="empty uid"),
        pytest.param(review(namespace=5), "u-1", id="wrong type"),
        pytest.param(review(operation="PONDER"), "u-1", id="unknown operation"),
        pytest.param(review().replace(b"/v1", b"/v1beta1", 1), "u-1", id="old version"),
        pytest.param(review().replace(b"AdmissionReview", b"Review", 1), "u-1", id="another kind"),
        pytest.param(review(object=1).replace(b'"object":1', b'"object":NaN'), "", id="not a number"),
        pytest.param(
            review(object=1).replace(b'"object":1', b'"object":' + b"[" * 50_000 + b"]" * 50_000), "", id="too deep"
        ),
    ],
)
def test_garbage_should_be_told_apart_and_its_uid_saved_where_possible(body: bytes, uid: str) -> None:
    with pytest.raises(BadReview):
        decode_review(body)
    assert uid_of(body) == uid


@settings(max_examples=cases(4_000))
@given(VALUES | st.fixed_dictionaries({"request": VALUES}))
def test_no_document_should_raise_anything_else(document: Any) -> None:
    body = orjson.dumps(document)
    with pytest.raises(BadReview):
        decode_review(body)
    assert isinstance(uid_of(body), str)


def test_the_reason_for_refusing_a_review_should_not_repeat_much_of_it() -> None:
    with pytest.raises(BadReview) as caught:
        decode_review(review(operation="x" * 10_000))
    assert len(str(caught.value)) < 300


def test_an_answer_should_be_what_an_api_server_takes() -> None:
    assert "status" not in accept(encode_review("u", allowed()), "u", is_mutating=False)
    no = accept(encode_review("u", denied("because", code=422, reason="Invalid")), "u", is_mutating=False)
    assert no["status"] == {"status": "Failure", "code": 422, "reason": "Invalid", "message": "because"}
    changed = accept(encode_review("u", PATCHED), "u", is_mutating=True)
    assert changed["patch"] == [{"op": "remove", "path": "/a"}]


@pytest.mark.parametrize("code, sent", [(200, 400), (0, 400), (422, 422), (599, 599), (1000, 599)])
def test_a_refusal_should_never_look_like_anything_else(code: int, sent: int) -> None:
    no = accept(encode_review("u", denied("because", code=code)), "u", is_mutating=False)
    assert no["status"]["code"] == sent


def test_an_unchanged_object_should_have_no_patch() -> None:
    answer = accept(encode_review("u", AdmissionResponse(is_allowed=True, patch=())), "u", is_mutating=True)
    assert "patch" not in answer


@pytest.mark.parametrize(
    "hook, response, operation, is_sound",
    [
        pytest.param(VALIDATING, allowed(), "CREATE", True, id="plain"),
        pytest.param(MUTATING, PATCHED, "UPDATE", True, id="a patch of a mutating hook"),
        pytest.param(VALIDATING, PATCHED, "UPDATE", False, id="a patch of a validating hook"),
        pytest.param(MUTATING, PATCHED, "DELETE", False, id="a patch of what is deleted"),
        pytest.param(
            MUTATING,
            AdmissionResponse(is_allowed=False, patch=PATCHED.patch),
            "CREATE",
            False,
            id="both no and a patch",
        ),
        pytest.param(MUTATING, None, "CREATE", False, id="nothing"),
    ],
)
def test_flaws_should_be_found_before_the_api_server_finds_them(
    hook: Hook, response: Any, operation: str, is_sound: bool
) -> None:
    assert (find_flaw(response, hook, decode_review(review(operation=operation))) is None) is is_sound


@settings(max_examples=cases(2_000))
@given(st.lists(st.text(max_size=300), max_size=50))
def test_warnings_should_always_fit_a_header(warnings: list[str]) -> None:
    answer = encode_review("u", allowed(warnings=tuple(warnings)))
    accept(answer, "u", is_mutating=False)


@pytest.mark.parametrize(
    "warnings, lines",
    [
        pytest.param(("a", "b", "a"), ["a", "b"], id="each once"),
        pytest.param(("a\nb\tc",), ["a b c"], id="one line"),
        pytest.param(("\x1b[31mred\x00",), ["[31mred"], id="no escapes"),
        pytest.param(("\ud800ab",), ["ab"], id="no half characters"),
        pytest.param(("", " ", "\n"), [], id="no empty ones"),
        pytest.param(("x" * 121,), ["x" * 119 + "…"], id="cut"),
        pytest.param(("x" * MAX_WARNING_CHARS,), ["x" * MAX_WARNING_CHARS], id="just short enough"),
        pytest.param(tuple(map(str, range(99))), [str(i) for i in range(MAX_WARNINGS)], id="not too many"),
    ],
)
def test_warnings_should_be_tidied_up(warnings: tuple[str, ...], lines: list[str]) -> None:
    assert tidy(warnings) == lines
