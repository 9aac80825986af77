"""The plugins that come with ktrainer, in the order in which they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.plugins.coscheduling import Coscheduling
from ktrainer.plugins.flux.plugin import Flux
from ktrainer.plugins.jax import Jax
from ktrainer.plugins.jobset.plugin import JobSet
from ktrainer.plugins.mpi.plugin import Mpi
from ktrainer.plugins.plainml import PlainML
from ktrainer.plugins.torch.plugin import Torch
from ktrainer.plugins.trainjobstatus import TrainJobStatusReporting
from ktrainer.plugins.volcano import Volcano
from ktrainer.plugins.xgboost import XGBoost

if TYPE_CHECKING:
    from ktrainer.framework.registry import Registry

REGISTRY: Final[Registry] = {
    "plainml": PlainML,
    "torch": Torch,
    "mpi": Mpi,
    "jax": Jax,
    "xgboost": XGBoost,
    "flux": Flux,
    "coscheduling": Coscheduling,
    "volcano": Volcano,
    "trainjobstatus": TrainJobStatusReporting,
    "jobset": JobSet,
}
