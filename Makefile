# The short way in: `make demo` shows kilter at work, `make test` checks it. Both install first what is missing:
# Debian packages (requirements/debian.txt), then a virtual environment in .venv; the build is in build/.

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
PYTHON ?= python3
FRAMEWORKS ?= torch tensorflow mxnet
BIN := .venv/bin
# With paths relative to the project ccache has what another build folder compiled: a wheel takes the objects of the release build.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
DEBIAN := build/.debian-packages
VENV := .venv/.dev-packages
PEERS := .venv/.bench-packages
CXX_FILES = $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h')
PY_PATHS := bench examples fixtures python tests tools

.PHONY: build setup demo test test-cpp test-python test-frameworks test-wheel test-fuzz sanitize bench lint format clean

build: setup
	@test -f build/release/build.ninja || cmake --preset release
	@cmake --build build/release -j $(JOBS)
	@cmake --install build/release --component python --prefix .venv >/dev/null

setup: $(DEBIAN) $(VENV)

$(DEBIAN): requirements/debian.txt tools/install_debian.sh
	@tools/install_debian.sh
	@mkdir -p $(@D) && touch $@

$(VENV): requirements/build.txt requirements/dev.txt | $(DEBIAN)
	@test -x $(BIN)/python || { echo "setup: $(PYTHON) -m venv .venv"; $(PYTHON) -m venv .venv; }
	@echo "setup: pip install -r requirements/dev.txt, into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

$(PEERS): requirements/bench.txt $(VENV)
	@echo "setup: pip install -r requirements/bench.txt, into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/bench.txt
	@touch $@

demo: build
	@$(BIN)/python tools/demo.py

test: test-cpp test-python test-fuzz

test-cpp: build
	ctest --test-dir build/release --output-on-failure

test-python: build
	$(BIN)/python -m pytest tests/python

# The bridges to other frameworks, each in an environment of its own (build/venvs): large downloads the first time.
test-frameworks: build
	@for name in $(FRAMEWORKS); do tools/framework_env.sh $$name && \
	    build/venvs/$$name/bin/python -m pytest tests/frameworks/$$name || exit 1; done

# What `pip install .` gives, in an environment of its own: the command, the package, a model that runs.
test-wheel: build
	tools/test_wheel.sh

# The reader under libFuzzer and the sanitizers, for a short while; the corpus grows in build/fuzz/corpus.
test-fuzz: setup
	tools/fuzz.sh $(FUZZ_SECONDS)

# The C++ tests once more, under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: setup
	@test -f build/asan/build.ninja || cmake --preset asan
	cmake --build build/asan -j $(JOBS) --target kilter_tests
	tools/in_shards.sh build/asan/kilter_tests --gtest_brief=1

bench: build $(PEERS)
	$(BIN)/python bench/peers.py

lint: setup
	@clang-format --dry-run -Werror $(CXX_FILES) && echo "clang-format: ok"
	@$(BIN)/ruff check $(PY_PATHS)
	@$(BIN)/ruff format --check $(PY_PATHS)
	@tools/tidy.sh

format: setup
	clang-format -i $(CXX_FILES)
	$(BIN)/ruff check --fix $(PY_PATHS)
	$(BIN)/ruff format $(PY_PATHS)

clean:
	rm -rf build
