"""The commands `render` and `validate`."""

from __future__ import annotations

import sys
from io import StringIO
from typing import TYPE_CHECKING, Final

import orjson

from ktrainer.app.documents import DocumentReader, Unreachable, run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.render import is_runtime, is_trainjob, render, validate
from ktrainer.app.training import build_training
from ktrainer.cli.input import InputError, read_documents
from ktrainer.cli.order import ordered
from ktrainer.cli.output import write_output
from ktrainer.framework.dependencies import Dependencies
from ktrainer.runtime.yamlwriter import to_yaml

if TYPE_CHECKING:
    import argparse

    from ktrainer.app.documents import Document
    from ktrainer.app.render import Rendering
    from ktrainer.framework.reader import Reader
    from ktrainer.kube.jsonvalue import JsonObject

OK: Final = 0
FINDINGS: Final = 1
UNUSABLE: Final = 2
UNREACHABLE: Final = 3


def run(arguments: argparse.Namespace) -> int:
    """Run one of the two commands; return its exit code."""
    if sys.stderr is None:
        # What is said to nobody would go into the output otherwise.
        sys.stderr = StringIO()
    try:
        documents = read_documents(arguments.files)
    except InputError as error:
        _tell(f"ktrainer: {error}")
        return UNUSABLE
    is_render = arguments.command == "render"
    if not any(is_trainjob(each) or (not is_render and is_runtime(each)) for each in documents):
        wanted = "TrainJob" if is_render else "TrainJob or runtime"
        _tell(f"ktrainer: there is no {wanted} in {', '.join(arguments.files)}")
        return UNUSABLE
    try:
        rendering = _work(documents, arguments)
    except Unreachable as error:
        _tell(f"ktrainer: the cluster cannot be asked: {error} (--offline goes by the files alone)")
        return UNREACHABLE
    _report(rendering)
    if is_render and not write_output(_formatted(rendering.objects, arguments.output)):
        return UNUSABLE
    return FINDINGS if rendering.has_errors else OK


def _work(documents: list[Document], arguments: argparse.Namespace) -> Rendering:
    reader = DocumentReader(documents, arguments.namespace)
    if arguments.offline:
        return run_now(_command(reader, documents, arguments))
    # What follows loads an event loop and an HTTP client, which files do not need.
    import asyncio

    from ktrainer.app.clusterreader import ClusterReader
    from ktrainer.app.logging import configure_warnings

    configure_warnings()

    async def work() -> Rendering:
        cluster = ClusterReader(reader, arguments.kubeconfig, arguments.context)
        try:
            return await _command(cluster, documents, arguments)
        finally:
            await cluster.close()

    return asyncio.run(work())


async def _command(reader: Reader, documents: list[Document], arguments: argparse.Namespace) -> Rendering:
    dependencies = Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys)
    command = render if arguments.command == "render" else validate
    return await command(documents, build_training(dependencies), arguments.namespace)


def _report(rendering: Rendering) -> None:
    for report in rendering.reports:
        for warning in report.warnings:
            _tell(f"{report.document}: warning: {warning}")
        for error in report.errors:
            _tell(f"{report.document}: {error}")


def _tell(text: str) -> None:
    """Say it on one line that a terminal only shows: names, keys and answers may hold breaks, and what controls it."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    print(text, file=sys.stderr)


def _formatted(objects: list[JsonObject], output: str) -> str:
    shown = [ordered(each) for each in objects]
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": shown}
        return orjson.dumps(listed, option=orjson.OPT_INDENT_2).decode() + "\n"
    return "---\n".join(map(to_yaml, shown))
