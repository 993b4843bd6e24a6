# make setup | run | test | lint. Everything installs into .venv; nothing else on the machine is changed but,
# where allowed, the Debian packages below.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
OUT ?= out
STAMP = $(VENV)/.ready

.PHONY: setup run test lint lock clean

setup: $(STAMP)

$(STAMP): requirements.lock scripts/setup.sh scripts/build_messages.sh bid_msgs/CMakeLists.txt bid_msgs/package.xml $(wildcard bid_msgs/msg/*.msg bid_msgs/srv/*.srv) setup.py
	PYTHON="$(PYTHON)" scripts/setup.sh "$(VENV)"
	touch $(STAMP)

run: setup
	$(BIN)/bid up franka_place --episodes 3 --moving 0.03 --out "$(OUT)"

test: setup
	scripts/test.sh "$(VENV)"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Resolve requirements.in anew. Torch is pinned there too but installed by pip, which takes a CPU build where one is offered.
lock:
	scripts/lock.sh "$(VENV)"

clean:
	rm -rf .build out
