# make serve    run the gateway with the demo agent on http://127.0.0.1:8080
# make test     run all tests, and of the longest ones a sample; make test-all: those whole, too
# make check    ruff, mypy, import directions      make bench   measurements
# make PYTHON=python3.13 …   chooses the interpreter; it is used from then on
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests run on all cores, a file at a time on one of them; whole calls in real time (`slow`) alone.
SPREAD ?= -n auto --dist loadfile
# ARGS may choose tests of one kind only.
NONE_IS_FINE := || [ $$? -eq 5 ]
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev serve test test-all check bench clean FORCE

help:
	@sed -n '1,4s/^# //p' Makefile

# The stamps hold the interpreter's name, so that another PYTHON installs anew.
$(VENV)/.installed: pyproject.toml requirements/models.txt scripts/setup
	scripts/setup $(VENV)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml requirements/models.txt scripts/setup
	scripts/setup $(VENV) dev
	@touch $(VENV)/.installed $@

# An interpreter that was asked for and is not the environment's own drops the stamps first.
ifneq ($(PYTHON),)
WANTED := $(shell $(PYTHON) -c 'import sys; print(sys.version)' 2>/dev/null)
HAVE := $(shell $(BIN)/python -c 'import sys; print(sys.version)' 2>/dev/null)
ifneq ($(WANTED),$(HAVE))
$(shell rm -f $(VENV)/.installed $(VENV)/.installed-dev)
endif
endif

setup: $(VENV)/.installed

setup-dev: $(VENV)/.installed-dev

serve: setup
	@$(BIN)/voice-gateway serve $(ARGS)

test: setup-dev
	$(BIN)/python -m pytest -q $(SPREAD) -m "not slow and not all" $(ARGS) $(NONE_IS_FINE)
	$(BIN)/python -m pytest -q -m "slow and not all" $(ARGS) $(NONE_IS_FINE)

test-all: setup-dev
	$(BIN)/python -m pytest -q $(SPREAD) -m "not slow and not all" $(ARGS) $(NONE_IS_FINE)
	$(BIN)/python -m pytest -q -m "slow or all" $(ARGS) $(NONE_IS_FINE)

check: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_imports.py

bench: setup-dev
	$(BIN)/python -m bench $(ARGS)

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache
