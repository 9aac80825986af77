from structlog.testing import capture_logs

from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.cache.delta import Skip
from ktrainer.machinery.cache.record import InformerRecord, SkipReason
from ktrainer.machinery.cache.reflector.skips import Skips


def test_a_skipped_object_should_be_counted_each_time_and_named_once() -> None:
    record = InformerRecord()
    skips = Skips("widgets", record)
    with capture_logs() as logs:
        for name in "aba":
            assert skips.skip(SkipReason.UNDECODABLE, ObjectKey("ns", name), "odd") == Skip(ObjectKey("ns", name))
        skips.skip(SkipReason.WRONG_KIND, None, "x" * 5000)
    assert (record.skips[SkipReason.UNDECODABLE], record.skips[SkipReason.WRONG_KIND]) == (3, 1)
    assert [(entry["key"], entry["reason"]) for entry in logs] == [
        ("ns/a", "undecodable"),
        ("ns/b", "undecodable"),
        (None, "wrong_kind"),
    ]
    assert len(logs[-1]["detail"]) == 200
