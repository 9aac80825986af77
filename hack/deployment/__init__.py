"""ktrainer's own deployment on a cluster of hack/clusters: config/default, the manager's pods played by processes.

What is installed is what users install; only addresses that a cluster without a pod network cannot reach are rewritten.
"""
