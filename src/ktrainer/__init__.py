"""ktrainer: the control plane of Kubeflow Trainer V2, written in Python."""

__version__ = "0.1.0"
