"""Names, paths and settings of a Flux job."""

from __future__ import annotations

from typing import Final

INSTALLER: Final = "flux-installer"
"""The init container that brings Flux into the pod; the name is reserved."""

SPACK_VOLUME: Final = "spack-install"
SPACK_PATH: Final = "/opt/software"
INSTALL_VOLUME: Final = "flux-install"
INSTALL_PATH: Final = "/mnt/flux"
CONFIG_PATH: Final = "/etc/flux-config"
MEMORY_VOLUME: Final = "shared-memory"
MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 - where shared memory is, in the pod
CURVE_VOLUME: Final = "flux-curve"
CURVE_PATH: Final = "/curve"
CURVE_FILE: Final = "curve.cert"

VIEW_IMAGE: Final = "FLUX_VIEW_IMAGE"
NETWORK_DEVICE: Final = "FLUX_NETWORK_DEVICE"
QUEUE_POLICY: Final = "FLUX_QUEUE_POLICY"
DEFAULTS: Final = {
    VIEW_IMAGE: "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
    NETWORK_DEVICE: "eth0",
    QUEUE_POLICY: "fcfs",
}
"""Settings that the environment of the training container may change."""


def config_map_name_of(trainjob: str) -> str:
    """The name of the ConfigMap with the scripts, and of the volume that brings them into the pods."""
    return f"{trainjob}-flux-entrypoint"


def secret_name_of(trainjob: str) -> str:
    """The name of the Secret with the certificate."""
    return f"{trainjob}-flux-curve"
