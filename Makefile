# What one can do with this repository: `make` alone tells. CI and people run the same targets.
#
# Everything is installed into .venv, in steps whose stamps lie there too; what is up to date is
# not touched again. The shell behind the steps is in scripts/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:

# Which Python makes the environment: 3.11 or newer.
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
# Environments cannot be moved: a checkout in another place makes its own.
STAMPS := $(VENV)/.stamps$(subst /,-,$(CURDIR))

# rustup installs here, and not every shell looks here. PyO3 and maturin have to find one Python.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

# Folders count as well: a file that was removed changes its folder.
NATIVE_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates \( -name fuzz -o -path crates/client/model \) -prune -o \
	\( -type d -o -name '*.rs' -o -name '*.sh' -o -path '*/src/*.hpp' -o -name Cargo.toml \) -print)
CAPI_SOURCES := $(shell find crates/capi -type f ! -name '*.md')

# Where `make install-c` installs to.
PREFIX ?= /usr/local
# Where `make conda` takes what it needs from, and whether compilers and Python are this machine's.
CHANNEL ?= conda-forge
EXTERNALS ?= no
# Where `make docs` builds the documentation site.
SITE ?= target/site
# How many mutants `make test-mutants` tries, or all of them; with another seed it tries others.
MUTANTS ?= 60
SEED ?= 1

.PHONY: help
help: ## list what one can do
	@echo 'make TARGET, where TARGET is one of'
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { sub("%", "AREA", $$1); printf "  %-12s %s\n", $$1, $$2 }' \
		$(MAKEFILE_LIST)

# ---- What users need

.PHONY: install
install: $(STAMPS)/bytecode $(STAMPS)/capi $(STAMPS)/completion ## make .venv with the programs, and the library for C
	@# A compiler for Fortran may have come since the library was built.
	@[[ -e $(VENV)/include/gridrpc/fortran/grpc.mod ]] || ! command -v gfortran >/dev/null || \
		scripts/build-capi $(VENV)

.PHONY: demo
demo: $(STAMPS)/bytecode ## run the compute-grid benchmark on 100 workers, and write its report
	@scripts/demo

$(STAMPS)/venv: scripts/make-venv scripts/common.sh
	@scripts/make-venv '$(PYTHON)' $(VENV)
	@mkdir -p $(@D) && touch $@

$(STAMPS)/packages: $(STAMPS)/venv pyproject.toml constraints.txt scripts/requirements
	@scripts/install-packages $(BIN)/python build wheel dependencies gridbench joblib mpi progress
	@touch $@

$(STAMPS)/native: $(STAMPS)/packages scripts/build-native scripts/build-modules scripts/build-task \
		scripts/fetch-plotly-basic \
		$(NATIVE_SOURCES) python/gridbench/native/tasks.idl
	@scripts/build-native $(VENV)
	@touch $@

# Where Python may not write bytecode itself (PYTHONDONTWRITEBYTECODE), each start of a client and of
# a spawner would else compile the package again: 20 ms each.
$(STAMPS)/bytecode: $(STAMPS)/native $(shell find python -name '*.py')
	@$(BIN)/python -m compileall -q python
	@touch $@

# For C, C++ and Fortran programs: include/, lib/ and bin/ in the environment.
$(STAMPS)/capi: $(STAMPS)/native scripts/build-capi $(CAPI_SOURCES)
	@scripts/build-capi $(VENV)
	@touch $@

# What shells complete, once the environment is active.
$(STAMPS)/completion: $(STAMPS)/capi scripts/install-completion scripts/build-completion \
		python/gridbench/completion.py
	@scripts/install-completion $(VENV)
	@touch $@

.PHONY: install-c
install-c: ## install the library for C, C++ and Fortran into PREFIX
	@scripts/build-capi '$(PREFIX)'

.PHONY: java
java: install jdk ## build the library for Java, java/target/gridrpc-*.jar, and put JNA beside it
	@$(MAVEN_QUIET) -f java/pom.xml -DskipTests package dependency:copy-dependencies -DincludeScope=runtime

.PHONY: wheel
wheel: $(STAMPS)/packages ## build the wheel, which has everything, in dist/
	@scripts/build-packages $(BIN)/python wheel

.PHONY: sdist
sdist: $(STAMPS)/packages ## build the source distribution in dist/
	@scripts/build-packages $(BIN)/python sdist

.PHONY: deb
deb: $(STAMPS)/packages debian-tools ## build Debian's packages in dist/: the program, C library, headers, Python
	@scripts/build-packages $(BIN)/python deb

.PHONY: conda
conda: $(STAMPS)/packages ## build the conda package in dist/ (EXTERNALS=yes: with what this machine has)
	@EXTERNALS='$(EXTERNALS)' CHANNEL='$(CHANNEL)' scripts/build-packages $(BIN)/python conda

.PHONY: release
release: $(STAMPS)/release-packages $(if $(DRY_RUN),,debian-tools) ## check and build a release in dist/, and print how to publish it (DRY_RUN=yes: check only)
	@$(BIN)/python scripts/release $(if $(DRY_RUN),--dry-run)

.PHONY: docs
docs: install $(STAMPS)/docs-packages ## build the documentation site, without a network; dead links are errors
	@scripts/build-docs $(BIN)/python html '$(SITE)'

# ---- What developers need

# In more processes than a small machine has processors, as tests mostly wait for what others do; one
# file in one of them, in the order of tests/conftest.py. One that dies is not replaced: the run would
# not end. They run real clusters on a machine whose other programs nobody controls: a test that fails
# is tried once more, and listed as RERUN; what fails again has failed. RERUNS=0 tries each only once.
# One that hangs fails after ten minutes.
PROCESSES ?= 5
RERUNS ?= 1
PYTEST := $(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 \
	--reruns $(RERUNS) --reruns-delay 2 -r fER --timeout 600

# With CARGO_FLAGS=--release, as in CI, tests in Rust share all crates that they need with what `make install` builds.
CARGO_TEST := cargo test --locked --quiet $(CARGO_FLAGS)

.PHONY: test
test: $(STAMPS)/venv compilers ## run all tests
	@# Side by side, as each waits for the network, or for one large crate, in most of its time.
	printf '%s\n' 'install test-packages' 'test-programs test-java test-model' | xargs -L 1 -P 2 scripts/make-timed
	@# Tests in Python wait for processes and for the network: what the others compute fills these gaps.
	printf '%s\n' test-python 'test-java-api test-lisp test-rust test-fuzz' | xargs -L 1 -P 2 scripts/make-timed

.PHONY: test-one
test-one: $(if $(filter crates/%,$(T)),$(STAMPS)/venv,install $(STAMPS)/test-packages) ## run the tests that T selects: T=tests/FILE.py, T=tests/FILE.py::NAME, T=crates/core, T=NAME
	@scripts/test-one $(BIN)/python $(T)

.PHONY: test-quick
test-quick: compilers install $(STAMPS)/test-packages ## the essential tests: pure crates, calls, modules, losses, documents
	$(CARGO_TEST) -p gridrpc-wire -p gridrpc-idl -p gridrpc-core -p gridbench-pipeline
	$(PYTEST) $(addprefix tests/gridrpc/test_,grid_calls.py grid_config.py \
		grid_errors.py grid_losses.py grid_map.py grid_native.py grid_shared.py map_chunks.py modules_calls.py \
		modules_arrays.py modules_texts.py) tests/docs/test_architecture.py

.PHONY: test-rust
test-rust: $(STAMPS)/venv compilers sshd ## unit tests, simulation, native grids, stubs and headers
	@# Documentation of the libraries is checked by the way.
	RUSTDOC=$(CURDIR)/scripts/rustdoc $(CARGO_TEST) --workspace

.PHONY: test-model
test-model: ## try the hand-over of the reader's role, and of answers, in all orders of their threads
	cd crates/client/model && env -u CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS -u CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS \
		cargo test --release --quiet --target-dir $(CURDIR)/target/model

# All that is parsed before a user is authenticated, and the IDL.
FUZZ_TARGETS := wire/decode server/certificates server/handshake server/requests idl/parse idl/extents
# How long `make fuzz` throws bytes at each.
HOURS ?= 1

.PHONY: test-fuzz
test-fuzz: ## throw broken bytes at parsers, 10 s each, and print how many were tried
	scripts/fuzz 10 $(FUZZ_TARGETS)

.PHONY: fuzz
fuzz: ## the same for HOURS=1 each, guided by the coverage of all crates
	INSTRUMENT=all scripts/fuzz $$(($(HOURS) * 3600)) $(FUZZ_TARGETS)

# Prints warnings and the results of tests. Builds of seconds gain nothing by compiling Java's code further than
# the first time.
MAVEN_OPTIONS := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn
MAVEN_QUIET := MAVEN_OPTS='$(MAVEN_OPTIONS)' mvn -B -ntp
MAVEN_TEST := MAVEN_OPTS='$(MAVEN_OPTIONS) -Dorg.slf4j.simpleLogger.log.org.apache.maven.plugin.surefire=info' \
	mvn -B -ntp -fae

.PHONY: test-java
test-java: jdk ## unit tests of the data-grid benchmark's clients and members
	$(MAVEN_TEST) -f datagrid/pom.xml -pl core test

.PHONY: test-java-api
test-java-api: install jdk ## the library for Java, with real workers
	$(MAVEN_TEST) -f java/pom.xml test $(if $(CHECKED),-Dgridrpc.prefix='$(CHECKED)' -Dgridrpc.preload=libasan.so.8)

.PHONY: test-lisp
test-lisp: install lisp ## the library for Common Lisp, with real workers
	@mkdir -p target/lisp && cd target/lisp && ../../$(BIN)/gridrpc compile ../../tests/capi/modules/cases.idl
	@# Memory that is freed, or new, holds garbage, so that use of it shows. Valgrind and glibc's checks cannot run SBCL.
	GLIBC_TUNABLES=glibc.malloc.perturb=165 LD_PRELOAD=$(if $(CHECKED),libasan.so.8) \
		GRIDRPC_PREFIX='$(or $(CHECKED),$(CURDIR)/$(VENV))' GRIDRPC_MODULE_PATH=target/lisp \
		timeout 300 sbcl --noinform --non-interactive --eval '(setf *compile-verbose* nil)' \
		--eval '(require :asdf)' --eval '(asdf:load-asd (truename "lisp/gridrpc.asd"))' \
		--eval '(handler-bind ((warning (function muffle-warning))) (asdf:load-system "gridrpc/tests"))' \
		--eval '(asdf:test-system "gridrpc")'

# SBCL and the JVM handle signals themselves, and have memory of their own that looks lost. SBCL leaves C functions without
# a return, so their variables lie apart from its stack. What is freed is watched for up to a megabyte.
ASAN := detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:use_sigaltstack=0
ASAN := $(ASAN):detect_stack_use_after_return=1:quarantine_size_mb=1

.PHONY: test-memory
test-memory: install jdk lisp ## the libraries for Java and Lisp on a C library with the address sanitizer: not part of `make test`
	SANITIZER=address scripts/build-capi target/memory
	scripts/test-sanitizer target/memory
	ASAN_OPTIONS=$(ASAN) $(MAKE) CHECKED='$(CURDIR)/target/memory' test-java-api test-lisp

.PHONY: test-datagrids
test-datagrids: install $(STAMPS)/test-packages redis slurm datagrid-engines ## data grids that lose members, in ten minutes: not part of `make test`
	$(MAVEN_TEST) -f datagrid/pom.xml test
	$(BIN)/python -m pytest -m datagrids --durations 15 tests

.PHONY: test-python
test-python: test-programs test-environment ## end to end, with real processes, a browser, and the packages
	@# Ends with the slowest tests, and with the CPU time of each file. target/tests.xml has all tests.
	$(PYTEST) --durations 40 --durations-min 5 --junitxml target/tests.xml

# What the tests need of this machine, and in .venv.
.PHONY: test-programs test-packages test-environment
TEST_PROGRAMS := compilers mpi browser debian-tools simgrid links sshd slurm gridengine sshfs gfarm redis etcd openssl \
	rpc-peers fio pssh cpython-tests jdk lisp languages
test-programs: system-packages $(TEST_PROGRAMS) postgres
.PHONY: system-packages
system-packages:
	@scripts/install-missing $(TEST_PROGRAMS)
test-packages: $(STAMPS)/test-packages $(STAMPS)/docs-packages
test-environment: install test-packages $(STAMPS)/asserts engines datagrid-engines java

# pytest compiles all tests to have their asserts tell more: once, instead of in each of its processes.
# What it cannot compile, it tells when it runs them.
$(STAMPS)/asserts: $(STAMPS)/native $(STAMPS)/test-packages $(shell find tests -name '*.py')
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -qq -n 0 >/dev/null 2>&1 || true
	@touch $@

.PHONY: test-htcondor
test-htcondor: install $(STAMPS)/test-packages htcondor ## grids and engines on HTCondor, which is fetched: not part of `make test`
	$(BIN)/python -m pytest -m htcondor --durations 15 tests

.PHONY: test-octave
test-octave: compilers install $(STAMPS)/test-packages languages octave ## the program in GNU Octave, 230 MB of packages: not part of `make test`
	$(BIN)/python -m pytest -m octave tests/docs

.PHONY: test-docs
test-docs: compilers install $(STAMPS)/test-packages $(STAMPS)/docs-packages mpi browser engines jdk lisp languages postgres ## run all commands and programs of README, docs and examples as printed
	$(BIN)/python -m pytest tests/docs

.PHONY: test-mutants
test-mutants: install $(STAMPS)/test-packages $(STAMPS)/mutants-packages browser ## see whether tests notice small changes to what gridbench computes (MUTANTS=all: each)
	$(BIN)/python scripts/test-mutants --count '$(MUTANTS)' --seed '$(SEED)'

.PHONY: test-big-endian
test-big-endian: install $(STAMPS)/test-packages ## call a server on s390x, whose memory is big-endian, under QEMU
	@scripts/test-big-endian $(BIN)/python

.PHONY: docs-links
docs-links: install $(STAMPS)/docs-packages ## ask the network whether links of the documents to other sites are alive
	@scripts/build-docs $(BIN)/python linkcheck target/site-links

.PHONY: browser
browser: ## see that Chromium and its driver are there
	@scripts/ensure-browser

.PHONY: compilers
compilers: ## see that compilers for C++ and Fortran and OpenBLAS are there
	@scripts/ensure-compilers

.PHONY: debian-tools
debian-tools: ## see that what builds and tests Debian's packages is there
	@scripts/ensure-debian-tools

.PHONY: simgrid
simgrid: ## see that SimGrid is there
	@scripts/ensure-simgrid

.PHONY: links
links: ## see that what makes shaped links is there
	@scripts/ensure-links

.PHONY: sshd
sshd: ## see that what makes hosts with sshds on this machine is there
	@scripts/ensure-sshd

.PHONY: slurm
slurm: ## see that what makes a Slurm of several nodes on this machine is there
	@scripts/ensure-slurm

.PHONY: gridengine
gridengine: ## see that what makes a Grid Engine on this machine is there
	@scripts/ensure-gridengine

.PHONY: htcondor
htcondor: ## see that what makes a pool of HTCondor on this machine is there
	@scripts/ensure-htcondor

.PHONY: sshfs
sshfs: ## see that what makes folders that come over the network is there
	@scripts/ensure-sshfs

.PHONY: gfarm
gfarm: ## see that what makes a Gfarm on this machine is there
	@scripts/ensure-gfarm

.PHONY: postgres
postgres: ## see that PostgreSQL's server is there
	@scripts/ensure-postgres

.PHONY: redis
redis: ## see that Redis is there
	@scripts/ensure-redis

.PHONY: etcd
etcd: ## see that etcd is there, which directories share announcements through
	@scripts/ensure-etcd

.PHONY: jdk
jdk: ## see that a JDK and Maven are there, which data grids are measured with
	@scripts/ensure-jdk

.PHONY: lisp
lisp: ## see that SBCL and CFFI are there, which programs in Common Lisp need
	@scripts/ensure-lisp

.PHONY: languages
languages: ## see that R, Go and Node are there, which docs/languages.md has programs in
	@scripts/ensure-languages

.PHONY: octave
octave: ## see that GNU Octave is there, which docs/languages.md has a program in
	@scripts/ensure-octave

.PHONY: mpi
mpi: ## see that Open MPI is there
	@scripts/ensure-mpi

.PHONY: openssl
openssl: ## see that what compiles programs with bare TLS is there
	@scripts/ensure-openssl

.PHONY: rpc-peers
rpc-peers: $(STAMPS)/venv ## see that gRPC for C++, wrk and ghz are there, which a server is measured beside and by
	@scripts/ensure-rpc-peers $(VENV)

.PHONY: fio
fio: ## see that fio is there, which can be a task of synchronised rounds
	@scripts/ensure-fio

.PHONY: pssh
pssh: ## see that parallel ssh is there, which synchronised rounds are measured beside
	@scripts/ensure-pssh

.PHONY: cpython-tests
cpython-tests: ## see that CPython's own tests are there
	@scripts/ensure-cpython-tests

.PHONY: engines
engines: install mpi ## install the engines that gridrpc is measured beside
	@$(BIN)/gridbench engines install --all

.PHONY: datagrid-engines
datagrid-engines: install jdk ## build the data grids that are measured
	@$(BIN)/gridbench data engines install --all

.PHONY: lint
lint: lint-rust lint-python lint-prose lint-types lint-java ## check format, style, texts and types (with -k: all of them)

.PHONY: lint-rust
lint-rust: $(STAMPS)/venv
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

.PHONY: lint-python
lint-python: $(STAMPS)/lint-packages
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: lint-prose
lint-prose: $(STAMPS)/lint-packages
	$(BIN)/python scripts/lint-prose

.PHONY: lint-types
lint-types: install $(STAMPS)/test-packages $(STAMPS)/lint-packages
	$(BIN)/mypy --strict python/gridrpc python/gridbench python/gridbench_testbed python/benchmarks
	$(BIN)/python -m mypy.stubtest gridrpc._native \
		--allowlist scripts/stubtest-allowlist --ignore-unused-allowlist

# All warnings of the compiler are errors.
.PHONY: lint-java
lint-java: jdk
	mvn -q -B -ntp -f datagrid/pom.xml test-compile
	mvn -q -B -ntp -f java/pom.xml test-compile

.PHONY: format
format: $(STAMPS)/lint-packages ## bring all sources into the common format
	cargo fmt --all
	$(BIN)/ruff format

.PHONY: bench
bench: compilers openssl install datagrid-engines $(STAMPS)/test-packages ## measure what only gridrpc does, quickly, beside limits
	$(BIN)/python -m benchmarks

.PHONY: bench-micro
bench-micro: compilers install engines ## compare all engines, in an hour, and write docs/performance.md
	$(BIN)/gridbench micro --out runs/micro || test $$? = 1  # a peer that fails is a result
	mkdir -p docs/benchmarks && cp runs/micro/results.json docs/benchmarks/micro.json
	$(BIN)/python -m benchmarks.pages.performance

.PHONY: bench-simulate
bench-simulate: compilers install simgrid ## hold the simulator against SimGrid and real runs, and simulate large grids
	@mkdir -p docs/benchmarks
	$(BIN)/python -m benchmarks.pages.simulate costs --out docs/benchmarks/simulate.json
	$(BIN)/python -m benchmarks.pages.simulate runs --out docs/benchmarks/simulated-runs.json

.PHONY: bench-advice
bench-advice: install ## run what is advised for ten works beside other splits, in some 15 minutes
	@mkdir -p docs/benchmarks
	$(BIN)/python -m benchmarks.pages.advice calls --out docs/benchmarks/first-advice.json
	$(BIN)/python -m benchmarks.pages.advice splits --out docs/benchmarks/advice.json

.PHONY: bench-scenarios
bench-scenarios: install gridengine ## run scenarios on Grid Engine beside what is published, in 30 minutes
	@$(BIN)/python -m benchmarks.pages.recipes scenarios

.PHONY: bench-measured
bench-measured: compilers install ## run the scenarios on this machine with gridrpc, a pool and Ray, in 65 minutes
	$(BIN)/gridbench engines install ray
	@$(BIN)/python -m benchmarks.pages.measured

.PHONY: bench-hosts
bench-hosts: compilers openssl links sshd install engines ## measure many machines beside the network and Ray, Dask, MPI
	@mkdir -p docs/benchmarks
	$(BIN)/python -m benchmarks hosts --full --out docs/benchmarks/hosts.json \
		--markdown docs/benchmarks/hosts.md || test $$? = 1  # reports what it could not measure

.PHONY: bench-cluster
bench-cluster: install slurm gridengine htcondor sshfs ## measure workers that batch systems start, in an hour at most
	@mkdir -p docs/benchmarks
	$(BIN)/gridbench engines install dask hyperqueue
	$(BIN)/python -m benchmarks cluster --full --out docs/benchmarks/cluster.json \
		--markdown docs/benchmarks/cluster.md || test $$? = 1  # reports what it could not measure

.PHONY: bench-sync
bench-sync: install sshd pssh mpi engines gfarm postgres redis ## measure tasks that begin at one instant, and what is under them
	@mkdir -p docs/benchmarks
	$(BIN)/python -m benchmarks sync --full --out docs/benchmarks/sync.json \
		--markdown docs/benchmarks/sync.md || test $$? = 1  # reports what it could not measure

.PHONY: bench-sync-storage
bench-sync-storage: install gfarm ## measure files and directories of many workers at once, as root, in eight minutes
	@$(BIN)/python -m benchmarks.pages.recipes sync-storage

.PHONY: bench-server
bench-server: compilers openssl rpc-peers install ## measure a server beside bare TLS, gRPC, Pyro5, Ray Serve and MLServer
	@mkdir -p docs/benchmarks
	$(BIN)/gridbench engines install pyro5 ray-serve mlserver tritonclient || true  # reports what is missing
	$(BIN)/python -m benchmarks server --full --out docs/benchmarks/server.json \
		--markdown docs/benchmarks/server.md || test $$? = 1  # reports what it could not measure

.PHONY: bench-linpack
bench-linpack: compilers openssl links install ## measure remote Linpack in full, in five hours; SHORT=1: in 20 minutes
	@mkdir -p docs/benchmarks
	$(BIN)/gridbench engines install ray-serve || true  # reports what is missing
	$(BIN)/python -m benchmarks linpack $(if $(SHORT),--quick,--full) --out $(LINPACK).json \
		--markdown $(LINPACK).md || test $$? = 1 -o $$? = 3
	@$(BIN)/python -m benchmarks.pages.recipes $(if $(SHORT),linpack-short,linpack)

.PHONY: bench-ensemble
bench-ensemble: compilers links slurm gridengine mpi install ## run a weather ensemble on emulated clusters, as root, in seven hours; SHORT=1: in 15 minutes
	$(BIN)/gridbench engines install dask parsl hyperqueue mpi || true  # reports what is missing
	@$(BIN)/python -m benchmarks.pages.recipes $(if $(SHORT),ensemble-short,ensemble)

LINPACK = $(if $(SHORT),runs/linpack-short/linpack,docs/benchmarks/linpack)

.PHONY: bench-crossover
bench-crossover: install datagrid-engines ## bring shared data by compute grids and data grids, in 10 minutes
	$(BIN)/gridbench engines install ray
	@$(BIN)/python -m benchmarks.pages.recipes crossover

.PHONY: bench-data
bench-data: install datagrid-engines ## measure data grids: the three scenarios, the driver, loading, open and closed loops
	@mkdir -p docs/benchmarks
	$(BIN)/python -m benchmarks data --full --out docs/benchmarks/data.json \
		--markdown docs/benchmarks/data.md || test $$? = 1  # reports what it could not measure

bench-%: compilers install $(STAMPS)/test-packages ## measure one area of that in full
	$(BIN)/python -m benchmarks $* --full

$(STAMPS)/test-packages: $(STAMPS)/packages
	@scripts/install-packages $(BIN)/python test
	@touch $@

$(STAMPS)/docs-packages: $(STAMPS)/packages
	@scripts/install-packages $(BIN)/python docs
	@touch $@

$(STAMPS)/mutants-packages: $(STAMPS)/packages
	@scripts/install-packages $(BIN)/python mutants
	@touch $@

$(STAMPS)/lint-packages: $(STAMPS)/packages
	@scripts/install-packages $(BIN)/python lint
	@touch $@

$(STAMPS)/release-packages: $(STAMPS)/packages
	@scripts/install-packages $(BIN)/python release
	@touch $@

.PHONY: clean
clean: ## remove what was built and installed here; runs/ stays
	rm -rf $(VENV) target .mypy_cache .ruff_cache .hypothesis
	rm -f python/gridrpc/_native*.so python/gridbench/native/gridbench-task
	find python tests examples -name __pycache__ -prune -exec rm -rf {} +
