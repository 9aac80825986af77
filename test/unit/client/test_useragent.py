import re

from ktrainer import __version__
from ktrainer.client.useragent import user_agent


def test_the_user_agent_should_name_program_system_and_component() -> None:
    pattern = rf"ktrainer/{re.escape(__version__)} \([a-z]+/[a-z0-9_]+\) kubernetes/unknown/leader-election"
    assert re.fullmatch(pattern, user_agent("leader-election"))
    assert user_agent("é\r\nX: y").endswith("/-X-y")
