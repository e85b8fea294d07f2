# Each target sets up what it needs on a fresh machine and does nothing again when that is done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOG := $(VENV)/pip.log
EXTRAS := fast,train,pyg,molecules,jets,hypergraphs,plot,onnx,dev
export OMP_NUM_THREADS ?= 2
# Tests start processes: each reads what the first of them compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lint test-numeric test-slow check setup bench clean fuzz kill coverage docs test-browser

# Table 1 of the paper on the quick scale: a few minutes on two cores.
demo: setup
	$(BIN)/python examples/quickstart.py
	$(BIN)/anyorder run chains --all --scale quick --out runs/demo
	$(BIN)/anyorder table chains --records runs/demo
	$(BIN)/anyorder plot chains --records runs/demo --output runs/demo/chains.png
	@echo "records: runs/demo/chains, figure: runs/demo/chains.png"

# A file goes to one worker, so that two do not compile the same loops. Lint and the pass of another CPU run where tests wait for
# processes and for each other; what they say comes last.
test: setup
	@beside=$$(mktemp); trap 'rm -f $$beside' EXIT; \
	nice -n 19 $(MAKE) --no-print-directory --jobs 2 --output-sync=target lint test-numeric > $$beside 2>&1 & other=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"; first=$$?; \
	wait $$other; second=$$?; cat $$beside; exit $$((first || second))

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What a CPU without AVX sees: sums in another order, other roundings. Files without such a test are not even read.
test-numeric: setup
	OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=default NUMBA_CPU_NAME=generic $(BIN)/python -m pytest -m "numeric and not slow" \
		$$(grep -rl --include='test_*.py' 'pytest\.mark\.numeric' tests)

test-slow: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m slow

check: test test-slow

# Which lines and branches of the package the tests reach, those of processes that they start too.
coverage: setup
	rm -f .coverage .coverage.*
	OMP_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest -m "not slow"
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --skip-covered --sort=cover

# Every reader against files changed at random: a table of outcomes, exit code 1 if one is not ours.
MINUTES ?= 10
FIRST ?= 0
fuzz: setup
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz --minutes $(MINUTES) --first $(FIRST)

# Trainings of all kinds that are killed, started twice and run out of disk: a table, exit code 1 if a result is another.
RUNS ?= 20
SEED ?= 0
kill: setup
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m kills --runs $(RUNS) --seed $(SEED)

# The site in build/site, to be opened from the file system; a broken link or a missing page is an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(BIN)/mkdocs build
	@echo "docs: build/site/index.html"

# The pages in a real browser. Needs Chromium and its driver (Debian: apt-get install chromium chromium-driver), else it is skipped.
test-browser: docs $(VENV)/.browser
	$(BIN)/python -m pytest -rs tests/browser

setup: $(STAMP)

# What pip says goes to a log, which is shown if it fails. pythia8mc has no source build that works everywhere: take its
# wheel or nothing.
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-color
QUIETLY = > $(LOG) 2>&1 || { cat $(LOG) >&2; exit 1; }
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "setup: making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "setup: updating pip"
	@$(PIP) install --upgrade pip $(QUIETLY)
	@echo "setup: installing anyorder with everything that was tested (some minutes, 3.3 GB; what pip says: $(LOG))"
	@$(PIP) install --constraint constraints.txt --only-binary=pythia8mc,fastjet --editable ".[$(EXTRAS)]" $(QUIETLY)
	@touch $(STAMP)
	@echo "setup: done"

$(VENV)/.docs $(VENV)/.browser: $(VENV)/.%: $(STAMP)
	@echo "setup: installing the extra $* ($(if $(filter docs,$*),mkdocs and its theme,selenium))"
	@$(PIP) install --constraint constraints.txt --editable ".[$*]" $(QUIETLY)
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
