from typing import Any

import pytest

from ktrainer.framework.nodes import NodeBounds, node_bounds_of
from support.training import blueprint, runtime


@pytest.mark.parametrize(
    ("policy", "bounds"),
    [
        pytest.param({"minNodes": 2, "maxNodes": 4}, NodeBounds(2, 4), id="both"),
        pytest.param({"minNodes": 3}, NodeBounds(3, 3), id="least only"),
        pytest.param({"maxNodes": 3}, NodeBounds(1, 3), id="most only"),
        pytest.param({}, NodeBounds(1, 1), id="none"),
    ],
)
def test_bounds_should_be_complete(policy: dict[str, Any], bounds: NodeBounds) -> None:
    policies = {"torch": {"elasticPolicy": policy}}
    assert node_bounds_of(blueprint(runtime(mlPolicy=policies)).ml_policy) == bounds


def test_a_runtime_that_is_not_elastic_should_have_no_bounds() -> None:
    assert node_bounds_of(blueprint(runtime(mlPolicy={"torch": {}})).ml_policy) is None
    assert node_bounds_of(blueprint(runtime(mlPolicy={"jax": {}})).ml_policy) is None
    assert node_bounds_of(None) is None


def test_bounds_should_contain_their_ends() -> None:
    assert [count in NodeBounds(2, 4) for count in range(1, 6)] == [False, True, True, True, False]
    assert str(NodeBounds(2, 4)) == "2:4"
