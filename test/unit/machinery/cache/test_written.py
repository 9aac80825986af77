import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.cache.written import WrittenVersions
from support.cases import cases

JOBS = Resource("example.com", "v1", "Job", "jobs", namespaced=True)
SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
OWNER = ObjectKey("ns", "owner")


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def written(registry: CollectorRegistry) -> WrittenVersions:
    return WrittenVersions(registry, [JOBS, SECRETS])


def stale(written: WrittenVersions, jobs: str = "", secrets: str = "", uid: str = "uid") -> Resource | None:
    return written.stale(OWNER, uid, {JOBS: jobs, SECRETS: secrets}.__getitem__)


def test_an_owner_should_be_stale_until_the_cache_has_seen_its_newest_write(written: WrittenVersions) -> None:
    written.record(OWNER, "uid", JOBS, "99")
    written.record(OWNER, "uid", JOBS, "100")
    assert stale(written, "99") == JOBS
    assert stale(written, "100") is None
    assert len(written) == 0
    assert stale(written, "1") is None


def test_writes_that_are_answered_out_of_order_should_both_count(written: WrittenVersions) -> None:
    written.record(OWNER, "uid", JOBS, "100")
    written.record(OWNER, "uid", JOBS, "98")
    assert stale(written, "99") == JOBS
    assert stale(written, "100") is None


def test_every_resource_should_count_by_itself(written: WrittenVersions) -> None:
    written.record(OWNER, "uid", JOBS, "100")
    written.record(OWNER, "uid", SECRETS, "200")
    assert stale(written, "100", "199") == SECRETS
    assert stale(written, "1", "200") is None, "the cache of jobs was seen to be complete before"


def test_other_owners_should_not_have_to_wait(written: WrittenVersions) -> None:
    written.record(OWNER, "uid", JOBS, "100")
    assert stale(written, "1", uid="another") is None
    assert written.stale(ObjectKey("ns", "other"), "uid", lambda _: "1") is None
    assert stale(written, "1") == JOBS


@pytest.mark.parametrize("version", ["", "0", "odd", "0100", "-1"])
def test_versions_that_cannot_be_compared_should_not_block(written: WrittenVersions, version: str) -> None:
    written.record(OWNER, "uid", JOBS, version)
    written.record(OWNER, "uid", SECRETS, "100")
    assert stale(written, "1", version) is None
    assert len(written) == 0


def test_an_owner_that_is_gone_should_be_forgotten(written: WrittenVersions) -> None:
    written.record(OWNER, "uid", JOBS, "100")
    written.forget_owner(OWNER)
    written.forget_owner(OWNER)
    assert stale(written, "1") is None
    assert len(written) == 0


def test_an_owner_should_be_forgotten_with_all_that_had_its_name_before(written: WrittenVersions) -> None:
    written.record(OWNER, "the first", JOBS, "100")
    written.record(OWNER, "uid", JOBS, "100")
    written.record(ObjectKey("ns", "other"), "uid", JOBS, "100")
    written.forget_owner(OWNER)
    assert stale(written, "1") is stale(written, "1", uid="the first") is None
    assert written.stale(ObjectKey("ns", "other"), "uid", lambda _: "1") == JOBS
    assert len(written) == 1


def test_owners_of_one_name_should_be_settled_each_for_itself(written: WrittenVersions) -> None:
    written.record(OWNER, "the first", JOBS, "100")
    written.record(OWNER, "uid", JOBS, "200")
    assert stale(written, "100") == JOBS
    assert stale(written, "100", uid="the first") is None
    assert stale(written, "100") == JOBS
    written.relisted(JOBS, written.mark())
    assert len(written) == 0


def test_a_quorum_read_should_settle_what_was_written_before_it_began(written: WrittenVersions) -> None:
    written.record(OWNER, "uid", JOBS, "100")
    written.record(OWNER, "uid", SECRETS, "101")
    mark = written.mark()
    written.relisted(JOBS, mark)
    assert stale(written, "1", "1") == SECRETS


def test_a_quorum_read_should_not_settle_what_was_written_while_it_was_under_way(written: WrittenVersions) -> None:
    mark = written.mark()
    written.record(OWNER, "uid", JOBS, "100")
    written.relisted(JOBS, mark)
    assert stale(written, "99") == JOBS


def test_a_restored_server_should_not_make_anybody_wait_for_ever(written: WrittenVersions) -> None:
    written.record(OWNER, "uid", JOBS, "5000")
    mark = written.mark()
    written.record(OWNER, "uid", JOBS, "4001")
    written.relisted(JOBS, mark)
    assert stale(written, "4000") == JOBS
    assert stale(written, "4001") is None


def test_skips_should_be_counted(written: WrittenVersions, registry: CollectorRegistry) -> None:
    def skips() -> float | None:
        return registry.get_sample_value("stale_sync_skips_total", {"group": "example.com", "resource": "jobs"})

    assert skips() == 0
    written.record(OWNER, "uid", JOBS, "100")
    stale(written, "99")
    stale(written, "100")
    assert skips() == 1


WRITES = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([JOBS, SECRETS]), st.integers(1, 20)))


@settings(max_examples=cases(2_000))
@given(WRITES, st.integers(1, 20), st.integers(1, 20))
def test_an_owner_should_be_stale_exactly_when_a_write_is_missing(
    writes: list[tuple[str, Resource, int]], jobs: int, secrets: int
) -> None:
    written = WrittenVersions(CollectorRegistry(), [JOBS, SECRETS])
    for name, resource, version in writes:
        written.record(ObjectKey("ns", name), name, resource, str(version))
    seen = {JOBS: jobs, SECRETS: secrets}
    for name in ("a", "b"):
        missing = {resource for owner, resource, version in writes if owner == name and version > seen[resource]}
        found = written.stale(ObjectKey("ns", name), name, lambda resource: str(seen[resource]))
        assert found in missing if missing else found is None
        assert written.stale(ObjectKey("ns", name), name, lambda _: "20") is None
    assert len(written) == 0
