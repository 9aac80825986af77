"""PyTorch: torchrun, TorchTune, and elastic training."""
