"""What plugins get from outside: a look at the cluster, the makers of keys, and where the manager is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.framework.reader import Reader


@dataclass(frozen=True, slots=True)
class SshKeys:
    """A pair of keys for SSH."""

    private: str
    """PEM, of the type EC PRIVATE KEY."""
    public: str
    """One line of an authorized_keys file."""


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """A pair of keys for ZeroMQ's CURVE, each in the spelling Z85."""

    public: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What the factory of a plugin is handed."""

    reader: Reader
    make_ssh_keys: Callable[[], SshKeys]
    make_curve_keys: Callable[[], CurveKeys]
    namespace: str = "kubeflow-system"
    """The namespace of the manager."""
    service: str = "kubeflow-trainer-controller-manager"
    """The Service in front of the manager."""
    status_port: int = 10443
    """The port of that Service which takes reports of progress."""
    certificate_secret: str = "kubeflow-trainer-webhook-cert"  # noqa: S105 - the name of a Secret
    """The Secret with the certificate of that Service, and with its authority's."""
