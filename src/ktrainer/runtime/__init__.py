"""The two runtimes: from a TrainJob and the runtime that it refers to, to the objects that it needs.

`runtime` drives the Framework that it is given; the template's merge, the snapshot and the checks are pure functions
beside it.
"""
