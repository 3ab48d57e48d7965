# Two commands: `make demo` and `make test`. Each sets up everything it needs in .venv.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# torch first and exactly as pinned: asked for in any other way, pip may fetch another build.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

.PHONY: demo app audit bench docs test test-lowest coverage fuzz kills mutants load lint dist browser clean

demo: $(READY)
	$(BIN)/cptuning demo --output demo-output

app: $(READY)
	$(BIN)/cptuning app

# All that is said of speed, beside SetFit, into benchmarks/results.md; BENCH=--quick for less.
bench: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[bench]"
	$(BIN)/python -m benchmarks $(BENCH)

# The documentation site, into site/.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src
	$(BIN)/hadolint Dockerfile

# Known mistakes in the sources, and known vulnerabilities of the pinned packages (asks the network).
audit: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[audit]"
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src
	$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip

# The wheel and the sdist, into dist/.
dist: $(READY)
	$(BIN)/python -m build

# The oldest versions that pyproject.toml promises, in a place of their own; torch stays at its pin.
# LOWEST is what is tested: all that reads, learns, predicts and is saved.
LOWEST ?= tests/data tests/prompting tests/losses tests/inference tests/methods/test_instant.py \
	tests/storage/test_instant_folders.py tests/storage/test_models.py tests/test_estimator.py
.venv-lowest/.ready: pyproject.toml constraints.txt packaging/lowest.py
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(PYTHON) packaging/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/pip install --quiet --constraint .venv-lowest/lowest.txt \
		--editable ".[train,files,index]" pytest hypothesis pandas datasets
	touch $@
test-lowest: .venv-lowest/.ready
	# ONNX Runtime 1.20 refuses that graph earlier than later versions, with another sentence.
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -m "not slow" $(LOWEST) \
		--deselect tests/inference/test_onnx_encoder.py::test_a_graph_can_not_take_all_memory

# The tests of the web page need a real browser; a fresh Debian machine has none.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
browser:
	@command -v chromium >/dev/null || { $(SUDO) apt-get update && $(SUDO) apt-get install -y chromium; }

# One thread per process: the tests make many small models, and two workers fill two cores.
# The groups, and their order, are those of tests/conftest.py.
PYTEST := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/pytest \
	--numprocesses 2 --dist loadgroup --no-loadscope-reorder
test: lint browser
	$(PYTEST)

# Not a part of `make test`: Python 3.11 traces every line, and the tests take longer.
coverage: $(READY) browser
	$(PYTEST) --cov --cov-report term --cov-report html

# Random input for so many minutes, commands that are killed so many times, and so many changes of
# the sources that the tests must notice: tests/fuzz, tests/kills, tests/mutants.
MINUTES ?= 5
RUNS ?= 50
SAMPLE ?= 300
fuzz: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes $(MINUTES)

kills: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.kills --runs $(RUNS)

mutants: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants --sample $(SAMPLE)

# The service at twice its capacity, and besieged by slow clients.
load: $(READY)
	$(BIN)/python benchmarks/serving.py

clean:
	rm -rf .venv .venv-lowest dist demo-output site .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
