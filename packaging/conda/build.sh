#!/usr/bin/env bash
# Installs the wheel, which has everything, into the environment that becomes the package.
set -euo pipefail

python=$PYTHON
if [[ $GRIDRPC_EXTERNALS == yes ]]; then
    python=${GRIDRPC_PYTHON:-python3}
    # maturin lies beside it.
    PATH=$(dirname "$python"):$PATH
fi
export CARGO_TARGET_DIR PATH PYO3_PYTHON=$python
"$python" -m pip install --no-deps --no-build-isolation --no-index --no-warn-script-location \
    --ignore-installed --prefix "$PREFIX" .
# Conda puts the environment's own Python there when the package is installed.
sed -i "1s|^#!.*|#!$PREFIX/bin/python|" "$PREFIX/bin/gridbench"
