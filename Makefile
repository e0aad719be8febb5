# strongroom: `make` alone prints this menu.
#
#   make serve    install what is needed into .venv, write a .env if there is none, build the web app if it changed, start
#                 the server
#   make test     every test on SQLite and on PostgreSQL but those of make soak; the last lines say what ran and what was
#                 left out, and why. PYTEST="-k tour" chooses
#   make quick    a fixed choice of the tests for the inner loop, in less than two minutes
#   make test-setup  install or unpack what tests need besides Python: npm packages, a server of S3, and what make unpack
#                 unpacks; names what cannot be had
#   make coverage which lines and branches the tests run, server processes included, one table by folder;
#                 PYTEST="tests/store" measures a part
#   make mutation plants small faults in the sources, one at a time, and prints those that no test notices; after
#                 make coverage. MUTATION="--guards --count 50 --seed 1"; --help names all options
#   make npm      install the npm packages of js/, web/ and of a server of S3 into the project's own folders
#   make unpack   unpack the programs of Debian that tests run (caddy, nginx, haproxy, PgBouncer, PostgreSQL 15, pgBackRest,
#                 promtool, libfaketime, zsh, fish) into .venv/unpacked where they are not installed (needs apt)
#   make js       the JavaScript client: install its packages into js/node_modules, check its types, bundle it into
#                 js/dist and hold its sizes against their budget. Node.js comes from .venv where the machine has none
#   make web      the web app: install its packages into web/node_modules, check its types, bundle it into the package,
#                 where the server finds it, and hold the first load against its budget
#   make soak     the long versions of the tests that kill, race, fuzz, fill disks and attack through proxies, and whole
#                 tables, and mutation, two parts at a time. Parts alone: soak-sync, soak-faults, soak-client, soak-security,
#                 soak-js, soak-operating, soak-server, soak-proxies, soak-store, soak-cluster, soak-fairness, soak-web,
#                 soak-people, soak-transfer, soak-mutation, soak-alone (what needs a quiet machine). KILLS=10000 make soak-faults sets a
#                 size; docs/testing.md names all
#   make bench    strongroom beside its rivals, one table of ratios (about 15 minutes; needs Node.js and npm).
#                 QUICK=1 takes two minutes; bench-all measures everything that the pages show and writes them anew;
#                 bench-growth, bench-streams, bench-sync, bench-client, bench-js, bench-profile, bench-report and bench-setup are
#                 explained in bench/README.md
#   make check    linters, formatters' checks and type checkers, for Python and for TypeScript
#   make format   let the formatters and the linters mend what they can
#   make generate write the files that are generated from others
#   make lock     resolve the dependencies anew and write the lock files (needs uv)
#   make build    sdist and wheel of the checked-out commit into dist/, the same bytes wherever they are built
#   make release  VERSION=x.y.z: version, changelog, build, upgrade test, commit and tag; pushes nothing, and leaves
#                 everything as it was if a step fails
#   make clean    remove .venv and caches; never your data or .env

PYTHON ?= python3
BIN := .venv/bin
# pip comes from the machine and installs into .venv: a machine with Python and pip is enough.
PIP := $(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check --quiet
# The tests start Python hundreds of times: compiled modules are kept, even where the machine is set not to.
unexport PYTHONDONTWRITEBYTECODE
# Databases of `make test` lie in memory where there is room: most of their time would go into waiting for the disk, and
# a process that is killed loses nothing that it has written, there as on a disk. `make soak` uses the disk for faults,
# for what an operator does and for upgrades.
IN_MEMORY = $(shell d=/dev/shm; test -w $$d && test $$(df -Pk $$d | awk 'END {print $$4}') -gt 4194304 && echo TMPDIR=$$d)

.PHONY: help serve test quick test-setup npm js web coverage mutation soak unpack bench bench-setup bench-growth bench-streams bench-sync bench-client bench-js bench-profile bench-report bench-all check format generate lock build release clean

help:
	@sed -n 's/^#   \{0,1\}//p' Makefile

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("strongroom needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv --without-pip .venv

.venv/.serve: requirements.lock pyproject.toml | .venv/bin/python
	$(PIP) install --require-hashes --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.dev: requirements-dev.lock .venv/.serve
	$(PIP) install --require-hashes --requirement requirements-dev.lock
	@touch $@

serve: .venv/.serve
	@test -f .env || $(BIN)/strongroom init
	@$(BIN)/python -m tools.web
	@exec $(BIN)/strongroom serve

# Compiles the test modules once, two processes at a time: otherwise each process of `make test` would compile them all.
.venv/.compiled: .venv/.dev $(wildcard tests/*.py tests/*/*.py tests/*/*/*.py)
	@ls -d tests/*/ tests/test_*.py | xargs -n 8 -P 2 $(BIN)/python -m pytest --collect-only -qq >/dev/null || true
	@touch $@

# How the installation of packages fails.
NO_PACKAGES = { echo "The packages of $(@D:/node_modules=)/ cannot be installed: npm needs its registry, and says above what is missing." >&2; exit 1; }

js/node_modules/.done: js/package.json js/package-lock.json js/.npmrc | .venv/.dev
	$(BIN)/python -m tools.node npm ci --prefix js || $(NO_PACKAGES)
	@touch $@

js: js/node_modules/.done
	$(BIN)/python -m tools.node node js/build.js

web/node_modules/.done: web/package.json web/package-lock.json web/.npmrc | .venv/.dev
	$(BIN)/python -m tools.node npm ci --prefix web || $(NO_PACKAGES)
	@touch $@

web: web/node_modules/.done
	$(BIN)/python -m tools.node node web/build.js --check

# Where npm packages cannot be had, the tests that need them are skipped, and with CI=true they fail.
npm: .venv/.dev
	@for target in js/node_modules/.done web/node_modules/.done .venv/s3/.done; do \
	  $(MAKE) --no-print-directory $$target || echo "No npm packages here: $$target cannot be made."; done

test: .venv/.dev .venv/.compiled npm
	$(IN_MEMORY) $(BIN)/python -m tests.run $(PYTEST)

quick: .venv/.dev .venv/.compiled
	$(IN_MEMORY) $(BIN)/python -m tests.run --quick $(PYTEST)

test-setup: npm unpack
	$(BIN)/python -m tests.kit.requirements

# Measuring takes two to three times as long as the tests alone; tests of time and memory may fail under it.
coverage: .venv/.dev .venv/.compiled
	$(IN_MEMORY) $(BIN)/python -m tests.coverage --numprocesses $(or $(PARALLEL),6) --dist worksteal $(PYTEST)

.venv/coverage/data:
	-$(MAKE) coverage

mutation: .venv/.dev .venv/coverage/data
	$(IN_MEMORY) $(BIN)/python -m tests.mutation $(MUTATION)

.venv/soak/.done: requirements-soak.lock | .venv/bin/python
	$(PYTHON) -m venv --without-pip .venv/soak
	$(PYTHON) -m pip --python .venv/soak/bin/python --disable-pip-version-check --quiet install --require-hashes --requirement $<
	@touch $@

.venv/s3/.done: tests/kit/servers/s3rver/package.json tests/kit/servers/s3rver/package-lock.json | .venv/.dev
	@mkdir -p .venv/s3
	cp tests/kit/servers/s3rver/package.json tests/kit/servers/s3rver/package-lock.json tests/kit/servers/s3rver/.npmrc .venv/s3/
	$(BIN)/python -m tools.node npm ci --prefix .venv/s3
	@touch $@

# No mark of being done: it is quick where all are there, and tries again where one could not be had.
unpack: .venv/.dev
	$(BIN)/python -m tests.kit.programs.unpack

# The parts of `make soak` are in tests/soak.py.
SOAK_NEEDS := .venv/.dev .venv/soak/.done npm unpack
SOAK := SCHEMATHESIS=$(CURDIR)/.venv/soak/bin/schemathesis $(BIN)/python -m tests.soak

soak: $(SOAK_NEEDS)
	$(SOAK)

soak-%: $(SOAK_NEEDS)
	$(SOAK) $*

# What the benchmark needs lies in bench/.work, apart from everything else.
BENCH_PYTHON := bench/.work/venv/bin/python

bench/.work/venv/.done: bench/requirements.lock
	$(PYTHON) -m venv --without-pip bench/.work/venv
	$(PYTHON) -m pip --python $(BENCH_PYTHON) --disable-pip-version-check --quiet install --require-hashes --requirement $<
	@touch $@

bench/.work/hono/.done: bench/peers/hono/package.json bench/peers/hono/package-lock.json
	@mkdir -p bench/.work/hono
	cp bench/peers/hono/package.json bench/peers/hono/package-lock.json bench/peers/hono/.npmrc bench/.work/hono/
	@if command -v npm >/dev/null; then cd bench/.work/hono && npm ci; else echo "No npm here: the Hono twin is left out."; fi
	@touch $@

bench-setup: .venv/.serve bench/.work/venv/.done bench/.work/hono/.done

bench: bench-setup bench-client
	$(BENCH_PYTHON) -m bench $(if $(QUICK),--quick) --json bench/.work/run.json $(BENCH)

bench-client: .venv/.dev
	@mkdir -p bench/.work
	$(BIN)/python -m bench.client $(if $(QUICK),--documents 5000) --json bench/.work/client.json

bench-js: .venv/.dev js/node_modules/.done
	$(BIN)/python -m bench.javascript $(if $(QUICK),--documents 1000)

bench-growth: bench-setup
	$(BENCH_PYTHON) -m bench.growth --json bench/.work/growth.json

bench-streams: .venv/.dev
	$(BIN)/python -m bench.streams $(BENCH)

bench-sync: .venv/.dev
	@mkdir -p bench/.work
	$(BIN)/python -m bench.sync --json bench/.work/sync.json $(BENCH)

bench-profile: bench-setup
	$(BENCH_PYTHON) -m bench.profile $(BENCH)

# What the pages show is kept, one folder for each architecture.
RESULTS = bench/results/$(shell uname -m)

bench-all: bench-setup .venv/.dev
	@mkdir -p $(RESULTS)
	$(BENCH_PYTHON) -m bench --json $(RESULTS)/run.json --note "$(NOTE)"
	$(BENCH_PYTHON) -m bench.growth --json $(RESULTS)/growth.json
	$(BIN)/python -m bench.sync --json $(RESULTS)/sync.json
	$(BIN)/python -m bench.client --json $(RESULTS)/client.json
	$(BENCH_PYTHON) -m bench.profile --json $(RESULTS)/profile.json
	$(MAKE) bench-report

bench-report:
	$(PYTHON) -m bench.report

check: .venv/.dev js/node_modules/.done web/node_modules/.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.check_typescript

format: .venv/.dev js/node_modules/.done
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m tools.check_typescript --fix

generate: .venv/.dev
	$(BIN)/python -m tools.generate_blocking
	$(BIN)/python -m tools.generate_client_reference
	$(BIN)/python -m tools.generate_javascript_reference
	$(BIN)/python -m tools.generate_man_page

# --universal: one lock for every platform. The lock holds versions and hashes and names no host.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade \
	  --quiet bench/requirements.in --output-file bench/requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade \
	  --quiet requirements-soak.in --output-file requirements-soak.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade \
	  --quiet --extra server pyproject.toml requirements-build.in --output-file requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade \
	  --quiet --extra client --constraint requirements.lock pyproject.toml --output-file requirements-client.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade \
	  --quiet --constraint requirements.lock --constraint requirements-client.lock requirements-dev.in --output-file requirements-dev.lock

build: .venv/.dev
	$(BIN)/python -m tools.build

release: check
	$(BIN)/python -m tools.release $(VERSION)

clean:
	rm -rf .venv js/node_modules js/dist web/node_modules src/strongroom/server/web/static .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
