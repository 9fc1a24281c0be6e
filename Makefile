# Every target sets up what it needs: a bare Debian 12 with make and Python 3.11, as root or with sudo, is enough.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= python3
BIN := .venv/bin
# More processes than cores: many tests wait for a lease or a signal. Each starts PostgreSQL servers of its own on first use.
JOBS ?= 4
# `make test k=snooze` runs the tests whose names contain "snooze".
SELECT := $(if $(k),-k '$(k)')
# Each writes one page from the code, and with --check says whether the committed page is up to date.
GENERATED := lifecycle_diagram.py cli_reference.py
PYTEST := $(BIN)/python -m pytest -q
# Files of tests need not outlive the machine, and a commit on a disk takes ten times as long. Not where that is tiny.
export PYTEST_DEBUG_TEMPROOT := $(shell df -Pk /dev/shm 2>/dev/null | awk 'END { if ($$4 > 4000000) print "/dev/shm" }')
# Thousands of processes are started: where this is set, each compiles every module anew, which takes it half its time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo demo-site dev test test-browser test-long test-previous check format generate typing docs scenarios mutants \
	drill drill-short bench bench-beside bench-control bench-flat bench-peers bench-short bench-upload bench-web fuzz load soak soak-short ci ci-long clean

help: ## Lists every target
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.venv/.ready: pyproject.toml scripts/constraints.txt scripts/setup-python.sh scripts/apt.sh
	@PYTHON='$(PYTHON)' scripts/setup-python.sh

.PHONY: services
services: .venv/.ready
	@scripts/setup-services.sh

# What a browser, and a load from outside, are made with.
.PHONY: chromium wrk
chromium wrk: services
	@scripts/setup-programs.sh $@

setup: services ## Makes .venv and installs the servers that the tests start; every target does so by itself

demo: .venv/.ready ## Resizes photographs with a worker that is killed midway, and checks every file (photos=DIR: your own)
	$(BIN)/duly demo $(if $(photos),--photos '$(photos)')

demo-site: .venv/.ready ## Opens a photo site with its worker and its dashboard, until Ctrl-C (options='--port 9000')
	$(BIN)/duly demo --site $(options)

dev: .venv/.ready ## Runs a worker on the demo tasks over var/dev.db
	@mkdir -p var
	DULY_URL=sqlite:///var/dev.db $(BIN)/duly worker $(or $(app),duly.demo.app)

test: services ## Runs the tests (k=WORDS: only those whose names match)
	$(PYTEST) -n $(JOBS) --dist worksteal $(SELECT)

test-browser: chromium ## Walks every page in a real Chromium; screenshots go to build/screenshots (k=WORDS: only those)
	$(PYTEST) --browser -m browser tests/browser $(SELECT)

test-long: services ## Runs the long tests: 100,000 steps of the store model, every seed of the simulation
	$(PYTEST) -n $(JOBS) --dist worksteal --long -m long --timeout 3600 $(SELECT)

test-previous: services ## Runs the previous release's store tests against this release's schema
	JOBS=$(JOBS) scripts/previous_release.sh $(SELECT)

check: .venv/.ready ## Lint, format, import contracts, types, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	for page in $(GENERATED); do $(BIN)/python "scripts/$$page" --check; done

format: .venv/.ready ## Formats the code and applies the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: .venv/.ready ## Writes the pages that are made from the code
	for page in $(GENERATED); do $(BIN)/python "scripts/$$page"; done

typing: .venv/.ready ## Checks the public types as a user sees them, with mypy and pyright
	$(BIN)/mypy typing_tests
	$(BIN)/pyright

docs: services ## Runs every code block of README.md and docs/
	$(PYTEST) tests/docs

scenarios: services ## Runs the scenarios by behaviour, and checks that the index names a test for each
	$(PYTEST) -n $(JOBS) --dist worksteal tests/scenarios

mutants: services ## Breaks transitions, fences and orders one by one: a test must catch each
	$(BIN)/python scripts/mutants.py

drill: services ## Kills workers, databases and connections under load, and prints the ledger
	$(BIN)/python -m tests.drill

drill-short: services ## The same for about two minutes
	$(BIN)/python -m tests.drill --short

bench: services ## Measures duly and the limits of this machine (options='--runs 1 --write docs/performance.md')
	$(BIN)/python -m bench.peers.run $(options)
	$(BIN)/python -m bench.latency

bench-peers: services ## The same beside other queues, each installed for it (PEERS=pgqueuer,huey: only those)
	bench/peers/setup.sh
	$(BIN)/python -m bench.peers.run --peers '$(or $(PEERS),all)' $(options)

bench-flat: services ## Do the stores stay as fast under old snapshots, millions of jobs and their retention? (options=…)
	$(BIN)/python -m bench.flat $(options)

bench-control: services ## What do keys, tenants, limits and depths cost? (options='--write docs/performance.md')
	$(BIN)/python -m bench.control $(options)

bench-web: services ## How long do the dashboard and the look-ups of the API take with 5,000,000 jobs? (options='--write docs/performance.md')
	$(BIN)/python -m bench.web $(options)

bench-beside: services ## Measures what the application in the same database feels, NOTIFY, PgBouncer, and a far database
	$(BIN)/python -m bench.beside; beside=$$?; $(BIN)/python -m bench.remote && exit $$beside

bench-upload: .venv/.ready ## How long does a sender of a picture wait while the worker has its hands full? (options='--uploads 1000')
	$(BIN)/python -m bench.upload $(options)

fuzz: services ## Asks the HTTP server whatever its OpenAPI document allows and forbids (options='--examples 300')
	$(BIN)/python scripts/fuzz_http.py $(options)

load: wrk ## Asks the HTTP server for jobs with wrk, kills it three times, and looks for what it had answered (options=…)
	$(BIN)/python -m bench.load $(options)

bench-short: services ## One iteration of each measurement, to see that they run
	$(BIN)/python -m bench.peers.run --once
	$(BIN)/python -m bench.latency --once
	$(BIN)/python -m bench.worker_path --once
	$(BIN)/python -m bench.engine_sqlite --once
	$(BIN)/python -m bench.beside --once
	$(BIN)/python -m bench.remote --once
	$(BIN)/python -m bench.flat --once
	$(BIN)/python -m bench.control --once
	$(BIN)/python -m bench.upload --once
	$(BIN)/python -m bench.web --once

soak: services ## Runs 4,000 jobs/s on PostgreSQL and 1,500/s on SQLite for 30 minutes each (minutes=N: so many)
	$(BIN)/python -m bench.soak $(if $(minutes),--minutes $(minutes))

soak-short: services ## The same for a minute at a low rate, to see that it runs and loses nothing
	$(BIN)/python -m bench.soak --short

.PHONY: photos
photos:
	@scripts/setup-photos.sh

ci: services chromium ## All that a change must pass, within 30 minutes on 2 cores
	scripts/side_by_side.sh check typing
	$(MAKE) test test-browser
	scripts/side_by_side.sh drill-short soak-short
	$(MAKE) mutants bench-short photos demo

ci-long: ci test-long test-previous drill bench ## The same with everything that takes long

clean: ## Removes the environment, caches and local data
	rm -rf .venv var build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
