"""What the server's answer to a write tells."""

import pytest

from ktrainer.machinery.cache.answer import version_in

DEPTH = 5_000


def test_the_version_should_be_read() -> None:
    assert version_in(b'{"kind":"TrainJob","metadata":{"name":"a","resourceVersion":"7"},"spec":{}}') == "7"


def test_the_version_should_be_read_of_an_object_that_no_decoder_can_read() -> None:
    deep = b'{"a":' * DEPTH + b"1" + b"}" * DEPTH
    assert version_in(b'{"spec":' + deep + b',"metadata":{"resourceVersion":"7"},"status":{}}') == "7"


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"metadata":7}', b'{"a":' * DEPTH])
def test_what_is_no_object_should_be_an_error_of_its_value(answer: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        version_in(answer)
