import subprocess
import sys

import pytest

from ktrainer.client.config.lightimport import import_light

_LIGHT = """
import sys
from ktrainer.client.config.lightimport import import_light
before = len(sys.modules)
provider, kube_config = import_light(
    "kubernetes_asyncio.config.exec_provider", "kubernetes_asyncio.config.kube_config"
)
node = kube_config.ConfigNode("exec", {"apiVersion": "v1", "command": "x", "env": [{"name": "A", "value": "b"}]})
made = provider.ExecProvider(node)
assert (made.args, made.env["A"], made.api_version) == (["x"], "b", "v1")
assert len(sys.modules) - before < 500, len(sys.modules) - before
assert not [name for name in sys.modules if name.startswith("kubernetes_asyncio")]
"""

_FULL_AFTERWARDS = """
import kubernetes_asyncio.client
from kubernetes_asyncio.config.exec_provider import ExecProvider
assert kubernetes_asyncio.client.V1Pod(kind="Pod").kind == "Pod"
assert ExecProvider is not provider.ExecProvider
"""

_FULL_BEFORE = """
import kubernetes_asyncio
from ktrainer.client.config.lightimport import import_light
[provider] = import_light("kubernetes_asyncio.config.exec_provider")
assert provider is kubernetes_asyncio.config.exec_provider
"""

_OTHER_LAYOUT = """
import sys
from ktrainer.client.config.lightimport import import_light
# A module that needs more of the package than the stand-ins have.
[module] = import_light("kubernetes_asyncio.config.incluster_config", "kubernetes_asyncio.watch.watch")[:1]
assert module.SERVICE_HOST_ENV_NAME == "KUBERNETES_SERVICE_HOST"
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(_LIGHT, id="light"),
        pytest.param(_LIGHT + _FULL_AFTERWARDS, id="in full afterwards"),
        pytest.param(_FULL_BEFORE, id="in full before"),
        pytest.param(_OTHER_LAYOUT, id="another layout"),
    ],
)
def test_single_modules_should_be_imported(script: str) -> None:
    # In a process of its own: what is imported cannot be taken back.
    subprocess.run([sys.executable, "-W", "error::ImportWarning", "-c", script], check=True, timeout=60)


def test_what_does_not_exist_should_be_an_import_error() -> None:
    with pytest.raises(ImportError):
        import_light("kubernetes_asyncio.no_such_module")
