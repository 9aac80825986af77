"""How each component is run: its command line, its configuration file, and where it tells that it is ready."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import yaml

from clusters import stages
from clusters.audit import POLICY
from clusters.ports import LOOPBACK
from clusters.processes import Component

if TYPE_CHECKING:
    from pathlib import Path

    from clusters.folder import Folder


def _flags(**values: object) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]


def etcd(folder: Folder, program: Path, port: int, peer_port: int) -> Component:
    """The store. It does not wait for the disk: a test cluster may lose its data with the machine."""
    client, peer = f"https://{LOOPBACK}:{port}", f"https://{LOOPBACK}:{peer_port}"
    pki = folder.file("pki", "etcd").parent
    flags = _flags(
        name="etcd",
        data_dir=folder.file("etcd"),
        listen_client_urls=client,
        advertise_client_urls=client,
        listen_peer_urls=peer,
        initial_advertise_peer_urls=peer,
        initial_cluster=f"etcd={peer}",
        cert_file=pki / "etcd.crt",
        key_file=pki / "etcd.key",
        trusted_ca_file=pki / "etcd-ca.crt",
        client_cert_auth="true",
        peer_cert_file=pki / "etcd.crt",
        peer_key_file=pki / "etcd.key",
        peer_trusted_ca_file=pki / "etcd-ca.crt",
        peer_client_cert_auth="true",
        unsafe_no_fsync="true",
        log_level="warn",
    )
    return Component("etcd", [str(program), *flags], f"{client}/health")


def api_server(folder: Folder, program: Path, port: int, etcd_port: int) -> Component:
    """The API server: RBAC, service-account tokens, and an audit log of every request."""
    policy = folder.file("audit", "policy.yaml")
    policy.write_text(yaml.safe_dump(POLICY))
    pki = folder.file("pki", "ca.crt").parent
    flags = _flags(
        etcd_servers=f"https://{LOOPBACK}:{etcd_port}",
        etcd_cafile=pki / "etcd-ca.crt",
        etcd_certfile=pki / "etcd-client.crt",
        etcd_keyfile=pki / "etcd-client.key",
        bind_address=LOOPBACK,
        advertise_address=LOOPBACK,
        # Its own address as an endpoint of the service "kubernetes" would be refused: it is a loopback address.
        endpoint_reconciler_type="none",
        secure_port=port,
        tls_cert_file=pki / "server.crt",
        tls_private_key_file=pki / "server.key",
        client_ca_file=pki / "ca.crt",
        authorization_mode="RBAC",
        # Stricter than most clusters, as some are: who sets blockOwnerDeletion must be allowed to finalise the owner.
        enable_admission_plugins="OwnerReferencesPermissionEnforcement",
        service_account_issuer="https://kubernetes.default.svc.cluster.local",
        service_account_key_file=pki / "sa.pub",
        service_account_signing_key_file=pki / "sa.key",
        service_cluster_ip_range="10.0.0.0/16",
        audit_policy_file=policy,
        audit_log_path=folder.file("audit", "audit.log"),
        # In megabytes. It is never begun anew: whoever judges by it must find all of it in one place.
        audit_log_maxsize=1_000_000,
        profiling="false",
    )
    return Component("kube-apiserver", [str(program), *flags], f"https://{LOOPBACK}:{port}/readyz")


def controller_manager(folder: Folder, program: Path, port: int) -> Component:
    """The controllers of Kubernetes itself, each with its own service account."""
    pki = folder.file("pki", "ca.crt").parent
    flags = _flags(
        service_account_private_key_file=pki / "sa.key",
        root_ca_file=pki / "ca.crt",
        use_service_account_credentials="true",
    )
    return _kubernetes_client(folder, "kube-controller-manager", program, port, flags)


def scheduler(folder: Folder, program: Path, port: int) -> Component:
    """The scheduler of Kubernetes."""
    return _kubernetes_client(folder, "kube-scheduler", program, port, [])


def _kubernetes_client(folder: Folder, name: str, program: Path, port: int, flags: list[str]) -> Component:
    kubeconfig = folder.kubeconfig(name)
    pki = folder.file("pki", "server.crt").parent
    common = _flags(
        kubeconfig=kubeconfig,
        authentication_kubeconfig=kubeconfig,
        authorization_kubeconfig=kubeconfig,
        bind_address=LOOPBACK,
        secure_port=port,
        tls_cert_file=pki / "server.crt",
        tls_private_key_file=pki / "server.key",
        leader_elect="false",
        profiling="false",
    )
    return Component(name, [str(program), *common, *flags], f"https://{LOOPBACK}:{port}/healthz")


def jobset(folder: Folder, program: Path, port: int, health_port: int) -> Component:
    """The JobSet controller with elastic JobSets switched on."""
    document: dict[str, Any] = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": LOOPBACK, "port": port},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 500, "burst": 500},
        "featureGates": {"ElasticJobSet": True},
    }
    return _controller_runtime(folder, "jobset-controller", program, document)


def original(folder: Folder, program: Path, port: int, health_port: int) -> Component:
    """The Go original's manager with its default limits, to compare ktrainer with."""
    document: dict[str, Any] = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": LOOPBACK, "port": port},
        "leaderElection": {"leaderElect": False},
        "certManagement": {"enable": False},
        "controller": {"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": 5}},
    }
    return _controller_runtime(folder, "trainer-controller-manager", program, document, identity="trainer")


def _controller_runtime(
    folder: Folder, name: str, program: Path, document: dict[str, Any], identity: str | None = None
) -> Component:
    config = folder.file(name, "config.yaml")
    config.write_text(yaml.safe_dump(document))
    # Such a program looks for its serving certificate below the temporary folder, whatever its configuration says.
    serving = folder.file(name, "tmp", "k8s-webhook-server", "serving-certs", "tls.crt")
    shutil.copyfile(folder.file("pki", "server.crt"), serving)
    shutil.copyfile(folder.file("pki", "server.key"), serving.with_name("tls.key"))
    flags = _flags(config=config, kubeconfig=folder.kubeconfig(identity or name))
    health = document["health"]["healthProbeBindAddress"]
    environment = {"TMPDIR": str(folder.file(name, "tmp", "x").parent)}
    return Component(name, [str(program), *flags], f"http://{health}/readyz", environment)


def kwok(folder: Folder, program: Path, port: int) -> Component:
    """The controller that plays the kubelets of the fake nodes."""
    config = folder.file("kwok", "config.yaml")
    config.write_text(stages.document())
    flags = _flags(
        kubeconfig=folder.kubeconfig("kwok"),
        config=config,
        manage_all_nodes="true",
        node_lease_duration_seconds=40,
        server_address=f"{LOOPBACK}:{port}",
        node_ip=LOOPBACK,
        cidr="10.1.0.0/16",
    )
    return Component("kwok", [str(program), *flags], f"http://{LOOPBACK}:{port}/healthz")
