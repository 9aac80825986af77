"""The manager's shipped roles in a cluster without an installation: the kubeconfig `trainer` is of its account."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from clusters.api import Api
from clusters.wait import wait_for
from deployment.account import NAMESPACE
from support.manifests import CONFIG, objects_of
from support.rbacproof import shipped_rights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.api import Object
    from clusters.folder import Folder
    from support.rbacproof import Right

_GROUP = "/apis/rbac.authorization.k8s.io/v1"
_OWN = f"{_GROUP}/namespaces/{NAMESPACE}"
_COLLECTIONS = {
    "ClusterRole": f"{_GROUP}/clusterroles",
    "ClusterRoleBinding": f"{_GROUP}/clusterrolebindings",
    "Role": f"{_OWN}/roles",
    "RoleBinding": f"{_OWN}/rolebindings",
}


@contextmanager
def installed_roles(cluster: Folder, api: Api) -> Iterator[None]:
    """Install the roles and wait until they count; take away at the end what was not there before."""
    roles = [each for each in objects_of(CONFIG / "rbac") if each["kind"] in _COLLECTIONS]
    missing = [path_of(each) for each in roles if not api.exists(path_of(each))]
    for role in roles:
        api.apply(path_of(role), role)
    try:
        with closing(Api(cluster.kubeconfig("trainer"))) as trainer:
            assert wait_for(lambda: all(_is_allowed(trainer, right) for right in shipped_rights()), 20)
        yield
    finally:
        for path in missing:
            api.delete(path)


def path_of(role: Object) -> str:
    """Where a role or a binding is."""
    return f"{_COLLECTIONS[role['kind']]}/{role['metadata']['name']}"


def _is_allowed(api: Api, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": right.verb,
        "namespace": right.namespace,
        "name": right.names[0] if right.names else "",
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])
