"""Kubernetes quantities such as 500m, 1.5Gi or 2e3: exact numbers with a canonical spelling.

A value is a whole number of nanos, so nothing is ever a float; what is finer is rounded away from zero. The spelling
keeps the family of suffixes that was parsed (1024Mi is 1Gi, 1000M is 1G).

Parity: k8s.io/apimachinery/pkg/api/resource, in values and in canonical form.
Departs: a number without any digit ("Ki", "-", read there as zero) is refused; numbers of absurd size are refused,
since they come from untrusted hands; a decimal above 999E keeps the suffix E, where Go drops the suffix and with it the
value; a spelling that Go echoes although it is not canonical ("1.500", "+1", "1E3") is made canonical.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Final

NANOS: Final = 10**9
"""How many nanos make one."""

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES: Final = ("", *_BINARY)

_BINARY_MAX: Final = (2**63 - 1) * NANOS
# Far beyond any resource, and small enough that neither arithmetic nor printing becomes a burden.
_MAX_LENGTH: Final = 255
_MAX_EXPONENT: Final = 1000

_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+)|([a-zA-Z]*))", re.ASCII)


class QuantityError(ValueError):
    """The text is no quantity."""


class Format(Enum):
    """The family of suffixes in which a quantity is written."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, order=True, slots=True)
class Quantity:
    """An exact number of nanos; equality and order look at the value only, so that 1Ki equals 1024."""

    nanos: int = 0
    format: Format = field(default=Format.DECIMAL_SI, compare=False)

    @classmethod
    def parse(cls, value: str | int | float) -> Quantity:
        """Read a quantity, or the number that JSON and YAML allow in its place; raises QuantityError."""
        if isinstance(value, bool):
            raise QuantityError(f"a quantity is a number, not {value}")
        return _parse(value if isinstance(value, str) else _spelled(value))

    @property
    def value(self) -> int:
        """The whole number, rounded away from zero: who asks for a bit of something gets one of it."""
        return _divide_away_from_zero(self.nanos, NANOS)

    def __str__(self) -> str:
        """The canonical spelling: no fraction, and the largest suffix that loses nothing."""
        if self.nanos == 0:
            return "0"
        if self.format is Format.BINARY_SI and abs(self.nanos) >= 1024 * NANOS and self.nanos % NANOS == 0:
            return _spell_binary(self.nanos // NANOS)
        return _spell_decimal(self.nanos, with_suffix=self.format is not Format.DECIMAL_EXPONENT)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, count: int) -> Quantity:
        return Quantity(self.nanos * count, self.format)


def canonical(value: str | int | float) -> str:
    """Spell a quantity canonically, as an API server would store it; raises QuantityError."""
    return str(Quantity.parse(value))


def _spelled(number: int | float) -> str:
    """A number as a JSON encoder of Go spells it: exponents are for the very small and very large, later than here."""
    text = repr(number)
    return format(Decimal(text), "f") if "e" in text and 1e-6 <= abs(number) < 1e21 else text


def _parse(text: str) -> Quantity:
    if len(text) > _MAX_LENGTH:
        raise QuantityError(f"a quantity has at most {_MAX_LENGTH} characters, not {len(text)}")
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityError(f"not a quantity: {text!r}")
    sign, whole, fraction, exponent, suffix = match.groups(default="")
    digits = whole + fraction
    if not digits:
        raise QuantityError(f"a quantity needs a number: {text!r}")
    mantissa = int(sign + digits)
    if exponent:
        power, format_ = int(exponent), Format.DECIMAL_EXPONENT
    elif suffix in _DECIMAL:
        power, format_ = _DECIMAL[suffix], Format.DECIMAL_SI
    elif suffix in _BINARY:
        power, format_ = 0, Format.BINARY_SI
        mantissa <<= _BINARY[suffix]
    else:
        raise QuantityError(f"not a suffix of a quantity: {suffix!r} in {text!r}")
    if abs(power) > _MAX_EXPONENT:
        raise QuantityError(f"the exponent of a quantity is at most {_MAX_EXPONENT}: {text!r}")
    return _limit(Quantity(_shift(mantissa, power - len(fraction) + 9), format_))


def _limit(quantity: Quantity) -> Quantity:
    if quantity.format is not Format.BINARY_SI:
        return quantity
    if 0 < abs(quantity.nanos) < NANOS:
        return Quantity(quantity.nanos, Format.DECIMAL_SI)
    return Quantity(max(-_BINARY_MAX, min(quantity.nanos, _BINARY_MAX)), Format.BINARY_SI)


def _shift(number: int, places: int) -> int:
    if places >= 0:
        return int(number * 10**places)
    return _divide_away_from_zero(number, 10**-places)


def _divide_away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number > 0 else number // divisor


def _spell_binary(number: int) -> str:
    times = 0
    while number % 1024 == 0 and times < len(_BINARY_SUFFIXES) - 1:
        number //= 1024
        times += 1
    return f"{number}{_BINARY_SUFFIXES[times]}"


def _spell_decimal(nanos: int, *, with_suffix: bool) -> str:
    number, exponent = nanos, -9
    while number % 1000 == 0 and not (with_suffix and exponent == 18):
        number //= 1000
        exponent += 3
    if with_suffix:
        return f"{number}{_DECIMAL_SUFFIX[exponent]}"
    return f"{number}e{exponent}" if exponent else str(number)
