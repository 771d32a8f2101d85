# make demo: set up, then explain a refused applicant.     make test: set up, then check and test everything.
# Needs Python 3.11 or newer, make and a C++17 compiler; the rest is installed into .venv here.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
STAMPS := $(VENV)/.stamps
NATIVE := CMakeLists.txt pyproject.toml $(wildcard src/gigrad/kernels/*.hpp src/gigrad/kernels/*/*.cpp src/gigrad/kernels/*/*.hpp)
BUILD_TOOLS := "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.26" ninja

.PHONY: help demo test check sanitize coverage docs models bench paper clean
.PHONY: wheel test-wheel test-core test-oldest test-newest test-arm test-windows fuzz fuzz-native fuzz-loaders sbom
.DEFAULT_GOAL := help

help:
	@sed -n '1,2s/^# //p' Makefile

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gigrad needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=/path/to/python3.11."; exit 1; }
	@command -v $${CXX:-c++} >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1 || \
	  { echo "gigrad needs a C++17 compiler (g++ 9 or clang 10, or newer) and found none. On Debian: apt-get install g++. On macOS: xcode-select --install."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q $(BUILD_TOOLS)
	@mkdir -p $(STAMPS) && touch $@

# Editable, so that Python changes need no new install; a changed C++ file does.
$(STAMPS)/demo: $(STAMPS)/venv $(NATIVE)
	$(PY) -m pip install -q --no-build-isolation -e ".[demo]"
	@touch $@

# torch comes first and by exact version: a range alone would fetch gigabytes of GPU packages.
TORCH := torch==2.13.0
$(STAMPS)/test: $(STAMPS)/venv $(NATIVE)
	$(PY) -m pip install -q $(TORCH)
	$(PY) -m pip install -q --no-build-isolation -e ".[test]"
	@touch $@ $(STAMPS)/demo

$(STAMPS)/docs: $(STAMPS)/venv $(NATIVE)
	$(PY) -m pip install -q $(TORCH)
	$(PY) -m pip install -q --no-build-isolation -e ".[docs]"
	@touch $@

demo: $(STAMPS)/demo
	@$(PY) -m gigrad.demo

check: $(STAMPS)/test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/clang-format --dry-run --Werror $$(git ls-files '*.cpp' '*.hpp')
	$(PY) -m codespell_lib
	$(PY) tests/project/hygiene.py
	$(PY) -m mypy
	$(PY) -m mypy --config-file tests/mypy.ini

# The sanitizers' program is compiled while packages are installed and types are checked.
test:
	$(MAKE) -j2 check sanitize
	$(PY) -m pytest -q -n 2 --dist worksteal

# The native core under AddressSanitizer and UndefinedBehaviorSanitizer, without Python around it.
SANITIZE := $(CXX) -std=c++17 -O1 -g -ffp-contract=off -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=all
KERNELS  := src/gigrad/kernels
ifneq (,$(filter x86_64 amd64,$(shell uname -m)))
SANITIZE += -DGIGRAD_X86
SANITIZE_SIMD := build/sanitize-avx2.o build/sanitize-avx512.o
endif
ifneq (,$(filter aarch64 arm64,$(shell uname -m)))
SANITIZE += -DGIGRAD_NEON
SANITIZE_SIMD := build/sanitize-neon.o
endif

build/sanitize-plain.o build/sanitize-neon.o: SIMD_FLAGS :=
build/sanitize-avx2.o: SIMD_FLAGS := -mavx2 -mbmi -mpopcnt
build/sanitize-avx512.o: SIMD_FLAGS := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mbmi -mpopcnt -Wno-maybe-uninitialized
build/sanitize-%.o: $(KERNELS)/lanes/simd_%.cpp $(NATIVE)
	@mkdir -p build
	$(SANITIZE) -I$(KERNELS) $(SIMD_FLAGS) -c $< -o $@

build/sanitize: tests/native/sanitize.cpp build/sanitize-plain.o $(SANITIZE_SIMD) $(NATIVE)
	$(SANITIZE) -I$(KERNELS) $(filter %.cpp %.o,$(filter-out $(NATIVE),$^)) -o $@ -pthread

sanitize: build/sanitize
	@build/sanitize

# The native core on 64-bit ARM, under qemu-user; see tests/emulated/README.md. COUNT=count: instructions of each walk.
test-arm:
	tests/emulated/arm.sh $(COUNT)
# The same on 64-bit Windows, by MinGW and Wine.
test-windows:
	tests/emulated/windows.sh

# A wheel of this tree, in build/wheel; then the tests against the installed wheel, without sources and without a compiler.
wheel: $(STAMPS)/venv
	tests/wheel/build.sh $(PY)
test-wheel: wheel $(STAMPS)/test
	tests/wheel/run.sh $(PY) $(TESTS)

# The same against NumPy and narwhals alone, and the oldest and newest versions that are supported; see tests/wheel.
test-core: wheel
	tests/wheel/versions.sh $(PY) core $(TESTS)
test-oldest: wheel
	tests/wheel/versions.sh $(PY) oldest $(TESTS)
test-newest: wheel
	tests/wheel/versions.sh $(PY) newest $(TESTS)

# Coverage-guided fuzzing: of the native core by libFuzzer (clang), of the loaders by atheris. SECONDS for each target, or RUNS: as
# many inputs, the same ones every time. CI does both.
CLANG   ?= $(shell for name in clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-14; do command -v $$name && break; done)
SECONDS ?= 20
FUZZ_LIMIT := $(if $(RUNS),-runs=$(RUNS) -seed=1,-max_total_time=$(SECONDS))
FUZZED  := gig_file gig_parts ubj lightgbm ledger record scorecard keras spark onnx
FUZZ    := $(CLANG) -std=c++17 -O1 -g -ffp-contract=off -Wall -Wextra -fsanitize=fuzzer,address,undefined \
           -fno-sanitize-recover=all -I$(KERNELS) -Itests
build/fuzz/native: tests/fuzz/native.cpp $(NATIVE)
	@test -n "$(CLANG)" || { echo "make fuzz needs clang++ with libFuzzer; on Debian: apt-get install clang"; exit 1; }
	@mkdir -p build/fuzz/walks
	$(FUZZ) tests/fuzz/native.cpp $(KERNELS)/lanes/simd_plain.cpp -o $@ -pthread

fuzz-native: build/fuzz/native
	@mkdir -p tests/fuzz/corpus/native
	build/fuzz/native $(FUZZ_LIMIT) -timeout=20 -max_len=4000 -verbosity=0 -print_final_stats=1 \
	  -artifact_prefix=tests/fuzz/corpus/native/ build/fuzz/walks tests/fuzz/corpus/native
fuzz-loaders: $(STAMPS)/demo
	$(PY) -m pip install -q atheris "h5py>=3.10" "onnx>=1.15"
	for target in $(FUZZED); do $(PY) tests/fuzz/loaders.py $$target $(FUZZ_LIMIT) || exit 1; done
fuzz: fuzz-native fuzz-loaders

# What a wheel is made of, with SHA-256 of every file that the build reads.
sbom: $(STAMPS)/venv
	@mkdir -p build
	$(PY) tools/sbom.py > build/sbom.json

# Which lines of the Python and the C++ code the tests reach, held to the floors in pyproject.toml; slower than make test.
# The native core is built once more, to count its lines, in an environment that takes everything else from .venv.
COVERAGE := build/coverage
COUNTING := $(COVERAGE)/venv/bin/python
# The native core writes its counts when a process ends. pytest-xdist kills workers that have not ended after ten seconds, which
# they take on a busy machine with every library loaded: their counts were lost.
PATIENTLY := 'import sys, pytest, xdist.workermanage as x; x.NodeManager.EXIT_TIMEOUT = 600; sys.exit(pytest.main())'
coverage: $(STAMPS)/test
	rm -rf $(COVERAGE) .coverage .coverage.*
	$(PY) -m venv --without-pip $(COVERAGE)/venv
	$(PY) -c 'import sys; print(*[p for p in sys.path if p.endswith("site-packages")], sep="\n")' > \
	  $$($(COUNTING) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth
	$(PY) -m pip --python $(COUNTING) install -q --no-build-isolation --no-deps -e . -C build-dir=$(COVERAGE)/native \
	  -C cmake.define.CMAKE_CXX_FLAGS="--coverage -fprofile-update=atomic"
	$(COUNTING) -c $(PATIENTLY) -q -n 2 --dist worksteal --cov=gigrad --cov-report=html:$(COVERAGE)/html
	$(COUNTING) tests/project/measure_coverage.py $(COVERAGE)/native

# What is supported, written into the README and the documentation from the table that drives the conformance tests.
models: $(STAMPS)/test
	cd tests && ../$(PY) -m conformance.support

# Every claim about speed, as ratios in one run on this machine.
bench: $(STAMPS)/test
	cd benchmarks && ../$(PY) run.py && ../$(PY) mixed.py && ../$(PY) corners.py && ../$(PY) settling.py && ../$(PY) history.py

# The pages, in docs/_build/html. A warning is an error; nothing on them is fetched when they are read.
docs: $(STAMPS)/docs
	$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(PY) docs/offline.py docs/_build/html
	@echo "open docs/_build/html/index.html"

# The paper's experiments, in full: about an hour, most of it 200 rows of Covertype. A run that was cut off goes on where it
# stopped.
paper: $(STAMPS)/test
	cd experiments && for name in figures moons ovals covertype covertype_keras comparison page; do ../$(PY) $$name.py || exit 1; done

clean:
	rm -rf $(VENV) build
