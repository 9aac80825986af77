"""The judge of elections must itself be just: a test that finds no stray write must have been able to find one."""

import json
from pathlib import Path
from typing import Any

import pytest

from clusters.folder import Folder
from support.replica import Replica, Settings
from support.tenure import Tenure, strays, tenures_of
from support.trail import Trail, Write

NAMESPACE = "e2e-1"


def write(agent: str, at: float, code: int = 200) -> Write:
    return Write(agent, "patch", "configmaps", "one", code, at - 0.1, at, {})


TENURES = [Tenure("one", 10), Tenure("", 20), Tenure("two", 30)]


@pytest.mark.parametrize(
    "case, is_stray",
    [
        (write("one", 15), False),
        (write("one", 20.5), True),
        (write("one", 31), True),
        (write("one", 31, code=409), False),
        (write("two", 15), True),
        (write("two", 31), False),
        (write("two", 5), True),
    ],
)
def test_a_write_should_be_a_stray_unless_its_writer_led_when_it_was_answered(case: Write, is_stray: bool) -> None:
    assert strays(TENURES, [case]) == ([case] if is_stray else [])


def entry(verb: str, second: int, spec: dict[str, Any]) -> str:
    at = f"2026-01-01T00:00:{second:02}.000000Z"
    return json.dumps(
        {
            "stage": "ResponseComplete",
            "verb": verb,
            "userAgent": "ktrainer/0.1.0 (linux/amd64) kubernetes/unknown/leader-election",
            "objectRef": {"resource": "leases", "namespace": NAMESPACE, "name": "copier"},
            "responseStatus": {"code": 200},
            "requestReceivedTimestamp": at,
            "stageTimestamp": at,
            "responseObject": {"spec": spec},
        }
    )


def test_tenures_should_begin_when_the_lease_was_asked_for_and_end_with_its_release(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "cluster")
    folder.file("audit", "audit.log").touch()
    trail = Trail(folder, NAMESPACE)
    replica = Replica(Settings(tmp_path, NAMESPACE), tmp_path, "one")
    replica.agents.append("one-0")
    (tmp_path / "one-0.log").write_text('{"event": "waiting to become leader", "identity": "host_1"}\n')
    claim = {"holderIdentity": "host_1", "acquireTime": "2026-01-01T00:00:04.500000Z"}
    other = {"holderIdentity": "host_2", "acquireTime": "2026-01-01T00:00:20.000000Z"}
    lines = [
        entry("create", 5, claim),
        entry("update", 7, claim),
        entry("update", 9, {"holderIdentity": ""}),
        entry("update", 21, other),
        entry("delete", 30, other),
    ]
    folder.file("audit", "audit.log").write_text("\n".join(lines) + "\n")
    seen = tenures_of(trail, [replica])
    assert [each.agent for each in seen] == ["one-0", "", "host_2", ""]
    assert [each.began_at - seen[0].began_at for each in seen] == [0, 4.5, 15.5, 25.5]
