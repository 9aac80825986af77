"""Where a server of ours listens, as a field of the configuration."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from ktrainer.machinery.serving.address import parse_address


def _check(text: str) -> str:
    try:
        parse_address(text)
    except ValueError:
        raise PydanticCustomError("address", "must be host:port, :port, or 0 to switch the server off")
    return text


Address: TypeAlias = Annotated[str, AfterValidator(_check)]
"""The type of an address field; it stays the text that it was."""
