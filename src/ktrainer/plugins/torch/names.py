"""The variables by which torchrun is told what its command line could say; see torch.distributed.argparse_util."""

from __future__ import annotations

from typing import Final

NNODES: Final = "PET_NNODES"
NPROC_PER_NODE: Final = "PET_NPROC_PER_NODE"
NODE_RANK: Final = "PET_NODE_RANK"
MASTER_ADDR: Final = "PET_MASTER_ADDR"
MASTER_PORT: Final = "PET_MASTER_PORT"

RDZV_BACKEND: Final = "PET_RDZV_BACKEND"
RDZV_ENDPOINT: Final = "PET_RDZV_ENDPOINT"
RDZV_ID: Final = "PET_RDZV_ID"
MAX_RESTARTS: Final = "PET_MAX_RESTARTS"

RESERVED: Final = frozenset({NNODES, NPROC_PER_NODE, NODE_RANK, MASTER_ADDR, MASTER_PORT})
RESERVED_ELASTIC: Final = RESERVED | {RDZV_BACKEND, RDZV_ENDPOINT, RDZV_ID, MAX_RESTARTS}
