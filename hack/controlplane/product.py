"""The products that the control plane is made of: the Go module of each, its programs, and the manifests it ships."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

MODULES = Path(__file__).resolve().parent

KUBERNETES = "v1.36.3"
JOBSET = "v0.12.0"
ORIGINAL = "v2.3.0"

_VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Product:
    """One product, pinned by `go.mod` and `go.sum` in the folder of its name."""

    name: str
    module: str
    """Path of the Go module that the product is published as."""
    programs: dict[str, str] = field(default_factory=dict)
    """Program → the Go package it is built from; "." is our own main package."""
    stamps: dict[str, str] = field(default_factory=dict)
    """Go variable → value set while linking: the version that the program tells."""
    manifests: dict[str, str] = field(default_factory=dict)
    """Name under which a manifest is kept → its path inside the module."""

    @property
    def folder(self) -> Path:
        """The folder with the product's go.mod."""
        return MODULES / self.name

    def digest(self) -> str:
        """Return what identifies everything built from this product: its pins and its recipe."""
        content = hashlib.sha256(repr(self).encode())
        for path in sorted(self.folder.glob("*.go")) + sorted(self.folder.glob("go.*")):
            content.update(path.read_bytes())
        return content.hexdigest()[:16]


PRODUCTS = (
    Product("etcd", "go.etcd.io/etcd/server/v3", programs={"etcd": "."}),
    Product(
        "kubernetes",
        "k8s.io/kubernetes",
        programs={
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        },
        stamps={
            f"{_VERSION}.gitVersion": KUBERNETES,
            f"{_VERSION}.gitMajor": "1",
            f"{_VERSION}.gitMinor": KUBERNETES.split(".")[1],
            f"{_VERSION}.gitTreeState": "clean",
        },
    ),
    Product(
        "jobset",
        "sigs.k8s.io/jobset",
        programs={"jobset-controller": "sigs.k8s.io/jobset"},
        stamps={"sigs.k8s.io/jobset/pkg/version.GitVersion": JOBSET},
        manifests={
            "crd.yaml": "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
            "webhooks.yaml": "config/components/webhook/manifests.yaml",
            "role.yaml": "config/components/rbac/role.yaml",
        },
    ),
    Product(
        "kwok",
        "sigs.k8s.io/kwok",
        programs={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        manifests={"role.yaml": "kustomize/rbac/role.yaml"},
    ),
    Product(
        "original",
        "github.com/kubeflow/trainer/v2",
        programs={"trainer-controller-manager": "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"},
        manifests={
            "crd-trainjobs.yaml": "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml",
            "crd-trainingruntimes.yaml": "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml",
            "crd-clustertrainingruntimes.yaml": "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
            "webhooks.yaml": "manifests/base/webhook/manifests.yaml",
            "role.yaml": "manifests/base/rbac/role.yaml",
        },
    ),
    Product(
        "schedulerplugins",
        "sigs.k8s.io/scheduler-plugins",
        manifests={"crd.yaml": "manifests/coscheduling/crd.yaml"},
    ),
    Product(
        "volcano",
        "volcano.sh/volcano",
        manifests={"crd.yaml": "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml"},
    ),
)
