"""JobSet: the workload that a TrainJob becomes, and the source of its status."""
