"""docs/metrics.md tells of every metric of the manager, and of no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ktrainer.api.configuration import Configuration, LeaderElection
from ktrainer.api.gates import Gate
from ktrainer.app.manager import ProcessPlan, build_manager
from ktrainer.client.config.config import ConnectionConfig

if TYPE_CHECKING:
    from prometheus_client import Metric

TEXT = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) ?\| (.*) \|$", re.MULTILINE)
USUAL = ("process_", "python_")
"""What every Python program has; the page names them together."""


class Row(NamedTuple):
    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


def documented() -> list[Row]:
    return [
        Row(name, type_, tuple(re.findall(r"`(\w+)`", labels)), meaning)
        for name, type_, labels, meaning in ROW.findall(TEXT)
    ]


def row_of(metric: Metric) -> Row:
    labels = {label for sample in metric.samples for label in sample.labels} - {"le"}
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    return Row(name, metric.type, tuple(sorted(labels)), metric.documentation)


@pytest.fixture
async def metrics() -> list[Metric]:
    """What a manager with everything switched on measures."""
    configuration = Configuration(leader_election=LeaderElection(leader_elect=True))
    operator = await build_manager(ConnectionConfig("http://127.0.0.1:1"), ProcessPlan(configuration, frozenset(Gate)))
    found = [metric for metric in operator.registry.collect() if not metric.name.startswith(USUAL)]
    await operator.connection.close()
    return found


async def test_the_page_should_have_a_row_for_every_metric_and_no_other(metrics: list[Metric]) -> None:
    assert sorted(documented()) == sorted(map(row_of, metrics))


async def test_all_series_should_exist_from_the_start(metrics: list[Metric]) -> None:
    assert [metric.name for metric in metrics if not metric.samples] == []


def test_the_text_should_speak_of_metrics_that_exist() -> None:
    names = {row.name for row in documented()}
    prose = TEXT.partition("\n## ")[0]
    spoken = set(re.findall(r"\b(?:ktrainer|reflector|leader|webhook|controller|workqueue)_\w+", prose))
    assert {name for name in spoken if not name.endswith("_")} <= names
