"""The parts of hack/gen_crds.py: schemas of our models, schemas of foreign types, and the CRDs around them."""
