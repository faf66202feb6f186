# `make demo` and `make test` are all a new machine needs: Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
INSTALL := $(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# A run of its own each time; the display needs no more than this.
DEMO_RUN = runs/demo-$(shell date +%Y%m%d-%H%M%S)

.DEFAULT_GOAL := help
.PHONY: help demo test check slow format figures clean

help:
	@echo "make demo    install (says what it downloads), train the demonstration agent, say what it learned and where the time went"
	@echo "make test    install, run the test suite (about thirteen minutes on two cores)"
	@echo "make check   ruff, types, and the test suite: what CI runs"
	@echo "make slow    learning, kills, damage and soak: what takes minutes rather than seconds (an hour or more)"
	@echo "make format  let ruff put the code into shape"
	@echo "make figures measure again what the documents quote, on a quiet machine (about half an hour), and write it into them"
	@echo "make clean   remove .venv and caches (runs/ stays)"

demo: $(VENV)/.demo
	@$(RUN)/hotloop train snake-dqn --total-env-steps 500k --run-dir $(DEMO_RUN)
	@echo "watch it play:       $(RUN)/hotloop watch $$(ls -dt runs/demo-* | head -n 1)"
	@echo "see it in a browser: $(RUN)/hotloop dashboard"

test: $(VENV)/.test
	@$(RUN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.check
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .
	@$(RUN)/mypy
	@$(RUN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

slow: $(VENV)/.test
	@$(RUN)/python -m pytest -m slow --timeout 7200 -v -rs

format: $(VENV)/.check
	@$(RUN)/ruff check --fix .
	@$(RUN)/ruff format .

figures: $(VENV)/.test
	@$(RUN)/hotloop prove $$($(RUN)/python -m benchmarks.figures --names) --keep docs/results/prove.json >/dev/null
	@$(RUN)/python -m benchmarks.figures

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "hotloop needs Python 3.11 or newer: install it, or name it with 'make PYTHON=...'"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hotloop needs Python 3.11 or newer, $(PYTHON) is older: name another with 'make PYTHON=python3.12'"; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { echo "this Python cannot make virtual environments: on Debian or Ubuntu, 'apt install python3-venv'"; exit 1; }
	@touch $@

$(VENV)/.base: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing into $(VENV), once. It downloads PyTorch $$(sed -n 's/^torch==//p' constraints.txt), 192 MB in its CPU build, and 101 MB of other packages (numpy, numba, Gymnasium ...)."
	@echo "PyPI has the CUDA build alone for Linux, 3.2 GB: 'PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make demo' takes the CPU build."
	@$(INSTALL) torch==$$(sed -n 's/^torch==//p' constraints.txt) || { echo "the installation failed: is a package index reachable from here?"; exit 1; }
	@$(INSTALL) -e '.[train]'
	@touch $@

$(VENV)/.demo: $(VENV)/.base
	@$(INSTALL) -e '.[train,dashboard]'
	@touch $@

$(VENV)/.test: $(VENV)/.base
	@$(INSTALL) -e '.[test]'
	@touch $@

$(VENV)/.check: $(VENV)/.test
	@$(INSTALL) -e '.[test,check]'
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .hypothesis .mypy_cache .ruff_cache build src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
