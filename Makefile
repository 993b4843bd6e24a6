# make run | test | lint | docs | train | bench | data | view | benchmarks. Everything installs into .venv; nothing else on the
# machine is changed but, where allowed, the Debian packages that scripts/setup.sh names.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
OUT ?= out
MESSAGES = bid_msgs/CMakeLists.txt bid_msgs/package.xml $(wildcard bid_msgs/msg/*.msg bid_msgs/srv/*.srv)
SETUP = scripts/setup.sh scripts/telling.sh scripts/prune.sh scripts/build_messages.sh scripts/build_package.sh scripts/repair_wheels.sh scripts/uv.sh \
	scripts/find_python.sh scripts/try_setup.py

.PHONY: setup train bench data view develop benchmarks run test lint docs lock clean

# What a robot computer needs, and what is added to it: training, the bench, data sets, viewers, lint and tests.
setup: $(VENV)/.run
train: $(VENV)/.train
bench: $(VENV)/.bench
data: $(VENV)/.data
view: $(VENV)/.view
develop: $(VENV)/.train $(VENV)/.bench $(VENV)/.data $(VENV)/.view $(VENV)/.develop

$(VENV)/.run: requirements/run.lock $(SETUP) $(MESSAGES) setup.py setup.cfg
	PYTHON="$(PYTHON)" scripts/setup.sh "$(VENV)" run
	touch $@

$(VENV)/.train $(VENV)/.bench $(VENV)/.data $(VENV)/.view $(VENV)/.develop: $(VENV)/.%: requirements/%.lock | $(VENV)/.run
	PYTHON="$(PYTHON)" scripts/setup.sh "$(VENV)" $*
	touch $@

# The benches whose simulators need another MuJoCo than the twins: an environment of its own.
benchmarks:
	PYTHON="$(PYTHON)" scripts/benchmarks.sh "$(VENV)-benchmarks"

run: setup
	$(BIN)/bid up franka_place --episodes 3 --moving 0.03 --out "$(OUT)"

# Lint and the tests but the long ones; scripts/test_all.sh runs these, too. SERIAL=1: nothing side by side.
test: develop
	scripts/test.sh "$(VENV)"

lint: develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation site, in site/. A warning or a broken link fails.
docs: develop
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build --strict

# Resolve requirements/*.in anew; ARGUMENTS=--upgrade also takes newer versions of what is locked.
lock: setup
	PYTHON="$(BIN)/python" scripts/lock.sh $(ARGUMENTS)

clean:
	rm -rf .build out site
