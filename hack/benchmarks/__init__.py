"""Benchmarks of ktrainer on this machine: each figure is printed beside its target.

They measure; they are not tests. Run one at a time, on a machine that does nothing else.
"""
