"""Label, annotation and finalizer keys that several packages or other software rely on.

A key that one plugin alone uses lives with that plugin.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

GROUP: Final = "trainer.kubeflow.org"

TRAINJOB_NAME: Final = f"{GROUP}/trainjob-name"
"""On every object that we make: the TrainJob's name. Our watches select on it."""

ANCESTOR: Final = f"{GROUP}/trainjob-ancestor-step"
"""On a replicated job's job template: the part that the job has in training, an `Ancestor`."""

SUPPORT: Final = f"{GROUP}/support"
"""On a runtime: `DEPRECATED` makes the webhook warn."""
DEPRECATED: Final = "deprecated"

WEBHOOK_VALIDATION: Final = f"{GROUP}/webhook-validation"
"""On a runtime: `DISABLED` keeps the webhook away, so that a runtime installs before the webhook is up."""
DISABLED: Final = "disabled"

RUNTIME_IN_USE: Final = f"{GROUP}/resource-in-use"
"""The finalizer on a runtime that an unfinished TrainJob refers to."""

JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
"""On pods and Jobs, set by JobSet: the name of the JobSet, which is that of the TrainJob."""
JOBSET_UID: Final = "jobset.sigs.k8s.io/jobset-uid"
"""On pods and Jobs, set by JobSet: the uid of the JobSet."""
REPLICATED_JOB_NAME: Final = "jobset.sigs.k8s.io/replicatedjob-name"
"""On pods and Jobs, set by JobSet: the replicated job that they belong to."""
JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""On pods, as label and annotation, set by the Job controller: the index of the pod in its Job."""


class Ancestor(StrEnum):
    """The values of `ANCESTOR`; also the names of the initializers' jobs and containers."""

    DATASET_INITIALIZER = "dataset-initializer"
    MODEL_INITIALIZER = "model-initializer"
    TRAINER = "trainer"
