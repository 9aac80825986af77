"""Replicas of `support.hooked`, with what they share: a Secret, and a webhook configuration that names each of them."""

from __future__ import annotations

import base64
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.api import Refused
from clusters.ports import free_ports
from support.hooked import HOST, PATH
from support.replica import Replica, Settings, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clusters.api import Api, Object

_HOOKED = (sys.executable, "-P", str(Path(__file__).with_name("hooked.py")))
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@dataclass(frozen=True)
class Lifetimes:
    """How long certificates live, and how long before their end they are replaced; in seconds."""

    authority: int = 86_400
    serving: int = 43_200
    look_ahead: int = 3_600


@dataclass(frozen=True)
class _HookSettings(Settings):
    port: int = 0
    hooks: HookReplicas | None = None

    def arguments(self, agent: str) -> list[str]:
        assert self.hooks is not None
        texts = {
            "kubeconfig": self.kubeconfig,
            "namespace": self.namespace,
            "agent": agent,
            "port": self.port,
            "secret": self.hooks.secret,
            "configuration": self.hooks.configuration,
            "authority": self.hooks.lifetimes.authority,
            "serving": self.hooks.lifetimes.serving,
            "look-ahead": self.hooks.lifetimes.look_ahead,
        }
        return [f"--{name}={value}" for name, value in texts.items()]


class HookReplicas:
    """Several replicas; methods that ask the API server block."""

    def __init__(self, kubeconfig: Path, namespace: str, name: str, lifetimes: Lifetimes, count: int = 3) -> None:
        self.namespace = namespace
        self.lifetimes = lifetimes
        self.secret = name
        self.configuration = f"{namespace}-{name}"
        """Cluster-wide, so that its name says whose it is."""
        self.ports = free_ports(count)
        self._kubeconfig = kubeconfig
        self.replicas: list[Replica] = []

    @property
    def hook_names(self) -> list[str]:
        """The names of the webhooks in the configuration, one for each replica."""
        return [f"port-{port}.{self.configuration}.example" for port in self.ports]

    @property
    def agents(self) -> set[str]:
        """What all processes are called in the audit log."""
        return {agent for replica in self.replicas for agent in replica.agents}

    @property
    def secret_path(self) -> str:
        """Where the Secret is."""
        return f"/api/v1/namespaces/{self.namespace}/secrets/{self.secret}"

    @property
    def configuration_path(self) -> str:
        """Where the webhook configuration is."""
        return f"{_CONFIGURATIONS}/{self.configuration}"

    def bundles(self, api: Api) -> list[str]:
        """Return the authorities that the API server trusts, as PEM, for each of the replicas."""
        hooks = api.get(self.configuration_path)["webhooks"]
        return [base64.b64decode(each["clientConfig"].get("caBundle", "")).decode() for each in hooks]

    def stored(self, api: Api) -> dict[str, bytes]:
        """Return what is in the Secret; nothing where there is none."""
        try:
            data: dict[str, str] = api.get(self.secret_path).get("data") or {}
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return {}
        return {key: base64.b64decode(value) for key, value in data.items()}

    @asynccontextmanager
    async def running(self, api: Api, folder: Path) -> AsyncIterator[None]:
        """Start all at once, called for ConfigMaps of their namespace only; leave nothing behind but the Secret."""
        api.create(_CONFIGURATIONS, self._document())
        try:
            for number, port in enumerate(self.ports):
                settings = _HookSettings(self._kubeconfig, self.namespace, port=port, hooks=self)
                self.replicas.append(Replica(settings, folder, f"{self.secret}-{number}", _HOOKED))
            async with running(*self.replicas):
                yield
        finally:
            api.delete(self.configuration_path)

    def _document(self) -> Object:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
        hooks = [
            {
                "name": name,
                "clientConfig": {"url": f"https://{HOST}:{port}{PATH}"},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                # Failures are counted by who calls, and nobody else is to suffer from them.
                "failurePolicy": "Ignore",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
                "rules": [rule],
            }
            for name, port in zip(self.hook_names, self.ports, strict=True)
        ]
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.configuration},
            "webhooks": hooks,
        }
