"""Kubernetes clusters on loopback: etcd, the Kubernetes control plane and the JobSet controller as plain processes.

Nothing but files under one folder and processes that carry its name belongs to a cluster, so that several can run side
by side and `down` can always find everything.
"""
