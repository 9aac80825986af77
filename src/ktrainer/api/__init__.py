"""Our kinds as pydantic models, the manager's configuration, label keys, and what we know of the kinds that we write.

The CRDs under config/crd are generated from these models by hack/gen_crds.py: a limit, a default or a rule is stated
here and nowhere else.
"""
