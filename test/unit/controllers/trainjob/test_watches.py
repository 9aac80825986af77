"""Who is woken by a change of something else, by the controller as a whole."""

import msgspec
import orjson

from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, VOLCANO_POD_GROUPS
from ktrainer.controllers.trainjob.watches import may_have_ended
from ktrainer.kube.errors import ApiError
from ktrainer.kube.meta import ObjectMeta
from ktrainer.machinery.cache.objects import CachedObject
from support.apiserver import Call
from support.modelevents import api_error
from support.training import runtime
from support.trainingcluster import TrainingCluster, controller, idle_cluster, training_cluster
from support.virtualtime import VirtualClock

ABSENT = api_error(404, "NotFound")


def set_volcano(cluster: TrainingCluster, *, is_there: bool) -> None:
    """Install Volcano's CRD, or remove it."""

    def refuse(call: Call) -> ApiError | None:
        return ABSENT if call.resource == VOLCANO_POD_GROUPS and not is_there else None

    cluster.server.stores[VOLCANO_POD_GROUPS].outage = None if is_there else ABSENT
    cluster.server.refuse = refuse


def test_the_end_of_a_jobset_should_be_seen_at_a_glance() -> None:
    running, ended = (
        CachedObject(metadata=ObjectMeta(name="train"), status=msgspec.Raw(orjson.dumps(status)))
        for status in ({"restarts": 1}, {"restarts": 1, "terminalState": "Failed"})
    )
    assert not may_have_ended(running)
    assert may_have_ended(ended)


async def test_a_kind_that_arrives_should_wake_those_who_wait_for_it(virtual_clock: VirtualClock) -> None:
    async with idle_cluster(virtual_clock, runtime(podGroupPolicy={"volcano": {}})) as cluster:
        set_volcano(cluster, is_there=False)
        async with controller(cluster.server, virtual_clock):
            cluster.submit()
            # By then it was tried after some forty and eighty seconds, and the next time is after a hundred and sixty.
            await cluster.wait(100)
            assert cluster.server.find(VOLCANO_POD_GROUPS, "demo") is None
            set_volcano(cluster, is_there=True)
            await cluster.wait(13)
            assert cluster.server.find(VOLCANO_POD_GROUPS, "demo") is not None
            assert cluster.conditions()["ResourcesReady"] == "True Applied"


async def test_a_runtime_that_comes_back_should_wake_those_who_have_lost_their_snapshot(
    virtual_clock: VirtualClock,
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(1)
        cluster.server.remove(CONFIG_MAPS, "demo-runtime-snapshot")
        cluster.server.remove(CLUSTER_TRAINING_RUNTIMES, "rt")
        await cluster.wait(2)
        assert cluster.conditions()["ResourcesReady"] == "False RuntimeNotFound"
        cluster.server.create(CLUSTER_TRAINING_RUNTIMES, runtime(mlPolicy={"numNodes": 2, "torch": {}}))
        await cluster.wait(1)
        assert cluster.conditions()["ResourcesReady"] == "True Applied"
