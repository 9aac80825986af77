"""The controller kit: what turns changes in a cluster into calls of a reconciler, and keeps that going for months.

Speaks the words of controller-runtime and knows nothing of training.
"""
