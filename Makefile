# Two commands for users: `make demo` and `make test`; for developers also `make quick`, `make coverage`, `make docs`, `make house`, `make bench`, `make report`, `make mutants`, `make fuzz` and `make release`.
# Everything they need is set up in .venv on the first run.
SHELL := /bin/bash
.DELETE_ON_ERROR:
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# Workers, and the hundreds of processes that tests start, load compiled modules instead of compiling each one again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test tests quick coverage docs house bench report mutants fuzz release lint style types format requirements clean
demo: $(VENV)/.demo
	@$(BIN)/python -m linker.demo.run

# mypy uses one core for minutes if it has no cache, so it runs next to the tests.
test: style
	@$(MAKE) --no-print-directory -j2 types tests

tests:
	@$(BIN)/python -m pytest -n $(or $(WORKERS),3) --dist worksteal

# Lint and the tests of what changed, within two minutes; BASE=main for all that a branch changed.
quick: lint
	@$(BIN)/python -m tests.quick

# All tests, and which share of each room's lines and branches they execute.
coverage: $(VENV)/.dev
	@$(BIN)/python -m tests.coverage $(ARGS)

# The site, into build/site: strict, so a broken link fails, and without the network. `make test` builds it too (tests/site).
docs: $(VENV)/.dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

# How large everything is, counted from the files and their imports.
house: $(VENV)/.dev
	@$(BIN)/python -m tests.house

# One measurement, for example `make bench NAME=bm25 ARGS="--only descriptions"`; it writes benchmarks/results/NAME.json.
bench: $(VENV)/.dev
	@test -f "benchmarks/$(NAME).py" || { echo "error: NAME is one of:" $(patsubst benchmarks/%.py,%,$(filter-out %/__init__.py,$(wildcard benchmarks/*.py))) >&2; exit 1; }
	@$(BIN)/python -m benchmarks.$(NAME) $(ARGS)

# Every table and value of benchmarks/results in README.md and docs/.
report: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.report.readme

# Every mutant of tests/mutants/lists against the tests that guard its line; JOBS=2 for two at once.
mutants: $(VENV)/.dev
	@$(BIN)/python -m tests.mutants.run --jobs $(or $(JOBS),1)

# Every target for SECONDS, then the C parts under ASan and UBSan; inputs that fail are kept in tests/fuzz/crashes.
SECONDS ?= 60
SEED ?= 0
fuzz: $(VENV)/.dev
	@status=0; $(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) || status=1; \
	  $(BIN)/python -m tests.fuzz --sanitized --seconds $(SECONDS) --seed $(SEED) || status=1; exit $$status

# sdist, wheels, site and notes of the version in pyproject.toml, in build/release; prints the commands that publish them.
release: $(VENV)/.dev
	@.ci/release

lint: style types

style: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev
	@$(BIN)/mypy

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

$(BIN)/uv: requirements/bootstrap.txt
	@test -n "$(PYTHON)" || { echo "error: no Python >= 3.11 found; install it, or run: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "error: $(PYTHON) cannot make virtual environments; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@touch $@

# dev is a superset of demo, so either order of the two commands ends well.
$(VENV)/.demo $(VENV)/.dev: $(VENV)/.%: requirements/%.txt pyproject.toml setup.py $(wildcard indexes/kernels/*.c) | $(BIN)/uv
	@echo "setting up $(VENV) from requirements/$*.txt (about 2.5 GB the first time, most of it PyTorch)" >&2
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install -q --require-hashes -r requirements/$*.txt
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip uninstall -q linker 2>/dev/null || true # its name until 0.1
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install -q --no-deps --no-build-isolation -e .
	@touch $@

# Pins and hashes; no registry address is written.
requirements: | $(BIN)/uv
	@cd requirements && echo uv | ../$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header - -o bootstrap.txt
	@cd requirements && echo setuptools | ../$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header - -o build.txt
	@for e in demo dev; do $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --extra $$e pyproject.toml -o requirements/$$e.txt; done
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra serve --extra cpu --extra onnx --extra elastic --extra rank pyproject.toml -o requirements/serve.txt

clean:
	rm -rf $(VENV) build dist *.egg-info demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis
