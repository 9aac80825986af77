"""The vocabulary of Kubernetes as pure data and functions.

Identity, metadata, errors, conditions, quantities, field errors, OpenAPI facts, merges and patches. Nothing here does
I/O, waits, reads a clock or knows of training; inputs are never changed.
"""
