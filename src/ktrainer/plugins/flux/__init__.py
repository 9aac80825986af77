"""Flux: a workload manager that is started inside the pods, and runs the training as its first job."""
