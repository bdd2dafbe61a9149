# make install  make .venv with everything pinned in it (PYTHON=python3.12 for another Python)
# make train    install into .venv and train UDRL on LunarLander (ARGS adds flags)
# make reproduce  measure every claim of results/claims.yaml that is not measured yet, and build docs/results.md (ARGS adds flags)
# make test     install into .venv, check style and types, run the fast tests
# make test-cpus  the tests as on processors without AVX-512, then without AVX2 (ARGS="tests/nets tests/agents" for some)
# make docs     the documentation as a site, in build/site; links and code are checked
# make demo-site  the demo as a folder that any host of pages takes, build/demo (CODE=https://.. links to the code)
# make notebooks  executes the notebooks anew
# make bench    all speeds beside what bounds them, to results/speed.md: 15 minutes alone on the machine (ARGS="--only loops --smoke")
# make peers    our agents beside rejax, sbx and Stable-Baselines3, in an environment of their own: half an hour (ARGS="--only PPO-8 --quick")
# make speedrun  seconds until five seeds of RCP-A hold 250 on LunarLander; results/speedrun.csv has the races (ARGS adds flags of trainer.py)
# make fuzz     hostile command lines and files, thousands of them (ARGS="--hypothesis-seed=7" for others)
# make mutants  are the tests good? Hundreds of wrong formulas, one at a time, of which they must notice 95 % (ARGS="--only evolution/")
# make archive  this commit for a DOI, in build/: code, results, CITATION.cff, the environment, a checksum of every file
# make density  how much there is to read, and how densely it is packed (ARGS="lightning_rl tests")
# make crash    kills, crashes and full disks at every call that writes, then random walks of commands and a user among their files
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PEERS := .peers
# pip makes no bytecode: making all of it takes as long as unpacking the packages. tools/bytecode.py makes that of what
# commands import; other bytecode is kept where something is imported, whatever the environment says, as else each of
# the many processes of the tests would make its own.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := python -m pip install -q --no-compile -c constraints.txt
PIP := $(BIN)/$(INSTALL)
# Unpacking takes most of an installation: of torch as long as of these, which another process unpacks meanwhile.
LARGE := imageio-ffmpeg llvmlite mkdocs-material mujoco onnxruntime pandas pyarrow ray scipy vizdoom
STAMP := $(VENV)/.installed
BOHB := $(VENV)/.bohb
NOTEBOOKS := $(VENV)/.notebooks
# One more than CI has cores: many tests wait, for Ray, workers and processes that were killed.
COMPILING := $(wildcard tests/*/test_fused*.py) tests/nets/test_acting.py tests/methods/test_compiling.py
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal

.PHONY: install train reproduce test test-cpus test-avx2 lint slow docs demo-site notebooks bench peers speedrun fuzz mutants crash archive density clean

install: $(STAMP)

train: $(STAMP)
	$(BIN)/python trainer.py --implementation UDRL --gamename lunarlander --resume $(ARGS)

reproduce: $(STAMP)
	$(BIN)/lightning-rl reproduce $(ARGS)

# Types are checked beside the tests: half a minute on a fresh clone, most of it reading torch. What is compiled, and
# kept, is compiled by its own tests first, as else each of the processes of the tests would do it.
test: $(STAMP) $(BOHB)
	$(BIN)/ruff check . && $(BIN)/ruff format --check -q .
	$(BIN)/python -m pytest -n 2 --dist loadfile $(COMPILING)
	$(BIN)/mypy & types=$$!; $(PYTEST) $(ARGS); tests=$$?; wait $$types && exit $$tests

test-cpus: test-avx2
	ATEN_CPU_CAPABILITY=default $(PYTEST) $(ARGS)

test-avx2: $(STAMP) $(BOHB)
	ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 $(PYTEST) $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check -q .
	$(BIN)/mypy

slow: $(BOHB) $(NOTEBOOKS)
	$(BIN)/python -m pytest -m slow $(ARGS)

docs: $(STAMP)
	$(BIN)/python -m mkdocs build --strict $(ARGS)

demo-site: $(STAMP)
	$(BIN)/lightning-rl demo --out build/demo/index.html $(if $(CODE),--code $(CODE))

notebooks: $(NOTEBOOKS)
	$(BIN)/python notebooks/execute.py $(ARGS)

bench: $(STAMP)
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python benchmarks/bench.py $(ARGS)

peers: $(PEERS)/.installed
	$(PEERS)/bin/python -W ignore benchmarks/peers.py $(ARGS)

speedrun: $(STAMP)
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python benchmarks/speedrun.py $(ARGS)

fuzz: $(STAMP)
	FUZZ=long $(BIN)/python -m pytest --timeout 7200 tests/hostile/test_fuzz_*.py $(ARGS)

mutants: $(STAMP)
	$(BIN)/python tools/mutants.py $(ARGS)

crash: $(STAMP)
	$(BIN)/python tools/crash.py $(ARGS)
	$(BIN)/python tools/meddling.py $(ARGS)

# Twice the same commit in the same environment gives the same bytes.
archive: NAME := lightning_rl-$(shell git describe --always)
archive: $(STAMP)
	@test -z "$$(git status --porcelain --untracked-files=no)" || { echo "an archive is of a commit; commit or stash"; exit 2; }
	rm -rf build/archive && mkdir -p build/archive
	git archive --prefix=$(NAME)/ HEAD | tar -x -C build/archive
	cd build/archive/$(NAME) && { git rev-parse HEAD; $(abspath $(BIN))/python -VV; $(abspath $(BIN))/python -m pip freeze --exclude-editable; } > ENVIRONMENT.txt
	cd build/archive/$(NAME) && find . -type f ! -name MANIFEST.sha256 -print0 | LC_ALL=C sort -z | xargs -0 sha256sum > MANIFEST.sha256
	tar -c --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$$(git log -1 --format=%ct) -C build/archive $(NAME) | gzip -n9 > build/$(NAME).tar.gz
	rm -rf build/archive
	@echo "build/$(NAME).tar.gz: check it by sha256sum -c MANIFEST.sha256; upload it, then add its doi to CITATION.cff"

density:
	$(PYTHON) tools/density.py $(ARGS)

$(STAMP): setup.cfg constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps $(LARGE) & large=$$!; $(PIP) torch && wait $$large
	$(PIP) -e '.[all,dev]'
	$(BIN)/python tools/bytecode.py
	@touch $@

$(PEERS)/.installed: setup.cfg constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/$(INSTALL) torch
	$(PEERS)/bin/$(INSTALL) -e '.[peers]'
	@touch $@

# Only the searches with BOHB need it, and one of its packages is built with a C compiler.
$(BOHB): $(STAMP)
	@$(PIP) -e '.[bohb]' 2>/dev/null || echo "BOHB cannot be installed here; its tests are skipped"
	@touch $@

$(NOTEBOOKS): $(STAMP)
	@$(PIP) -e '.[notebooks]'
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache *.egg-info
