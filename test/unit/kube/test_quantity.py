from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.kube.quantity import Format, Quantity, QuantityError, canonical
from support.cases import cases

# What apimachinery makes of a text, as text=canonical; a line without "=" is a heading.
FACTS = """
    zero
        0=0 00=0 +0=0 -0=0 0.0=0 0.=0 .0=0 0n=0 0m=0 0k=0 0Ki=0 0Ei=0 0e5=0 0e-20=0 0.000Gi=0 -0Mi=0
    whole numbers
        1=1 01=1 +1=1 -1=-1 1.=1 1.0=1 1.000=1 10=10 100=100 999=999 1000=1k 1001=1001 1024=1024 10000=10k
        1000000=1M 1234567=1234567 1000000000=1G 1000000000000000000=1E
        9223372036854775807=9223372036854775807 9223372036854775808=9223372036854775808
        18446744073709551616=18446744073709551616
    fractions
        0.5=500m .5=500m +.5=500m -.5=-500m 0.50=500m 0.25=250m 0.1=100m 0.001=1m 0.0001=100u 0.000001=1u
        0.000000001=1n 0.0000000001=1n -0.0000000001=-1n 1.5=1500m 1.500=1500m 1.001=1001m 2.25=2250m
        0.333333333=333333333n 0.3333333333=333333334n 1234.5678=1234567800u
    parts
        1n=1n 999n=999n 1000n=1u 1000000n=1m 1000000000n=1 0.1n=1n 1.1n=2n -1.1n=-2n 1u=1u 1000u=1m
        1500u=1500u 0.5u=500n 0.0001u=1n 1m=1m 500m=500m 1000m=1 1500m=1500m 2000m=2 100000m=100 -1000m=-1
        0.5m=500u 0.1m=100u
    thousands
        1k=1k 10k=10k 100k=100k 1000k=1M 1024k=1024k 1.5k=1500 0.5k=500 0.001k=1 1M=1M 1000M=1G 1.25M=1250k
        1G=1G 1000G=1T 2.5G=2500M 1T=1T 1000T=1P 1P=1P 1000P=1E 1E=1E 999E=999E 0.5E=500P
        12.345678901234567890E=12345678901234567890
    kibi
        1Ki=1Ki 2Ki=2Ki 512Ki=512Ki 1000Ki=1000Ki 1023Ki=1023Ki 1024Ki=1Mi 1025Ki=1025Ki 1536Ki=1536Ki
        2048Ki=2Mi 1048576Ki=1Gi 1.5Ki=1536 0.5Ki=512 0.25Ki=256 0.1Ki=102400m 0.001Ki=1024m 0.0001Ki=102400u
        0.9765625Ki=1k
        1.0001Ki=1024102400u -1Ki=-1Ki -0.5Ki=-512 -1024Ki=-1Mi 001Ki=1Ki
    more binary
        1Mi=1Mi 100Mi=100Mi 1024Mi=1Gi 1536Mi=1536Mi 0.5Mi=512Ki 0.1Mi=104857600m 1.1Mi=1153433600m
        0.000001Mi=1048576u 1Gi=1Gi 0.5Gi=512Mi 1.5Gi=1536Mi 2.25Gi=2304Mi 1024Gi=1Ti 0.3Gi=322122547200m
        1Ti=1Ti 1.5Ti=1536Gi 1024Ti=1Pi 1Pi=1Pi 1024Pi=1Ei 0.9Pi=1013309916158361600m 1Ei=1Ei 7Ei=7Ei
        7.5Ei=7680Pi 8Ei=9223372036854775807 -8Ei=-9223372036854775807 9Ei=9223372036854775807
        1024Ei=9223372036854775807 0.1Ei=115292150460684697600m
    exponents
        1e0=1 1e1=10 1e2=100 1e3=1e3 1E3=1e3 1e+3=1e3 12e4=120e3 123e5=12300e3 1.5e3=1500 1e6=1e6 1e-1=100e-3
        1e-3=1e-3 5e-1=500e-3 1e-9=1e-9 1e-10=1e-9 1.5e-9=2e-9 -2e-3=-2e-3 1024e0=1024 1e18=1e18 1e21=1e21
        1E30=1e30 1000e-3=1 100e100=1e102 -1e-300=-1e-9 0.001e3=1 1e003=1e3
"""

PAIRS = [tuple(pair.split("=")) for pair in re.findall(r"\S+=\S+", FACTS)]

WHOLE = st.integers(-(10**20), 10**20)
FRACTION = st.sampled_from(["", "."]) | st.integers(0, 10**14).map(".{}".format)
SUFFIX = st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]) | st.integers(-40, 40).map(
    "e{}".format
)
TEXTS = st.builds("{}{}{}".format, WHOLE, FRACTION, SUFFIX)
QUANTITIES = TEXTS.map(Quantity.parse)


@pytest.mark.parametrize("text, expected", PAIRS)
def test_a_quantity_should_be_spelled_as_apimachinery_does(text: str, expected: str) -> None:
    assert canonical(text) == expected


def test_the_table_of_facts_should_be_read_whole() -> None:
    assert len(PAIRS) == 177


@pytest.mark.parametrize(
    "number, expected",
    [
        (0, "0"),
        (2, "2"),
        (-1000, "-1k"),
        (0.5, "500m"),
        (0.00005, "50u"),
        (1e16, "10P"),
        (1e22, "10e21"),
        (1e-7, "100e-9"),
    ],
)
def test_numbers_should_stand_in_for_quantities(number: float, expected: str) -> None:
    assert canonical(number) == expected


@pytest.mark.parametrize(
    "value, reason",
    [
        ("", "needs a number"),
        ("-", "needs a number"),
        (".", "needs a number"),
        ("Ki", "needs a number"),
        ("e5", "needs a number"),
        ("1K", "suffix"),
        ("1ki", "suffix"),
        ("1Gb", "suffix"),
        ("1e", "suffix"),
        ("1mm", "suffix"),
        ("1e+", "not a quantity"),
        ("1e1.5", "not a quantity"),
        ("1e5k", "not a quantity"),
        ("1.2.3", "not a quantity"),
        ("1,5", "not a quantity"),
        ("--1", "not a quantity"),
        ("1 Gi", "not a quantity"),
        (" 1", "not a quantity"),
        ("1\n", "not a quantity"),
        ("0x10", "not a quantity"),
        ("\u0661", "not a quantity"),
        ("1_000", "not a quantity"),
        ("1" * 256, "at most 255"),
        ("1e1001", "exponent"),
        ("1e-1001", "exponent"),
        ("1e" + "9" * 200, "exponent"),
        (True, "not True"),
        (float("nan"), "a quantity"),
        (float("inf"), "a quantity"),
    ],
)
def test_what_is_no_quantity_should_be_refused_with_a_reason(value: str | float, reason: str) -> None:
    with pytest.raises(QuantityError, match=reason):
        Quantity.parse(value)


def test_a_decimal_beyond_the_largest_suffix_should_keep_its_value() -> None:
    assert canonical("1000E") == "1000E"
    assert canonical("1234567E") == "1234567E"


@pytest.mark.parametrize(
    "text, expected", [("100m", 1), ("1", 1), ("1.000000001", 2), ("1Ki", 1024), ("-100m", -1), ("0", 0)]
)
def test_a_whole_value_should_be_rounded_away_from_zero(text: str, expected: int) -> None:
    assert Quantity.parse(text).value == expected


@pytest.mark.parametrize(
    "left, right, total, difference",
    [
        ("1Gi", "512Mi", "1536Mi", "512Mi"),
        ("500m", "0.5", "1", "0"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "0", "1Gi", "1Gi"),
        ("1Gi", "1G", "2073741824", "73741824"),
        ("1e3", "1Ki", "2024", "-24"),
        ("1Ki", "500m", "1024500m", "1023500m"),
        ("0.00048828125Ki", "1048575.5", "1048576", "-1048575"),
    ],
)
def test_sums_should_be_exact_and_keep_the_family_of_the_first(
    left: str, right: str, total: str, difference: str
) -> None:
    assert str(Quantity.parse(left) + Quantity.parse(right)) == total
    assert str(Quantity.parse(left) - Quantity.parse(right)) == difference


def test_a_multiple_should_be_exact() -> None:
    assert str(Quantity.parse("512Mi") * 4) == "2Gi"
    assert str(Quantity.parse("0.1") * 3) == "300m"
    assert Quantity.parse("1Gi") * 0 == Quantity()


def test_equality_should_look_at_the_value_only() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024") == Quantity.parse("1.024e3")
    assert hash(Quantity.parse("1Ki")) == hash(Quantity.parse("1024"))
    assert Quantity.parse("1Ki").format is Format.BINARY_SI
    assert Quantity.parse("1000Mi") < Quantity.parse("1Gi") <= Quantity.parse("1024Mi")


@settings(max_examples=cases(2_000))
@given(QUANTITIES)
def test_any_quantity_should_survive_its_spelling(quantity: Quantity) -> None:
    spelled = str(quantity)
    assert Quantity.parse(spelled) == quantity
    assert canonical(spelled) == spelled
    assert "." not in spelled


@settings(max_examples=cases(2_000))
@given(QUANTITIES, QUANTITIES)
def test_order_should_survive_spelling(left: Quantity, right: Quantity) -> None:
    assert (left < right) == (Quantity.parse(str(left)) < Quantity.parse(str(right)))
    assert (left + right) - right == left
