import orjson
import pytest

from ktrainer.kube import fields
from ktrainer.kube.errors import error_of
from ktrainer.kube.fields import Path
from ktrainer.kube.identity import ObjectKey
from ktrainer.statusserver import refusal
from ktrainer.statusserver.refusal import Refusal

KEY = ObjectKey("team-a", "demo")


@pytest.mark.parametrize(
    "refused, code, reason",
    [
        (refusal.forbidden("no"), 403, "Forbidden"),
        (refusal.not_found("no"), 404, "NotFound"),
        (refusal.no_such_trainjob(KEY), 404, "NotFound"),
        (refusal.finished(KEY), 409, "Conflict"),
        (refusal.too_large(5), 413, "RequestEntityTooLarge"),
        (refusal.invalid([fields.required(Path("a"))]), 422, "Invalid"),
        (refusal.too_many("slowly", 2.1), 429, "TooManyRequests"),
        (refusal.failed("oh"), 500, "InternalError"),
    ],
)
def test_a_refusal_should_be_what_clients_of_an_api_server_understand(refused: Refusal, code: int, reason: str) -> None:
    error = error_of(refused.code, refused.body())
    assert (error.code, error.reason, error.message) == (code, reason, str(refused))


@pytest.mark.parametrize("seconds, told", [(2.1, 3), (2, 2), (0.1, 1), (-1, 1)])
def test_how_long_to_wait_should_be_told_in_whole_seconds(seconds: float, told: int) -> None:
    refused = refusal.too_many("slowly", seconds)
    assert refused.retry_after == told
    assert orjson.loads(refused.body())["details"] == {"retryAfterSeconds": told}
