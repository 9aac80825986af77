import pytest
from structlog.testing import capture_logs

from ktrainer.api.configuration import Health
from ktrainer.app.probes import decide_endpoints


@pytest.mark.parametrize(
    ("readiness", "liveness", "served", "warned"),
    [
        pytest.param("readyz", "healthz", ("readyz", "healthz"), [], id="the defaults"),
        pytest.param("/ready", "live", ("ready", "live"), [], id="others"),
        pytest.param("a/b", "live", ("readyz", "live"), ["health.readinessEndpointName"], id="no part of a path"),
        pytest.param("/healthz", "healthz", ("readyz", "healthz"), ["health.livenessEndpointName"], id="twice"),
        pytest.param("x", "readyz", ("x", "readyz"), [], id="a default of the other"),
    ],
)
def test_a_name_that_cannot_be_served_should_give_way_to_the_default_with_a_warning(
    readiness: str, liveness: str, served: tuple[str, str], warned: list[str]
) -> None:
    with capture_logs() as logs:
        found = decide_endpoints(Health(readiness_endpoint_name=readiness, liveness_endpoint_name=liveness))
    assert found == served
    assert [entry["field"] for entry in logs] == warned
