"""A small program of the kit that serves a webhook with certificates of its own; it allows everything.

Run it as a script, in several replicas that share a Secret; its log is JSON, a line each.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import structlog

from ktrainer.client.config.config import load_config
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Hook, allowed
from ktrainer.machinery.admission.server import ServerOptions
from ktrainer.machinery.certificates.cabundle import VALIDATING, Configuration
from ktrainer.machinery.certificates.pki import PkiPolicy
from ktrainer.machinery.operator import Operator, OperatorSettings
from ktrainer.machinery.servingcertificates import CertificateSettings, add_certificates
from ktrainer.machinery.webhooks import add_webhooks

HOST = "127.0.0.1"
PATH = "/allow"


@dataclass(frozen=True)
class Options:
    """What the program is told on its command line."""

    kubeconfig: Path
    namespace: str
    agent: str
    """Tells this process from all others in the audit log."""
    port: int
    secret: str
    configuration: str
    """The name of the ValidatingWebhookConfiguration."""
    authority: float
    """Seconds that an authority lives."""
    serving: float
    """Seconds that a serving certificate lives."""
    look_ahead: float
    """Seconds before its end that a certificate is replaced."""


async def allow(_: AdmissionRequest) -> AdmissionResponse:
    """Allow everything."""
    return allowed()


async def run(options: Options) -> None:
    """Serve until a signal comes."""
    operator = Operator(
        load_config(options.kubeconfig, None), OperatorSettings(options.agent, namespace=options.namespace)
    )
    policy = PkiPolicy(
        f"ca-{options.namespace}",
        (HOST,),
        authority_lifetime=timedelta(seconds=options.authority),
        serving_lifetime=timedelta(seconds=options.serving),
        look_ahead=timedelta(seconds=options.look_ahead),
    )
    settings = CertificateSettings(
        ObjectKey(options.namespace, options.secret), [Configuration(VALIDATING, options.configuration)], policy
    )
    hook, server = Hook(PATH, allow, is_mutating=False), ServerOptions(HOST, options.port, drain_seconds=0)
    add_webhooks(operator, add_certificates(operator, settings), [hook], server)
    await operator.run()


def _parse_options() -> Options:
    parser = argparse.ArgumentParser(description="Serve a webhook that allows everything.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--secret", required=True)
    parser.add_argument("--configuration", required=True)
    parser.add_argument("--authority", type=float, required=True, help="lifetime in seconds")
    parser.add_argument("--serving", type=float, required=True, help="lifetime in seconds")
    parser.add_argument("--look-ahead", type=float, required=True, help="seconds")
    return Options(**vars(parser.parse_args()))


if __name__ == "__main__":
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    )
    asyncio.run(run(_parse_options()))
