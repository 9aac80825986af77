"""What a new cluster holds besides what Kubernetes makes itself: CRDs, webhooks, roles and fake nodes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import yaml

from clusters.kubeconfig import IDENTITIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clusters.api import Api, Object
    from clusters.plan import Plan
    from controlplane.build import Assets

_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}
_RBAC = "rbac.authorization.k8s.io"
_ORIGINAL = "kubeflow-trainer-controller-manager"
_ORIGINAL_WEBHOOKS = {
    "MutatingWebhookConfiguration": "defaulter.trainer.kubeflow.org",
    "ValidatingWebhookConfiguration": "validator.trainer.kubeflow.org",
}
_JOBSET_POD_LABEL = "jobset.sigs.k8s.io/jobset-name"


def path_of(item: Object) -> str:
    """Return the address of an object of one of the kinds that are installed here."""
    return f"{_COLLECTIONS[item['kind']]}/{item['metadata']['name']}"


def apply_all(api: Api, items: list[Object]) -> None:
    """Apply objects in the order given."""
    for item in items:
        api.apply(path_of(item), item)


def crds_of(assets: Assets, *, with_original: bool) -> list[Object]:
    """Return the CRDs of the cluster: JobSet, both PodGroups, and the original's three where it runs."""
    products = ["jobset", "schedulerplugins", "volcano", *(["original"] if with_original else [])]
    return [crd for product in products for crd in product_crds_of(assets, product)]


def product_crds_of(assets: Assets, product: str) -> list[Object]:
    """Return the CRDs that one product ships."""
    paths = [path for name, path in assets.manifests[product].items() if name.startswith("crd")]
    return [document for path in paths for document in _documents(path)]


def established(api: Api, crds: list[Object]) -> bool:
    """Return whether the API server serves all of the CRDs."""
    return all(
        any(each["type"] == "Established" and each["status"] == "True" for each in _conditions(api.get(path_of(crd))))
        for crd in crds
    )


def _conditions(item: Object) -> list[Object]:
    return item.get("status", {}).get("conditions") or []


def objects_of(plan: Plan, assets: Assets, authority: bytes) -> list[Object]:
    """Return everything else: namespaces, roles and bindings, webhook configurations and nodes."""
    items: list[Object] = [_namespace("jobset-system"), _namespace("kubeflow-system")]
    items += _role(assets.manifests["jobset"]["role.yaml"], "jobset-controller")
    items += _person_roles()
    if plan.nodes:
        items += _role(assets.manifests["kwok"]["role.yaml"], "kwok")
        items += [_node(number) for number in range(plan.nodes)]
    items += _webhooks("jobset", plan, assets, authority)
    if "original" in plan.webhooks:
        items += original_of(plan, assets, authority)
    return items


def original_of(plan: Plan, assets: Assets, authority: bytes) -> list[Object]:
    """Return what the original needs besides its CRDs, under the names of its own installation.

    They are ktrainer's names, too: whichever is installed later takes the place of the other.
    """
    items = _role(assets.manifests["original"]["role.yaml"], "trainer")
    for item in items:
        item["metadata"] = {"name": _ORIGINAL}
    items[-1]["roleRef"]["name"] = _ORIGINAL
    webhooks = _webhooks("original", plan, assets, authority)
    for item in webhooks:
        item["metadata"] = {"name": _ORIGINAL_WEBHOOKS[item["kind"]]}
    return [*items, *webhooks]


def _documents(path: Path) -> Iterator[Object]:
    # The C loader: the pod template in these CRDs takes the Python one seconds.
    yield from (document for document in yaml.load_all(path.read_bytes(), yaml.CSafeLoader) if document)


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _role(manifest: Path, identity: str) -> list[Object]:
    """Return the cluster role that a product ships, under a name of its own, bound to its identity."""
    roles = [document for document in _documents(manifest) if document["kind"] == "ClusterRole"]
    items: list[Object] = []
    for role in roles:
        name = f"{identity}-{role['metadata']['name']}"
        items.append({**role, "metadata": {"name": name}})
        items.append(_binding(name, IDENTITIES[identity][0]))
    return items


def _binding(role: str, user: str) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{role}-of-{user.rpartition(':')[2]}"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
    }


def _person_roles() -> list[Object]:
    """Return the rights of `user`: to edit what is in namespaces, JobSets and PodGroups included."""
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "edit-jobs", "labels": {f"{_RBAC}/aggregate-to-edit": "true"}},
            "rules": [
                {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": ["*"]},
                {
                    "apiGroups": ["scheduling.x-k8s.io", "scheduling.volcano.sh"],
                    "resources": ["podgroups"],
                    "verbs": ["*"],
                },
            ],
        },
        _binding("edit", IDENTITIES["user"][0]),
    ]


def _node(number: int) -> Object:
    name = f"node-{number}"
    capacity = {"cpu": "1000", "memory": "4Ti", "pods": "10000", "nvidia.com/gpu": "64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def _webhooks(product: str, plan: Plan, assets: Assets, authority: bytes) -> list[Object]:
    """Return a product's webhook configurations, calling it on loopback instead of through a Service."""
    items = []
    for document in _documents(assets.manifests[product]["webhooks.yaml"]):
        webhooks = [_webhook(webhook, plan.webhooks[product], authority) for webhook in document["webhooks"]]
        name = f"{product}-{document['metadata']['name']}"
        items.append({**document, "metadata": {"name": name}, "webhooks": webhooks})
    return items


def _webhook(webhook: Object, url: str, authority: bytes) -> Object:
    path = webhook["clientConfig"]["service"]["path"]
    client: dict[str, Any] = {"url": f"{url}{path}", "caBundle": base64.b64encode(authority).decode()}
    changed = {**webhook, "clientConfig": client}
    if any("pods" in rule["resources"] for rule in webhook["rules"]):
        # As JobSet's own installation does: other pods must not depend on it.
        changed["objectSelector"] = {"matchExpressions": [{"key": _JOBSET_POD_LABEL, "operator": "Exists"}]}
    return changed
