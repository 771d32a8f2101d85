# make demo: set up, then explain a refused applicant.     make test: set up, then check and test everything.
# Needs Python 3.11 or newer, make and a C++17 compiler; the rest is installed into .venv here.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
STAMPS := $(VENV)/.stamps
NATIVE := CMakeLists.txt pyproject.toml $(wildcard src/gigrad/kernels/*.hpp src/gigrad/kernels/*/*.cpp src/gigrad/kernels/*/*.hpp)
BUILD_TOOLS := "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.18" ninja

.PHONY: help demo test check sanitize coverage docs models bench paper clean
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

# torch comes first and by exact version: a range would fetch gigabytes of GPU packages.
$(STAMPS)/test: $(STAMPS)/venv $(NATIVE)
	$(PY) -m pip install -q torch==2.13.0
	$(PY) -m pip install -q --no-build-isolation -e ".[test]"
	@touch $@ $(STAMPS)/demo

$(STAMPS)/docs: $(STAMPS)/venv $(NATIVE)
	$(PY) -m pip install -q torch==2.13.0
	$(PY) -m pip install -q --no-build-isolation -e ".[docs]"
	@touch $@

demo: $(STAMPS)/demo
	@$(PY) -m gigrad.demo

check: $(STAMPS)/test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m codespell_lib
	$(PY) tests/project/hygiene.py
	$(PY) -m mypy

test: check sanitize
	$(PY) -m pytest -q -n 2 --dist worksteal

# The native core under AddressSanitizer and UndefinedBehaviorSanitizer, without Python around it.
SANITIZE := $(CXX) -std=c++17 -O1 -g -ffp-contract=off -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=all
KERNELS  := src/gigrad/kernels
ifneq (,$(filter x86_64 amd64,$(shell uname -m)))
SANITIZE += -DGIGRAD_X86
SANITIZE_SIMD := build/sanitize-avx2.o build/sanitize-avx512.o
endif

build/sanitize-plain.o: SIMD_FLAGS :=
build/sanitize-avx2.o: SIMD_FLAGS := -mavx2 -mbmi -mpopcnt
build/sanitize-avx512.o: SIMD_FLAGS := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mbmi -mpopcnt -Wno-maybe-uninitialized
build/sanitize-%.o: $(KERNELS)/lanes/simd_%.cpp $(NATIVE)
	@mkdir -p build
	$(SANITIZE) -I$(KERNELS) $(SIMD_FLAGS) -c $< -o $@

build/sanitize: tests/native/sanitize.cpp build/sanitize-plain.o $(SANITIZE_SIMD) $(NATIVE)
	$(SANITIZE) -I$(KERNELS) $(filter %.cpp %.o,$(filter-out $(NATIVE),$^)) -o $@ -pthread

sanitize: build/sanitize
	@build/sanitize

# Which lines of the Python code the tests reach; slower than make test.
coverage: $(STAMPS)/test
	$(PY) -m pytest -q -n 2 --dist worksteal --cov=gigrad --cov-report=term --cov-report=html:build/coverage

# What is supported, written into the README and the documentation from the table that drives the conformance tests.
models: $(STAMPS)/test
	cd tests && ../$(PY) -m conformance.support

# Every claim about speed, as ratios in one run on this machine.
bench: $(STAMPS)/test
	cd benchmarks && ../$(PY) run.py && ../$(PY) mixed.py && ../$(PY) corners.py

# The pages, in docs/_build/html. A warning is an error; nothing on them is fetched when they are read.
docs: $(STAMPS)/docs
	$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(PY) docs/offline.py docs/_build/html
	@echo "open docs/_build/html/index.html"

# The paper's experiments, in full: under an hour. A run that was cut off goes on where it stopped.
paper: $(STAMPS)/test
	cd experiments && for name in figures moons ovals covertype comparison page; do ../$(PY) $$name.py || exit 1; done

clean:
	rm -rf $(VENV) build
