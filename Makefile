# Every command of the project; `make help` lists them. Each sets up what it needs and redoes only what has changed.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VERSION     := $(shell cat VERSION)
SBT_VERSION := $(shell sed -n 's/^sbt\.version=//p' project/build.properties)
JOBS        := $(shell nproc)

PYTHON       := .venv/bin/python
VENV         := .venv/.requirements
PACKAGE      := .venv/.package
LIBRARY      := native/build/libombus.so
JAR          := connector/target/ombus-spark_2.13-$(VERSION).jar
SBT          := project/scripts/sbt
SBT_LAUNCHER := build/tools/sbt-launch-$(SBT_VERSION).jar
REPORTS      := build/test-reports

# Tracked files and new ones alike, less those deleted and not yet staged.
sources         = $(wildcard $(shell git ls-files --cached --others --exclude-standard -- $(1)))
NATIVE_SOURCES := $(call sources,native) VERSION
PYTHON_SOURCES := $(call sources,python ':!python/tests') VERSION
SBT_SOURCES    := $(call sources,connector build.sbt project/*.scala project/*.sbt project/build.properties) VERSION
C_FILES        := $(call sources,'*.c' '*.h')
TYPED_PYTHON   := $(wildcard python/src examples project/scripts)
PYTEST_FOLDERS := $(wildcard python/tests tests)

.PHONY: help
help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

# ---- building ----

.PHONY: native jar venv wheel
native: $(LIBRARY)  ## build libombus (native/build/libombus.so), its tests and benchmarks
jar: $(JAR)  ## build the Spark connector (connector/target/ombus-spark_2.13-VERSION.jar)
venv: $(PACKAGE)  ## set up .venv with pyspark, the tools and the ombus package
wheel: dist/.wheel  ## build the Python package (dist/*.whl)

# One native build plain and one per sanitizer, each in a folder of its own.
native/build-asan/.built: private CMAKE_OPTIONS := -DOMBUS_SANITIZE=address,undefined
native/build-tsan/.built: private CMAKE_OPTIONS := -DOMBUS_SANITIZE=thread
native/build/.built native/build-asan/.built native/build-tsan/.built: $(NATIVE_SOURCES)
	cmake -S native -B $(@D) -DCMAKE_BUILD_TYPE=Release $(CMAKE_OPTIONS)
	cmake --build $(@D) --parallel $(JOBS)
	touch $@

# The library keeps its time when only a test has changed, so what depends on it stays as it is.
$(LIBRARY): native/build/.built
	@:

$(VENV): project/requirements.txt
	test -x $(PYTHON) || python3 -m venv .venv
	$(PYTHON) -m pip install --quiet -r project/requirements.txt
	touch $@

# No isolated environment, but one that lasts: only what has changed is compiled again.
# The package carries the connector's jar; `make venv PACKAGE_JAR=` leaves it out, for those who change C or Python only.
PACKAGE_JAR := $(JAR)
PIP_BUILD := --quiet --no-build-isolation --no-deps --config-settings=build-dir="$(CURDIR)/build/python" ./python
$(PACKAGE): $(PYTHON_SOURCES) $(LIBRARY) $(VENV) $(PACKAGE_JAR)
	$(PYTHON) -m pip install --force-reinstall $(PIP_BUILD)
	touch $@
dist/.wheel: $(PYTHON_SOURCES) $(LIBRARY) $(VENV) $(PACKAGE_JAR)
	rm -f dist/*.whl
	$(PYTHON) -m pip wheel --wheel-dir dist $(PIP_BUILD)
	touch $@

$(SBT_LAUNCHER): | $(VENV)
	project/scripts/fetch_sbt_launcher $(SBT_VERSION) $@

$(JAR): $(SBT_SOURCES) $(LIBRARY) | $(SBT_LAUNCHER)
	$(SBT) connector/assembly
	touch $@

# ---- checking ----

.PHONY: test
test: | $(VENV)  ## lint, then all tests: native (also under ASan, UBSan and TSan), Scala, Python
	@$(PYTHON) project/scripts/run_suites.py lint test-native test-asan test-tsan test-scala test-python

.PHONY: test-native test-asan test-tsan test-scala test-python
run_ctest = ctest --test-dir $(1) --output-on-failure --timeout 300 --no-tests=error \
	--test-output-size-passed 10000000 --output-junit "$(CURDIR)/$(REPORTS)/$@/ctest.xml"
test-native: native/build/.built  ## the native tests
	$(call run_ctest,native/build)
test-asan: native/build-asan/.built  ## the native tests under ASan and UBSan
	$(call run_ctest,native/build-asan)
# These have one thread and much to do: TSan has nothing to find in them and takes minutes.
ONE_THREAD := test_(log_(damage|powercut|index|kill|diskfull|frame|retention)|ring_hostile|crc32c|sha256)
test-tsan: native/build-tsan/.built  ## the native tests under TSan
	$(call run_ctest,native/build-tsan) --exclude-regex '$(ONE_THREAD)'
test-scala: $(LIBRARY) | $(SBT_LAUNCHER)  ## the connector's tests
	$(SBT) connector/test
test-python: $(PACKAGE) $(JAR)  ## the Python tests, and those that cross two parts
	$(PYTHON) -m pytest $(PYTEST_FOLDERS) --junit-xml=$(REPORTS)/$@/pytest.xml

.PHONY: lint format
lint: $(VENV) build/.scalafmt-checked  ## check formatting, style and types
	@echo "clang-format: $(words $(C_FILES)) C files"; .venv/bin/clang-format --dry-run -Werror $(C_FILES)
	.venv/bin/ruff check --quiet
	.venv/bin/ruff format --quiet --check
	.venv/bin/mypy $(TYPED_PYTHON)
format: $(VENV) | $(SBT_LAUNCHER)  ## format all sources in place
	@echo "clang-format: $(words $(C_FILES)) C files"; .venv/bin/clang-format -i $(C_FILES)
	.venv/bin/ruff check --quiet --fix-only
	.venv/bin/ruff format --quiet
	$(SBT) scalafmtAll scalafmtSbt

# sbt takes long to start, so this check has a stamp where the others simply run.
build/.scalafmt-checked: $(SBT_SOURCES) .scalafmt.conf | $(SBT_LAUNCHER)
	$(SBT) 'all scalafmtCheckAll scalafmtSbtCheck'
	touch $@

# ---- running ----

.PHONY: demo bench fuzz clean
demo: $(PACKAGE) $(JAR)  ## an engine, a Spark job on its stream, a kill and an exact check
	$(PYTHON) examples/demo.py
bench: $(LIBRARY) $(PACKAGE)  ## measure; writes bench-results/*.json
	$(PYTHON) tests/bench/run.py
FUZZ_SECONDS ?= 20
fuzz: native/build-asan/.built  ## run each fuzz driver for FUZZ_SECONDS (20)
	drivers=$$(find native/build-asan -name 'fuzz_*' -type f -executable | sort); test -n "$$drivers"; \
	for driver in $$drivers; do "$$driver" --seconds $(FUZZ_SECONDS); done
clean:  ## remove what was built (not .venv and the sbt launcher)
	rm -rf native/build* dist bench-results target project/target project/project connector/target
	rm -rf build/python $(REPORTS) build/.scalafmt-checked $(PACKAGE)
