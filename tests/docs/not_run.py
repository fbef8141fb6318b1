"""What of the pages is not run as it is printed, each with the reason; and what readers have.

Options of commands of `gridbench` are checked nevertheless, and what they read has to have been
written by an earlier command of the page. Of targets of make it is checked that they are there.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from blocks import ROOT, blocks_of


@dataclass(frozen=True)
class NotRun:
    """Why a command is not run."""

    because: str
    #: A smaller command that is run instead, and leaves what those after it need.
    instead: str = ""


#: Cases on a machine that does other things beside do not count, and tests do other things beside.
_SMALL_SCENARIO = (
    "gridbench scenario {} --time-scale 0.001 --sizes 0 --out {}"
    """ && sed -i 's/"status": "invalid"/"status": "done"/; s/"valid": false/"valid": true/'"""
    " $(find {} -name cases.jsonl -o -name run.json)"
)
_RUNS_TO_FIT = _SMALL_SCENARIO.format(
    "4 --cores 1,2,3,4,5", "runs/first/scenario-4", "runs/first/scenario-4"
)
_RUNS_TO_READ = _SMALL_SCENARIO.format(
    "4 --cores 2", "runs/first/scenario-3", "runs/first/scenario-3"
)

_CALIBRATES = "measures for a minute and more: tests/gridbench/test_advise.py has it measure less"
_TRIES = "runs splits for minutes: tests/gridbench/test_advise_try.py has it run fewer"
_DOWNLOADS = "downloads up to 1.2 GB: `make engines` does it for tests/gridbench"
_HAS_NO_ENGINES = "fresh environments have no Ray: tests/gridbench/test_engine_drivers.py runs it"
_BENCH_SERVER = "takes minutes: tests/gridbench/test_bench_server.py measures less"
_ENROLS = "the service runs until it is ended: tests/gridrpc/test_ca_enroll.py enrols users"
_SERVER_TOML = "crates/server/src/config/tests/reference.rs reads these blocks"
_SHARED_JOBS = "tests/gridrpc/test_slurm.py has such programs on a cluster"
_DATABASE = "there is no such database: one of the test's own stands for it"
_HOSTS = "there are no such hosts: crates/config/src/tests/reference.rs reads these blocks"
_NO_HOSTS = "there are no such hosts: tests/gridrpc has grids of hosts with sshds of their own"
_DIRECTORY_C = "there are no such hosts: tests/capi/test_capi_directory.py has servers of its own"
_DIRECTORY = "there are no such hosts: tests/gridrpc/test_directory.py has servers of its own"
_DOCTOR = "other hosts have other numbers: tests/gridrpc/test_doctor.py runs it"
_SERVERS = "other hosts have other names: tests/gridbench/test_run_servers.py runs it"
_NO_CLUSTER = "there is no such cluster: tests/gridrpc/test_slurm.py has a Slurm of its own"
_RECORDED = "there is no such cluster: tests/gridrpc/test_schedulers.py has recorded commands"
_NO_POOL = "there is no such pool: tests/gridrpc/test_htcondor.py has one of its own"


def _started(config: str) -> NotRun:
    """A server runs in the foreground, in a terminal of its own."""
    return NotRun(
        "it runs until it is stopped: one in the background stands for it",
        f"{{ gridrpc server -c {config} start >>server.log 2>&1 & }}"
        "; for try in $(seq 200); do grep -q 'listens at' server.log && break; sleep 0.1; done"
        "; grep 'listens at' server.log && rm server.log",
    )


_RANKS_ON_NODES = "there is no such cluster: tests/gridrpc/test_ranks_nodes.py has one of its own"
_BRINGS_SLURM = "fresh environments have no Slurm: tests/gridbench/test_engine_drivers.py runs it"
_ON_CLUSTER = "there is no such cluster: tests/gridbench/test_scenario_cluster.py has its own"
_NO_GRID_ENGINE = "there is no such cluster: tests/gridrpc/test_gridengine.py has one of its own"
_INSTALLS = "takes minutes: the environment that tests run in has been made by it"
_SYNC = "there is no such cluster: tests/gridbench/test_sync_run.py has some of its own"
_GFARM = "stays until Ctrl-C: tests/gridbench/test_services.py starts it"
_DATA = "tests/gridbench/test_datagrid_run.py runs its like"
_CROSSOVER = "takes minutes and needs Maven: tests/gridbench/test_crossover_run.py measures less"
_LINPACK = "takes minutes to an hour: tests/gridbench/test_linpack_run.py measures less"
_LINPACK_CLIENTS = "takes minutes to hours: test_linpack_clients_run.py measures less"
_MAKES_JAVA = NotRun(
    "compiles the library: `make test` has made it already", f"cp -r {ROOT}/java/target java/"
)
OCTAVE = NotRun("takes 230 MB of packages: `make test-octave` runs it")
_ENSEMBLE = "waits for a quiet machine: tests/gridbench/test_ensemble_run.py runs shorter samples"
_TOP = "looks until the grid ends: tests/gridrpc/test_top.py has a grid, and looks at it"
_TOP_SERVER = "looks until the server ends: test_server_operations.py has a server, and looks at it"
_IN_README = "README.md shows it as well, and there it is run"
_IN_GRIDBENCH = "docs/gridbench.md shows it as well, and there it is run"
_MINUTES = "takes minutes to an hour: tests/gridbench/test_scenario_run.py has it run fewer cases"

#: By page and command; or, for blocks that are no commands, by page and first line.
NOT_RUN: dict[str, dict[str, NotRun]] = {
    "README.md": {"make install": NotRun(_INSTALLS)},
    "docs/installing.md": {"make install": NotRun(_INSTALLS)},
    "docs/advice.md": {
        "gridbench advise --work 100s --input 1MB --shared 10MB --output 100KB --cores 100": (
            NotRun(_CALIBRATES)
        ),
        "# NTasks=4 NNodes=2 InputFile=mine TaskDataSize=100"
        " SharedDataSize=0 WriteDataSize=5": NotRun(
            "a log of the reader's own: tests/gridbench/test_advise_recorded.py reads it"
        ),
        "gridbench advise --work-from tasks.log --cores 100 --task sleep": NotRun(_CALIBRATES),
        "gridbench advise --work 100s --cores 100 --task sleep --within 5s": NotRun(_CALIBRATES),
        "gridbench advise --work 100s --cores 100 --task sleep --stddev 50%": NotRun(_CALIBRATES),
        "gridbench advise --work 100s --cores 8 --grid grid.toml --server lab": NotRun(
            "there are no such hosts: tests/gridbench/test_advise_servers.py has some"
        ),
        "gridbench advise --work 10s --cores 50 --task sleep --input 20MB --try": NotRun(_TRIES),
    },
    "docs/advice-models.md": {
        "gridbench scenario 3 4 6 --engine gridrpc-native --time-scale 0.01"
        " --sizes 0,100KB,1MB,10MB --out runs/here": NotRun(_MINUTES),
        "gridbench model runs/here --out model.json": NotRun(
            "takes as long as in docs/gridbench.md, where it is run"
        ),
        "gridbench model *.log --out old.json": NotRun(
            "logs of the reader's own: tests/gridbench/test_model_logs.py fits a model to such"
        ),
        "gridbench simulate --profile old.json --engine log --cores 400 --tasks 1200 --sleep 30"
        " --input-per-task 1MB": NotRun(
            "what the command before has made: test_model_logs.py runs it"
        ),
        "make bench-advice": NotRun("takes 20 minutes"),
    },
    "docs/coming-from-ninf-g.md": {
        "# node1 and node2 stand for hosts of yours.": NotRun(
            "there are no such hosts: tests/capi/test_capi_hosts.py has such a configuration"
        ),
    },
    "docs/engines.md": {
        "gridbench engines install ray dask": NotRun(_DOWNLOADS),
        "gridbench engines install --all": NotRun(_DOWNLOADS),
        "gridbench run examples/compute/setup.xml --engine gridrpc-python --engine ray"
        " --engine dask --start warm": NotRun(_HAS_NO_ENGINES),
        "gridbench engines remove ray": NotRun(
            "fresh environments have no Ray: tests/gridbench/test_environments.py removes engines"
        ),
    },
    "docs/engines-clusters.md": {
        "gridbench run examples/compute/setup.xml --engine emulated-slurm"
        " --engine emulated-slurm-array --time-scale 0.1": NotRun(_BRINGS_SLURM),
        "gridbench run examples/compute/setup.xml --engine server --engine gridrpc-native"
        " --time-scale 0.1": NotRun(
            "takes minutes: tests/gridbench/test_server_engine.py runs less"
        ),
    },
    "docs/gridbench.md": {
        "gridbench engines install ray dask": NotRun(_DOWNLOADS),
        "gridbench run examples/compute/setup.xml --engine gridrpc-native --engine process-pool": (
            NotRun(_IN_README)
        ),
        "make rpc-peers": NotRun("installs packages of the system"),
        "gridbench recommend runs/first --work 5000x30s --price 0.04 --out proposal": NotRun(
            "what is there is too little: tests/gridbench/test_recommend.py has more"
        ),
        "Provisional: gridrpc-native takes 2.63 h (2.61 to 2.70 h) and 42.1 core-hours for 5,000"
        " tasks of 30 s on 16 cores; the machine was busy.": NotRun("figures of another machine"),
        "gridbench compare 'sleep 0.1' 'sleep 0.2'": NotRun(
            "waits for a quiet machine",
            instead="gridbench compare 'sleep 0.1' 'sleep 0.2' --rounds 3 --accept-load",
        ),
        "“sleep 0.1” is 1.99 times as fast as “sleep 0.2” (1.99 to 1.99), 10 rounds,"
        " undisturbed.": NotRun("figures of a quiet machine"),
        "gridbench compare --parameter count=1000,100000 'seq {count}'": NotRun(
            "waits for a quiet machine",
            instead="gridbench compare --parameter count=1000,100000 'seq {count}' --rounds 3"
            " --accept-load",
        ),
        "gridbench engines install pyro5 ray-serve mlserver tritonclient": NotRun(_DOWNLOADS),
        "python -m benchmarks server --quick": NotRun(_BENCH_SERVER),
        "python -m benchmarks server --case null --case rate": NotRun(_BENCH_SERVER),
        "make bench-server": NotRun("takes an hour"),
        "gridbench micro --quick": NotRun(
            "takes minutes: tests/gridbench/test_micro_run.py has it measure less"
        ),
        "gridbench run examples/compute/setup.xml --engine gridrpc-python --engine ray": NotRun(
            _HAS_NO_ENGINES
        ),
        "gridbench scenario all --quick --out runs/first": NotRun(_MINUTES, _RUNS_TO_FIT),
        "gridbench advise --work 100s --input 1MB --shared 10MB --output 100KB --cores 100": (
            NotRun(_CALIBRATES)
        ),
        "gridbench advise --work 10s --cores 50 --task sleep --try": NotRun(_TRIES),
    },
    "docs/data.md": {
        "gridbench data --engine hazelcast --warm 5 examples/data/setup.xml": NotRun(_DATA),
        "gridbench data ycsb a b c --records 1000 --operations 200 --warm 2": NotRun(_DATA),
        "gridbench data --engine hazelcast --engine redis --rounds 3 --out runs/market"
        " examples/data/market.xml": NotRun(
            "takes minutes: tests/gridbench/test_datagrid_run.py runs smaller cases on both"
        ),
    },
    "docs/data-results.md": {
        "gridbench data --warm 1 --rounds 2 --out runs/now examples/data/setup.xml": NotRun(
            "the command before, with another folder", instead="cp -r runs/before runs/now"
        ),
        "gridbench report runs/before runs/now": NotRun(
            "where tests disturb all runs there is nothing to compare:"
            " tests/gridbench/test_datagrid_present.py compares results"
        ),
        "gridbench data scenario 1 --engine redis --object-sizes 1KB,16KB,256KB --clients 1,2,4,8"
        " --members 3 --rounds 2 --out runs/sizes": NotRun(
            "takes minutes: a smaller one stands for it",
            instead="gridbench data scenario 1 --object-sizes 1KB,16KB --clients 1,2,3"
            " --operations 100 --no-warm --accept-load --out runs/sizes",
        ),
    },
    "docs/shared-data-or-data-grid.md": {
        "gridbench data crossover --data-grid hazelcast --out runs/crossover": NotRun(_CROSSOVER),
        "gridbench data crossover --sizes 1MB,4MB,16MB --cores 1,2 --rounds 1 --warm 1"
        " --out runs/small": NotRun(_CROSSOVER),
        "gridbench advise --work 100s --shared 100MB --cores 16 --crossover runs/crossover": (
            NotRun("tests/gridbench/test_advise_data_grid.py gives it such a folder")
        ),
    },
    "docs/directory.md": {
        "gridrpc ca server directory --host directory.example.org --out /etc/gridrpc/directory": (
            NotRun(_DIRECTORY)
        ),
        "[directory]": NotRun(_DIRECTORY),
        "$ gridrpc directory search lapack --directory https://directory.example.org:7713": NotRun(
            _DIRECTORY
        ),
        "gridrpc directory start --etcd http://10.0.0.1:2379,http://10.0.0.2:2379"
        ",http://10.0.0.3:2379": NotRun(
            "there are no such hosts: tests/gridrpc/test_directory_etcd.py has an etcd of its own"
        ),
    },
    "docs/java.md": {
        "make java": _MAKES_JAVA,
        "<dependency>": NotRun("a part of the reader's own build"),
    },
    "examples/java/README.md": {"make java": _MAKES_JAVA},
    "docs/directory-calls.md": {
        "import numpy as np": NotRun(_DIRECTORY),
        'with gridrpc.Grid(directory="https://directory.example.org:7713",'
        ' policy="data-locality") as grid:': NotRun(_DIRECTORY),
        'with gridrpc.Grid(directory="https://directory.example.org:7713?trusted=true") as grid:': (
            NotRun("there are no such hosts: test_directory_python.py has servers of its own")
        ),
        "#include <stdio.h>": NotRun(_DIRECTORY_C),
        "GRIDRPC_DIRECTORY=https://directory.example.org:7713 ./solve": NotRun(_DIRECTORY_C),
        "error = grpc_function_handle_default(dgesv, 'lapack/dgesv')": NotRun(_DIRECTORY_C),
    },
    "docs/languages.md": {
        "gridrpc server -c server.toml start": _started("server.toml"),
        "octave-cli solve.m": OCTAVE,
        "x is 1.000 2.000 3.000": OCTAVE,
    },
    "docs/linpack.md": {
        "T_call = T_comm + T_comp": NotRun("formulas"),
        "response    = enqueue - submit": NotRun("formulas"),
        "gridbench linpack --sizes 100,200,400 --languages C --rounds 2 --out runs/linpack": NotRun(
            "waits for a quiet machine",
            instead="gridbench linpack --sizes 60,100,200 --paths socket --languages C --rounds 1"
            " --client-speed 50% --accept-load --out runs/linpack",
        ),
        "gridbench linpack --sizes 100-1600:100 --paths socket,tls,1gbit,100mbit+10ms"
        " --out runs/links": NotRun(_LINPACK),
        "gridbench linpack --sizes 1000,5000,10000 --threads 2 --client-speed 5%,25%"
        " --out runs/large": NotRun(_LINPACK),
        "gridbench linpack --paths socket,socket+big-endian --languages Python --out runs/orders": (
            NotRun(_LINPACK)
        ),
        "pip install grpcio": NotRun(_DOWNLOADS),
        "gridbench engines install ray-serve": NotRun(_DOWNLOADS),
        "gridbench linpack clients --servers gridrpc,grpc,ray-serve --clients 1,4"
        " --out runs/servers": NotRun(_LINPACK_CLIENTS),
        "gridbench linpack clients --clients 1,4 --sizes 600 --duration 20 --out runs/clients": (
            NotRun(_LINPACK_CLIENTS)
        ),
        "gridbench linpack clients --steps both --out runs/tables": NotRun(_LINPACK_CLIENTS),
        "gridbench linpack clients --clients 64 --duration 600 --sizes 600 --steps scaled"
        " --rounds 1 --out runs/soak": NotRun(_LINPACK_CLIENTS),
    },
    "docs/ensemble-benchmark.md": {
        "gridbench ensemble --processors 10,50 --time-scale 0.1 --links scaled"
        " --out runs/ensemble": NotRun(
            "waits for a quiet machine",
            instead="gridbench ensemble --processors 2 --time-scale 0.01 --links scaled"
            " --batch-systems none --accept-load --out runs/ensemble",
        ),
        "gridbench ensemble --layouts ume --processors 200 --ahead 0,1 --out runs/ahead": NotRun(
            _ENSEMBLE
        ),
        "gridbench ensemble --processors 10,50 --requests together,one-by-one --time-scale 0.01"
        " --out runs/start": NotRun(_ENSEMBLE),
        "gridbench engines install dask parsl hyperqueue mpi": NotRun(_DOWNLOADS),
        "gridbench ensemble --processors 4,8 --batch-systems none --time-scale 0.1"
        " --out runs/engines --engines gridrpc-native,gridrpc-python,dask,parsl,hyperqueue,mpi": (
            NotRun(_ENSEMBLE)
        ),
        "gridbench ensemble --layouts ume --processors 2 --model compute --module"
        " examples/ensemble/ensemble.so --batch-systems none --out runs/model": NotRun(_ENSEMBLE),
        "# Two clusters, each with a Slurm of its own.": NotRun(_NO_CLUSTER),
    },
    "docs/placement.md": {
        "gridbench placement run --rounds 5 --out runs/placement-run": NotRun(
            "waits for a quiet machine: tests/gridbench/test_placement_run.py runs fewer calls"
        ),
        "gridbench placement simulate --servers 1000 --clients 100000 --workloads poisson"
        " --load 60% --duration 60 --out runs/large": NotRun(
            "takes minutes",
            instead="gridbench placement simulate --servers 50 --clients 500 --workloads poisson"
            " --load 60% --seeds 2 --duration 2 --out runs/large",
        ),
    },
    "docs/sync.md": {
        "gridbench sync --hosts hosts.txt --workers 2-16:2 ./mytask.py 4096": NotRun(_SYNC),
        "gridbench sync --grid grid.toml null": NotRun(_SYNC),
        "gridbench sync --server 'slurm:?nodes=4&workers=14' null": NotRun(_SYNC),
        "gridbench sync --server 'gridengine:?nodes=4&workers=14' null": NotRun(_SYNC),
        "gridbench sync --emulate ssh --nodes 4 --workers 8 null": NotRun(_SYNC),
        "gridbench sync --workers 1,2,4 --out runs/sleeps-again sleep 0.2": NotRun(
            "the command before, with another folder", instead="cp -r runs/sleeps runs/sleeps-again"
        ),
        "gridbench report runs/sleeps runs/sleeps-again": NotRun(
            "rounds on a machine that does other things beside do not count, and tests do:"
            " tests/gridbench/test_sync_present.py has rounds that count"
        ),
        "gridbench services start gfarm --backend postgresql --journal synchronous --mounts 56"
        " --mounts-in gfarm": NotRun(_GFARM),
    },
    "docs/simulate.md": {
        "gridbench sync --workers 1,2,3,4,6,8 --accept-load --out runs/rounds null": NotRun(
            "docs/sync.md shows it as well, and there it is run",
            instead="gridbench sync --workers 1,2,3,4,6,8 --rounds 1 --accept-load"
            " --out runs/rounds null",
        ),
    },
    "docs/launchers.md": {
        "> gridrpc-launcher 1": NotRun(_HOSTS),
    },
    "docs/calling-a-server.md": {
        "Module linear;": NotRun("the server has it, and its users have not"),
        "gridrpc ca enroll TOKEN": NotRun(_ENROLS),
        "gridrpc ca install ann.pem authority.pem": NotRun(
            "others have signed the request in the meantime",
            "gridrpc ca sign ~/.config/gridrpc/credentials/request.pem --out ann.pem"
            " && gridrpc ca install ann.pem authority.pem",
        ),
        "# A server that many clients share, and this machine.": NotRun(_HOSTS),
        "curl --cert certificate.pem --key key.pem --cacert authority.pem \\": NotRun(
            "there is no such server: tests/examples/test_server_example.py calls one by curl"
        ),
    },
    "docs/server.md": {
        "gridrpc server -c server.toml start": _started("server.toml"),
        "gridrpc server -c network.toml start": _started("network.toml"),
        "gridrpc ca serve": NotRun(_ENROLS),
        "gridrpc ca token ann --group biology --address ca.example.org:7713": NotRun(_ENROLS),
    },
    "docs/operating-a-server.md": {
        "gridrpc server -c server.toml start": _started("server.toml"),
        "gridrpc server -c roles.toml start": _started("roles.toml"),
        "server lab (process 4711, version 0.1.0), up 3.2 h": NotRun("other calls"),
        '{"time":"2026-11-28T19:41:14.277664Z","event":"connect","user":"ann",'
        '"address":"192.0.2.7:37010"}': NotRun("other calls"),
    },
    "docs/databases.md": {
        "export PGHOST=localhost PGDATABASE=market PGUSER=ann": NotRun(_DATABASE),
        "gridrpc server -c server.toml start": _started("server.toml"),
        "CREATE ROLE grid LOGIN;": NotRun("tests/gridrpc/test_database.py makes such a role"),
    },
    "docs/server-toml.md": {
        "# A computing centre offers LAPACK and a package of its own.": NotRun(_SERVER_TOML),
        "# A file with six mistakes.": NotRun(_SERVER_TOML),
        "wrong.toml:3: [server]: `port` needs a table [tls]: make certificates with `gridrpc ca`"
        " and name them there, or take `port` out": NotRun(_SERVER_TOML),
    },
    "docs/security.md": {"[server.lab]": NotRun(_NO_HOSTS)},
    "docs/grid-toml.md": {
        "# Two hosts, one of them with less memory than processors.": NotRun(_HOSTS),
        "# Two network namespaces of this machine, which stand for hosts.": NotRun(_HOSTS),
        "# Hosts that a program of the site starts agents on.": NotRun(_HOSTS),
        "# Ten nodes of a partition, and one of another for larger work.": NotRun(_HOSTS),
        "# A hundred jobs of one slot, and two of sixteen.": NotRun(_HOSTS),
        "# A file with five mistakes.": NotRun(_HOSTS),
        'wrong.toml:3: server "fast": `hosts` has "gpu[08-01]": a range ends before it begins:'
        " write the smaller number first": NotRun(_HOSTS),
        "ssh://node1": NotRun(_HOSTS),
    },
    "docs/idl.md": {
        "file        = { item } ;": NotRun("the grammar of the language is for reading"),
    },
    "docs/links.md": {
        "client ══ switch ══ node 1      each link: RATE in each direction": NotRun("a picture"),
    },
    "docs/live.md": {
        "gridrpc top": NotRun(_TOP),
        "python solve.py": NotRun(_TOP),
        "gridrpc top --once": NotRun(_TOP),
        "gridrpc top --json": NotRun(_TOP),
        "gridrpc top --web": NotRun(_TOP),
        "gridrpc top --server": NotRun(_TOP_SERVER),
        "gridrpc top --server server.toml": NotRun(_TOP_SERVER),
        "gridrpc top --server gridrpc://lab.example": NotRun(_TOP_SERVER),
        "scrape_configs:": NotRun("a configuration of Prometheus, which is not here"),
    },
    "docs/many-machines.md": {
        "# node1 and node2 stand for hosts of yours.": NotRun(_NO_HOSTS),
        "# Three hosts, and this machine as well.": NotRun(_HOSTS),
        '/* "large" stands for a server of yours, and lapack for a module. */': NotRun(
            "there is no such server: tests/capi/test_capi_hosts.py binds handles to hosts"
        ),
    },
    "docs/doctor.md": {
        "lab/node1 is well": NotRun(_DOCTOR),
        "lab/node1 has a fault": NotRun(_DOCTOR),
    },
    "docs/cascades.md": {
        "# site.toml stands for a file on the cluster's head node.": NotRun(
            "there is no such cluster: tests/gridrpc/test_grid_nested_bound.py opens such a grid"
        ),
        "gridrpc session start team --config grid.toml --limit 8h": NotRun(_SHARED_JOBS),
        "# In each program; score and numbers stand for yours.": NotRun(_SHARED_JOBS),
    },
    "docs/gridbench-servers.md": {"asking the servers for their workers": NotRun(_SERVERS)},
    "docs/measured.md": {"make bench-measured": NotRun("takes 65 minutes")},
    "docs/scenarios.md": {
        "gridbench run examples/compute/setup.xml --task spin --cores 2 --time-scale 0.01": (
            NotRun(_IN_GRIDBENCH)
        ),
        "gridbench scenario startup --time-scale 0.01": NotRun(_MINUTES),
        "gridbench scenario all --quick --out runs/first": NotRun(_MINUTES, _RUNS_TO_READ),
        "gridbench scenario 4 --engine gridrpc-native --engine ray --sizes 0,100KB,1MB": NotRun(
            _MINUTES
        ),
        "gridbench scenario all --server 'slurm:?nodes=4&workers=100&partition=batch'"
        " --time-scale 0.01 --out runs/cluster": NotRun(_ON_CLUSTER),
        "gridbench scenario 6 --engine emulated-slurm --engine emulated-slurm-array --sizes 0,1MB"
        " --case-limit 120 --out runs/batch": NotRun(_BRINGS_SLURM),
    },
    "docs/mpi.md": {
        "#!/bin/bash": NotRun(_NO_CLUSTER),
        "# Three jobs of two nodes with 8 cores each, for calls on 16 ranks.": NotRun(
            _RANKS_ON_NODES
        ),
        "# Requires a cluster with Slurm.": NotRun(_RANKS_ON_NODES),
    },
    "docs/gridengine.md": {
        "# Requires a cluster with Grid Engine: replace queue and numbers by yours.": (
            NotRun(_NO_GRID_ENGINE)
        ),
        "# Ten jobs of 16 slots each, for eight hours at most.": NotRun(_NO_GRID_ENGINE),
        "#!/bin/bash": NotRun(_NO_GRID_ENGINE),
        "8 of 9 workers have answered within 2 s": NotRun(_NO_GRID_ENGINE),
        "#!/bin/sh": NotRun("another user's: crates/launch/src/gridengine/tests.rs reads it"),
    },
    "docs/htcondor.md": {
        "# Requires a pool of HTCondor: replace the numbers by yours.": NotRun(_NO_POOL),
        "# Ten jobs of 16 processors each, for eight hours at most.": NotRun(_NO_POOL),
        "# On this machine, at once, and with this environment, in which HTCondor's commands are"
        " found.": NotRun("tests/gridrpc/test_htcondor.py submits it"),
        "universe = vanilla": NotRun(
            "another user's: crates/launch/src/htcondor/tests.rs reads it"
        ),
        "{{options}}": NotRun(_NO_POOL),
    },
    "docs/pbs-lsf-flux.md": {
        "# Requires a cluster with PBS: replace queue and numbers by yours.": NotRun(_RECORDED),
        "# Ten jobs of 32 processors each, for eight hours at most.": NotRun(_RECORDED),
        "#!/bin/sh": NotRun("another user's: crates/launch/src/schedulers/tests.rs reads it"),
        "#!/bin/bash": NotRun(_RECORDED),
    },
    "docs/slurm.md": {
        "# Requires a cluster with Slurm: replace partition and numbers by yours.": NotRun(
            _NO_CLUSTER
        ),
        "# Ten nodes with 32 workers each, for eight hours at most.": NotRun(_NO_CLUSTER),
        "#!/bin/bash": NotRun(_NO_CLUSTER),
        "# No nodes as long as there is no work, and at most ten.": NotRun(_NO_CLUSTER),
        "#!/bin/sh": NotRun("another user's: crates/launch/src/slurm/tests.rs reads it"),
    },
    "docs/slurm-jobs.md": {
        "12 of 16 workers have answered within 2 s": NotRun(_NO_CLUSTER),
        "gridrpc: 14 s: lab: 2 ready, 8 queued (waiting for resources: Resources)": (
            NotRun(_NO_CLUSTER)
        ),
        "for host in grid.hosts():": NotRun(_NO_CLUSTER),
        "cluster-1 ready 32 32": NotRun(_NO_CLUSTER),
    },
    "docs/coming-from-dask-jobqueue.md": {
        "# Requires a cluster with Slurm.": NotRun(_NO_CLUSTER),
        "# grid.toml, for ten nodes with eight workers of four processors each": NotRun(
            _NO_CLUSTER
        ),
        "# The same cluster.": NotRun(_NO_CLUSTER),
        "hq server start --journal hq.journal &": NotRun(_NO_CLUSTER),
        "hq alloc add slurm --time-limit 8h --max-worker-count 10 -- --partition=short": (
            NotRun(_NO_CLUSTER)
        ),
        "hq submit --array 1-100000 --cpus 1 price": NotRun(_NO_CLUSTER),
        "hq job wait last": NotRun(_NO_CLUSTER),
    },
    "docs/tutorial-centre.md": {
        "Provisional: process-pool 1.07 s, gridrpc-native 1.09 s (1.02 times);": NotRun(
            "figures of another machine"
        ),
        "Provisional: Divide the work into 8 tasks of 12.50 s each, on 8 cores of": NotRun(
            "figures of another machine"
        ),
        "Work: 5,000 tasks of 30 s, 41.7 h on one core; a core-hour costs 0.04.": NotRun(
            "figures of another machine"
        ),
        "gridbench run gridrpc-native gridrpc-python --rounds 3    --grid grid.toml --accept-load"
        " --out runs/cluster": NotRun(_ON_CLUSTER),
        "gridbench advise --work 100s --cores 8 --engine gridrpc-native    --grid grid.toml"
        " --accept-load --out runs/cluster-advice": NotRun(_ON_CLUSTER),
        "gridbench recommend runs/cluster runs/cluster-advice --work 5000x30s --price 0.04"
        "    --out cluster-proposal": NotRun(_ON_CLUSTER),
        "Task size: Your tasks of 30 s are long enough: tasks of at least about 27 ms": NotRun(
            "figures of another machine"
        ),
        "gridrpc server -c centre.toml start": _started("centre.toml"),
    },
    "examples/compute/README.md": {
        "gridbench run examples/compute/setup.xml": NotRun(_IN_GRIDBENCH),
        "gridbench run examples/compute/setup.xml --engine gridrpc-native --engine process-pool": (
            NotRun(_IN_README)
        ),
    },
    "examples/database/README.md": {
        "export PGHOST=localhost PGDATABASE=market PGUSER=ann": NotRun(_DATABASE),
        "gridrpc server -c server.toml start": _started("server.toml"),
    },
    "examples/server/README.md": {
        "make run": NotRun("needs root: tests/examples/test_server_example.py runs it"),
        "dgesv solves the same system from four machines:": NotRun("that run prints it"),
    },
}

#: Commands that are shown to fail, and their exit status.
FAILS: dict[str, dict[str, int]] = {"docs/idl.md": {"gridrpc compile wrong.idl": 1}}

#: What commands print where their output is not the same each time, as regular expressions.
SAYS: dict[str, dict[str, list[str]]] = {
    "README.md": {
        "make demo": [r"The report is .*/runs/.*/report\.html: open it in a browser\."],
        "python volume.py": [r"^one: 33\.51\d*\nall: \[0\.0, 4\.18\d*, "],
    },
    "docs/gridbench.md": {
        "gridbench model runs/first/scenario-4 --out model.json": [
            "gridrpc-native",
            r"start\.constant",
        ],
        "gridbench simulate --sweep cores=100,1000,10000 --tasks-per-core 10 --input-per-task 100KB"
        " --out runs/cores": [r"page: runs/cores/sweep\.html"],
    },
    "docs/tutorial-centre.md": {
        "gridbench advise --work 100s --cores 8 --engine gridrpc-native    --accept-load"
        " --out runs/advice": [r"^(Provisional: )?Divide the work into \d+ tasks? "],
        "gridbench recommend runs/engines runs/advice --work 5000x30s --price 0.04"
        " --out proposal": [
            r"^Work: 5,000 tasks of 30 s, ",
            r"^Engine: (gridrpc-native|process-pool)",
            r"^Task size: Your tasks of 30 s are long enough",
            "^Cost: ",
            "^Not measured: calls and start-up",
        ],
    },
    "docs/tutorial-pricing.md": {"gridrpc compile pricing.idl": [r"pricing\.so"]},
    "docs/simulate.md": {
        "gridbench simulate --profile symphony --cores 400 --tasks 1200 --sleep 30 --input-per-task"
        " 1MB": ["Bottleneck: "],
    },
    "docs/sessions.md": {
        "python revalue.py": ["^47618333335714$"],
        "gridrpc session show night": [r"map revaluation: revalue, 100,000 of 100,000 results"],
    },
    "docs/links.md": {"gridbench links --nodes 3 --link 1gbit": ["all at once"]},
    "examples/engines/README.md": {"gridbench engines": [r"thread-pool +installed"]},
    "examples/fortran/README.md": {
        "make run": [
            r"pi is about 3\.1\d+, by 20 tasks of 100000 points",
            r"order 300: residual +\d\.\dE-\d+",
            r"a short series: 5 values about 3\.00\nfrom -1\.00 to 8\.25\nhigh, low 2, high, low 4",
            r"after 1500 steps: change +2\.53E-04\nin the middle: 36\.45",
        ],
        'GRIDRPC_MODULE_PATH=../lapack ./solve "" 1000': [r"order 1000: residual +\d\.\dE-\d+"],
    },
    "examples/lapack/README.md": {
        "make run": [r"dgemm +0\.\d\d "],
        "GRIDRPC_MODULE_PATH=. ./solve": [r"order \d+: residual"],
    },
    "examples/montecarlo/README.md": {
        "make run": ["value at risk, 95 %, of 200 scenarios"],
        'GRIDRPC_MODULE_PATH=. ./pi_task_farm "" 100 1000000': [r"pi is about 3\.14"],
        'GRIDRPC_MODULE_PATH=. ./pi_task_farm --journal pi.journal "" 120 1000000': [
            r"100 of 120 tasks have their results"
        ],
    },
}


@dataclass(frozen=True)
class Given:
    """What the readers of a page have: the page speaks of it, and does not show it."""

    files: dict[str, str] = field(default_factory=dict)
    #: Commands that make the rest of it.
    commands: tuple[str, ...] = ()
    #: Commands that end what may still run after the page.
    end: tuple[str, ...] = ()


_OLD_CLIENT = r"""
#include <grpc.h>

int main(int argc, char *argv[])
{
    grpc_function_handle_t handle;
    double x[2] = {1, 2};

    if (argc < 2 || grpc_initialize(argv[1]) != GRPC_NO_ERROR ||
        grpc_function_handle_init(&handle, "localhost", "sample/twice") != GRPC_NO_ERROR ||
        grpc_call(&handle, 2, x) != GRPC_NO_ERROR)
        return 1;
    printf("%g %g\n", x[0], x[1]);
    grpc_finalize();
    return 0;
}
"""
_OLD_CONFIGURATION = """\
# How an old program is configured.
<CLIENT>
loglevel 2
</CLIENT>
<FUNCTION_INFO>
hostname localhost
funcname sample/twice
path ./_stub_twice
</FUNCTION_INFO>
<SERVER>
hostname localhost
crypt SSL
</SERVER>
"""
_OLD_MODULE = """\
Module sample;
Define twice(IN int n, INOUT double x[n]) { int i; for (i = 0; i < n; i++) x[i] *= 2; }
"""

_TWO_SERVERS = """\
[defaults]
launcher = "local"
workers = 2

[server.one]
hosts = ["node1"]

[server.lab]
hosts = ["node[1-4]"]
"""

#: The server of docs/calling-a-server.md.
_SERVER = """\
[server]
state = "state"
port = 7722

[tls]
certificate = "tls/certificate.pem"
key = "tls/key.pem"
authority = "tls/authority.pem"

[workers]
count = 2
python = ".venv/bin/python"

[modules]
folders = ["modules"]

[python.site]
functions = ["statistics:median"]
classes = ["collections:Counter"]

[everyone]
rate = 30
"""
_SERVER_SECONDS = 150
_SERVER_MODULE = next(
    block.text for block in blocks_of("docs/calling-a-server.md") if block.kind == "idl"
)

#: A PostgreSQL of its own, until it is stopped.
_POSTGRES = """\
import signal
import sys

from gridbench_testbed.services.gfarm import Postgres

signal.signal(signal.SIGTERM, lambda *_: sys.exit())
print(Postgres().socket_folder, flush=True)
signal.pause()
"""
_WITH_POSTGRES = Given(
    {"postgres.py": _POSTGRES},
    (
        # If nobody ends it, it ends by itself.
        f"timeout {_SERVER_SECONDS} .venv/bin/python postgres.py >postgres.log 2>&1 &"
        " echo $! >~/postgres.pid; for try in $(seq 200); do [ -s postgres.log ] && break;"
        " sleep 0.1; done; export PGHOST=$(cat postgres.log) PGUSER=gridbench PGDATABASE=postgres",
    ),
    ("gridrpc server -c server.toml stop", "kill $(cat ~/postgres.pid)"),
)

#: The files of docs/server.md, by name.
_SERVER_FILES = {block.name: block.text for block in blocks_of("docs/server.md") if block.name}

GIVEN = {
    "docs/databases.md": _WITH_POSTGRES,
    "examples/database/README.md": _WITH_POSTGRES,
    "docs/server.md": Given(
        end=tuple(f".venv/bin/gridrpc server -c {name}.toml stop" for name in ("server", "network"))
    ),
    "docs/operating-a-server.md": Given(
        {name: _SERVER_FILES[name] for name in ("server.toml", "roles.toml", "linear.idl")},
        ("mkdir modules", "cd modules && ../.venv/bin/gridrpc compile ../linear.idl; cd .."),
        tuple(f".venv/bin/gridrpc server -c {name}.toml stop" for name in ("server", "roles")),
    ),
    "docs/calling-a-server.md": Given(
        {"server.toml": _SERVER, "offered.idl": _SERVER_MODULE},
        (
            ".venv/bin/gridrpc ca init",
            ".venv/bin/gridrpc ca server lab --host localhost --out tls",
            "cp ~/.local/share/gridrpc/ca/authority.pem .",
            "mkdir modules",
            "cd modules && ../.venv/bin/gridrpc compile ../offered.idl; cd ..",
            # If nobody ends it, it ends by itself.
            f"timeout {_SERVER_SECONDS} .venv/bin/gridrpc server -c server.toml start"
            " >server.log 2>&1 &",
        ),
        (".venv/bin/gridrpc server -c server.toml stop",),
    ),
    "docs/tutorial-centre.md": Given(end=(".venv/bin/gridrpc server -c centre.toml stop",)),
    "docs/languages.md": Given(
        commands=(
            # Compiling what `go run` needs of Go's own packages takes longer than the whole page.
            f"export GOCACHE={Path.home()}/.cache/go-build",
            f"export GOFLAGS={shlex.quote(os.environ.get('GOFLAGS', ''))}",
            "export PATH=$PATH:/usr/local/go/bin",
        ),
        end=(".venv/bin/gridrpc server -c server.toml stop",),
    ),
    "docs/advice.md": Given({"tasks.log": "see the page"}),
    "docs/coming-from-mpi4py.md": Given(
        commands=(
            # For machines with fewer processors than ranks, on which tests may run as root.
            "export OMPI_MCA_rmaps_base_oversubscribe=1",
            "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        )
    ),
    "docs/mpi.md": Given(
        # Tests may run as root.
        commands=("export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",)
    ),
    "docs/gridbench-servers.md": Given({"grid.toml": _TWO_SERVERS}),
    "docs/coming-from-ninf-g.md": Given(
        {"sample.idl": _OLD_MODULE, "client.c": _OLD_CLIENT, "client.conf": _OLD_CONFIGURATION}
    ),
    "docs/idl.md": Given(
        {
            "pi.c": "void count_points(long times, int seed, long *count) { *count = times; }",
            "scale.c": "int scale(double factor, int n, double *x) { return factor * n * *x; }",
            "side.c": "double hypotenuse(double a, double b) { return a + b; }",
            "pricer.hpp": "double price(double spot, double strike);",
            "pricer.cpp": "double price(double spot, double strike) { return spot - strike; }",
        },
        ("cc -fPIC -c pi.c scale.c side.c", "c++ -fPIC -c pricer.cpp"),
    ),
    "docs/c/grpc_is_canceled_np.md": Given(
        {"improve.c": "void improve(double *best) { ++*best; }"}, ("cc -fPIC -c improve.c",)
    ),
}
