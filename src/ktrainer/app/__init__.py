"""The composition root: the only place that constructs concrete classes and wires them."""
