# make demo        solve the examples and show what was written   make lint    format, lint and types, as CI runs them
# make docs        the site, into build/docs; needs no network    make man     manual pages, into build/man
# make pages       the same with the site of the matrix in it     make dist    a source distribution and a wheel, into dist
# make test        the tests to run before a commit, in minutes   make bench   whole processes beside uv and pip-tools
# make test-all    every test that can run on this machine        make fuzz    damaged files for every reader; FUZZ_FLAGS="--seconds 600"
#
# Needs Python 3.11 or newer; everything else comes from the package index that pip is configured for.

# The first that runs and is new enough: a name alone says little, a version manager's stand-ins are found and then refuse.
ifndef PYTHON
PYTHON := $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do \
  "$$name" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && command -v "$$name" && break; done)
endif
VENV ?= .venv
# The tests start hundreds of processes of the program: each would compile every module again where bytecode may not be kept.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
# Two at a time, because half of the time is waiting for processes.
PYTEST_FLAGS ?= -n 2 --dist worksteal
DEMO := build/demo
# Strict: a warning, such as a link that leads nowhere, is an error.
SPHINX = PYTHONPATH=.:docs $(BIN)/python -m sphinx --quiet --nitpicky --fail-on-warning --keep-going

.PHONY: demo test test-all lint fuzz bench bench-hard docs pages man dist clean

demo: $(VENV)/.installed
	@PROVISION="$$(cd "$(BIN)" && pwd)/provision" DEMO=$(DEMO) sh examples/demo.sh

# Of the laws a twentieth of the examples, of the rest what is not marked `slow`. What took longest is shown: a test that takes
# more than about half a second on a quiet machine belongs in tests/slow.txt.
test: $(VENV)/.installed-dev
	PROVISION_EXAMPLES=$${PROVISION_EXAMPLES:-0.05} $(BIN)/pytest -m "not slow" --durations=5 --durations-min=3 $(PYTEST_FLAGS)

test-all: $(VENV)/.installed-dev
	$(BIN)/pytest $(PYTEST_FLAGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/hadolint --failure-threshold style dockerfiles/*/Dockerfile tests/golden/render/*.Dockerfile tests/container/*.Dockerfile

fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.fuzz $(FUZZ_FLAGS)

docs: $(VENV)/.installed-dev
	$(SPHINX) -b html -c docs . build/docs

# The two sites link to each other; alone, neither names a place that is not there.
pages: SPHINX += -A matrix_site=matrix/index.html
pages: docs
	$(BIN)/provision matrix site --out build/docs/matrix --docs ../docs/site.html

man: $(VENV)/.installed-dev
	$(SPHINX) -b man -c docs . build/man

# The same commit gives the same bytes: the times in the archives are those of the commit.
dist: $(VENV)/.installed-dev
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(BIN)/python -m build --outdir dist .

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/run.py

bench-hard: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/compare_hard.py

# The stamps make both re-entrant: an interrupted installation is done again, a finished one only when pyproject.toml changes.
# pip learnt to read dependency groups in 25.1.
$(VENV)/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer with venv was found;" \
	  "install one (Debian: python3-venv), or run make PYTHON=/path/to/python" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $(PYTHON) is older than Python 3.11; run make PYTHON=/path/to/python" >&2; exit 2; }
	$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

clean:
	rm -rf build dist $(VENV)
