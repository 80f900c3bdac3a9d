# Daily commands. Each is a plain call of a Python command, so it can be typed by hand just as well.
#   make demo          see surgeon mend a small DyMN-like model
#   make check         what to run before a commit: format, lint, types, fast tests, recipe cases among them
#   make test          the environment and every test; of what is drawn and sampled a part, all
#                      of it with SURGEON_EVERY=1
#   make hostile       broken and malicious files, each in a process with limits
#   make kills         200 runs killed at random moments: every file is the old one or the new one
#   make fuzz-graphs   10,000 graphs drawn at random through apply, one after the other (minutes)
#   make twists        graphs of the recipes' cases, changed a little, through apply (SECONDS); what is
#                      found lies in out/twists, for somebody to look at
#   make damage        models damaged as protobufs can be, through apply and other commands (SECONDS)
#   make conditions    of each condition of a rule, whether there is a graph that it alone refuses (minutes)
#   make fuzz          damaged models, patterns and expressions, steered by coverage (needs atheris)
#   make batch         2,000 models and 100 hostile files, killed three times and resumed (needs CORPUS)
#   make mutations     wrong rewrites that the check has to catch; prints how many it did
#   make test-targets  the mended samples in the runtimes they are mended for (OpenVINO, TensorRT)
#   make test-oldest   every test with the oldest dependencies that pyproject.toml admits
#   make bench         surgeon beside other simplifiers: docs/benchmarks.md
#   make docs          what is made of the recipes and of their language: the pages, and what is kept
#   make samples       export samples/ anew (needs PyTorch)

# Tests start hundreds of processes: without the compiled modules each would compile all of them.
unexport PYTHONDONTWRITEBYTECODE

CORPUS ?= ../shared/corpus
TORCH ?= torch==2.13.0

ifeq ($(OS),Windows_NT)
  PYTHON ?= python
  BIN := .venv/Scripts
  OLDEST := .venv-oldest/Scripts
  PEERS := .venv-bench/Scripts
  FUZZ := .venv-fuzz/Scripts
else
  PYTHON ?= python3
  BIN := .venv/bin
  OLDEST := .venv-oldest/bin
  PEERS := .venv-bench/bin
  FUZZ := .venv-fuzz/bin
endif

SUITED := import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else 'surgeon needs Python 3.11 to 3.13, and this is ' + sys.version.split()[0] + '; say: make PYTHON=python3.12')
STAMP := import pathlib, sys; pathlib.Path(sys.argv[1]).touch()

.PHONY: demo check test lint cases docs hostile batch kills fuzz fuzz-graphs twists damage conditions mutations bench test-targets test-oldest torch samples
.DEFAULT_GOAL := check

demo: .venv/installed
	$(BIN)/python -c "import pathlib; pathlib.Path('out').mkdir(exist_ok=True)"
	$(BIN)/surgeon apply recipes/dymn.yaml samples/dymn_tiny/dymn_tiny.onnx out/dymn_tiny.onnx --reference samples/dymn_tiny/dymn_tiny.0.npz --reference samples/dymn_tiny/dymn_tiny.1.npz --reference samples/dymn_tiny/dymn_tiny.2.npz --reference samples/dymn_tiny/dymn_tiny.3.npz

check: .venv/installed-dev lint
	$(BIN)/python -m pytest -n 2 -m "not slow"

test: .venv/installed-dev
	$(BIN)/python -m pytest -n 3 -m "not hasty" -rs

lint: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32

cases: .venv/installed-dev
	$(BIN)/surgeon test recipes/

docs: .venv/installed
	$(BIN)/python -m surgeon.recipe.make
	$(BIN)/python -m surgeon.fitting.make
	$(BIN)/surgeon recipes pages docs/

hostile: .venv/installed-dev
	$(BIN)/python -c "import glob, os, subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'pytest', *sorted(glob.glob('tests/test_hostile*.py')), '-rs'], env=os.environ | {'SURGEON_EVERY': '1'}))"

kills: .venv/installed-dev
	$(BIN)/python -c "import os, subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'pytest', 'tests/test_writing.py', '-k', 'moment'], env=os.environ | {'SURGEON_KILLS': '200'}))"

# SECONDS of each target; what is found lies in out/fuzz as crash-*.
SECONDS ?= 120
SEED ?= 0
fuzz: .venv-fuzz/installed
	$(FUZZ)/python tests/fuzz.py models out/fuzz/models -max_total_time=$(SECONDS) -timeout=30 -rss_limit_mb=6000 -artifact_prefix=out/fuzz/
	$(FUZZ)/python tests/fuzz.py patterns out/fuzz/patterns -max_total_time=$(SECONDS) -timeout=30 -artifact_prefix=out/fuzz/
	$(FUZZ)/python tests/fuzz.py expressions out/fuzz/expressions -max_total_time=$(SECONDS) -timeout=30 -artifact_prefix=out/fuzz/
	$(FUZZ)/python tests/fuzz.py recipes out/fuzz/recipes -max_total_time=$(SECONDS) -timeout=30 -artifact_prefix=out/fuzz/

fuzz-graphs: .venv/installed-dev
	$(BIN)/python -c "import os, subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'pytest', 'tests/test_properties.py', '-k', 'larger', '--hypothesis-profile=fuzz'], env=os.environ | {'SURGEON_EXAMPLES': '10000'}))"

batch: .venv/installed-dev
	$(BIN)/python tests/benchmarks/folder.py $(CORPUS)

twists: .venv/installed-dev
	$(BIN)/python tests/twisting.py out/twists $(SECONDS) $(SEED)

damage: .venv/installed-dev
	$(BIN)/python tests/damaging.py out/damage $(SECONDS) $(SEED)

conditions: .venv/installed-dev
	$(BIN)/python tests/conditions.py

mutations: .venv/installed-dev
	$(BIN)/python -m pytest tests/test_mutations.py

bench: .venv/installed .venv-bench/installed
	$(BIN)/python tests/benchmarks/peers.py --python $(PEERS)/python --corpus $(CORPUS) --external --write docs/benchmarks.md

test-targets: .venv/installed-dev
	$(BIN)/python -m pip install -q -e ".[targets]"
	-$(BIN)/python -m pip install -q -e ".[tensorrt]"
	$(BIN)/python -m pytest -m targets -rs

test-oldest: .venv-oldest/installed
	$(OLDEST)/python -m pytest -n 2 -m "not hasty" -rs

torch: .venv/installed-dev
	$(BIN)/python -m pip install -q "$(TORCH)"

samples: torch
	$(BIN)/python samples/dymn_tiny/make.py
	$(BIN)/python samples/flatten_pool/make.py

.venv/made:
	@$(PYTHON) -c "$(SUITED)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	@$(BIN)/python -c "$(STAMP)" $@

.venv/installed: .venv/made pyproject.toml
	$(BIN)/python -m pip install -q -e .
	@$(BIN)/python -c "$(STAMP)" $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install -q -e . --group dev
	@$(BIN)/python -c "$(STAMP)" $@

.venv-oldest/installed: pyproject.toml tests/oldest.txt
	@$(PYTHON) -c "$(SUITED)"
	$(PYTHON) -m venv .venv-oldest
	$(OLDEST)/python -m pip install -q --upgrade "pip>=25.1"
	$(OLDEST)/python -m pip install -q -e . --group dev -c tests/oldest.txt
	@$(OLDEST)/python -c "$(STAMP)" $@

.venv-fuzz/installed: pyproject.toml
	@$(PYTHON) -c "$(SUITED)"
	@$(PYTHON) -c "import sys; sys.exit('atheris is for Linux and macOS' if sys.platform == 'win32' else None)"
	$(PYTHON) -m venv .venv-fuzz
	$(FUZZ)/python -m pip install -q --upgrade "pip>=25.1"
	$(FUZZ)/python -m pip install -q -e . "atheris==3.0.0"
	@$(FUZZ)/python -c "$(STAMP)" $@

.venv-bench/installed: tests/benchmarks/peers.txt
	@$(PYTHON) -c "$(SUITED)"
	$(PYTHON) -m venv .venv-bench
	$(PEERS)/python -m pip install -q -r tests/benchmarks/peers.txt
	@$(PEERS)/python -c "$(STAMP)" $@
