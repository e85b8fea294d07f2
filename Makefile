# Each target sets up what it needs on a fresh machine and does nothing again when that is done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
EXTRAS := fast,train,pyg,molecules,jets,hypergraphs,plot,dev
export OMP_NUM_THREADS ?= 2

.PHONY: demo test test-slow check setup bench clean

# Table 1 of the paper on the quick scale: a few minutes on two cores.
demo: setup
	$(BIN)/python examples/quickstart.py
	$(BIN)/anyorder run chains --all --scale quick --out runs/demo
	$(BIN)/anyorder table chains --records runs/demo
	$(BIN)/anyorder plot chains --records runs/demo --output runs/demo/chains.png
	@echo "records: runs/demo/chains, figure: runs/demo/chains.png"

test: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m slow

check: test test-slow

setup: $(STAMP)

# pythia8mc has no source build that works everywhere: take its wheel or nothing.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --only-binary=pythia8mc,fastjet --editable ".[$(EXTRAS)]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
