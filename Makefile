# Every target sets up what it needs by itself; `make help` lists them.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

# Tests and benchmarks start ktrainer over and over: without bytecode each start would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
VENV := .venv/.installed

# Arguments for pytest, for example: make unit ARGS="-k workqueue -x"
ARGS ?=

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: venv
venv: $(VENV) ## Make .venv with the locked packages and ktrainer itself

$(VENV): requirements/dev.txt pyproject.toml hack/venv
	@hack/venv


.PHONY: test
test: lint unit ## Run all that needs no cluster: lint, types, layers, locks, unit tests

.PHONY: lint
lint: $(VENV) ## Check style, types, layers, locks, licences and generated files
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python hack/lock.py check
	$(BIN)/python hack/sbom.py --check
	$(BIN)/python hack/gen_facts.py --check
	$(BIN)/python hack/gen_crds.py --check
	$(BIN)/python hack/gen_webhooks.py --check
	$(BIN)/python hack/gen_rbac.py --check
	$(BIN)/python hack/gen_docs.py --check

.PHONY: unit
unit: $(VENV) ## Run the unit tests, with coverage of src
	$(BIN)/pytest --numprocesses=auto --cov --cov-report=term $(ARGS)

# The properties at their full case counts take minutes each.
.PHONY: properties
properties: $(VENV) ## Run the property tests at their full case counts
	HYPOTHESIS_PROFILE=ci $(BIN)/pytest -m hypothesis --numprocesses=auto --timeout=3600 $(ARGS)

# Measured on the event loop: debug mode and coverage would count against it.
.PHONY: faults
faults: $(VENV) controlplane ## Break things on a real control plane and measure (ONLY=T07 for one, FULL=1 for hours)
	$(BIN)/pytest test/faults -o asyncio_debug=false --timeout=7200 $(if $(ONLY),-k $(ONLY)) $(ARGS)

# All of them together make use of all rights that the manager has; some of them need not.
.PHONY: e2e
e2e: $(VENV) controlplane ## Run the end-to-end tests on a real control plane (needs Go once)
	KTRAINER_E2E_COMPLETE=$(if $(ARGS),,1) $(BIN)/pytest test/e2e --timeout=180 $(ARGS)


.PHONY: run
run: $(VENV) controlplane ## Show ktrainer at work: a cluster on loopback, the manager, a TrainJob of each shipped runtime
	@hack/run $(ARGS)


.PHONY: fmt
fmt: $(VENV) ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: generate
generate: $(VENV) ## Write the generated files anew
	$(BIN)/python hack/gen_facts.py
	$(BIN)/python hack/gen_crds.py
	$(BIN)/python hack/gen_webhooks.py
	$(BIN)/python hack/gen_rbac.py
	$(BIN)/python hack/gen_docs.py

.PHONY: lock
lock: $(VENV) ## Renew the locked versions under requirements/
	$(BIN)/python hack/lock.py renew

.PHONY: sbom
sbom: $(VENV) ## Write dist/ktrainer.cdx.json: the packages of the image and their licences
	@mkdir -p dist
	$(BIN)/python hack/sbom.py > dist/ktrainer.cdx.json

# Not part of `make test`: it asks a database of advisories, whose answer changes without a change of ours.
.PHONY: audit
audit: $(VENV) ## Ask whether vulnerabilities are known of the packages of the image (needs the internet)
	$(BIN)/uv tool run pip-audit --strict --require-hashes --disable-pip --requirement requirements/manager.txt

.PHONY: controlplane
controlplane: $(VENV) ## Build the real control plane into the user's cache (about 12 minutes once)
	@PYTHONPATH=hack $(BIN)/python -m controlplane

.PHONY: clean
clean: ## Remove what the other targets made in this checkout (the control plane stays in the user's cache)
	rm -rf .venv .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist
	find src hack test -name __pycache__ -type d -prune -exec rm -rf {} +
