#!/usr/bin/env bash
# run.sh PYTHON [PYTEST-ARGUMENTS]: installs the wheel of build/wheel into an environment of its own, beside the packages
# of PYTHON's, and runs the tests against it: from a copy without src/, on a PATH without compilers.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/wheel/isolated.sh
python=$(absolute "$1") work=$PWD/build/wheel
shift
rm -rf "$work/env"
"$python" -m venv "$work/env"
mine=$work/env/bin/python
# The packages that tests need are taken from PYTHON's environment, the wheel's own come first. Only the folders are
# named, so that the editable install of gigrad there is not followed.
site=$("$mine" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" -c 'import sys; print(*[p for p in sys.path if p.endswith("site-packages")], sep="\n")' > "$site/beside.pth"
"$mine" -m pip install -q --no-deps --force-reinstall "$work"/dist/*.whl
copy_tests "$work/tree"
tools_without_compilers "$work/tools-only"
cd "$work/tree"
export PATH="$work/env/bin:$work/tools-only"
"$mine" -c 'import gigrad, sys; sys.exit("env" not in gigrad.__file__ and f"not the wheel: {gigrad.__file__}")'
if [ $# -eq 0 ]; then set -- -n 2 --dist worksteal --ignore tests/project; fi # the project's tests read the sources
exec "$mine" -m pytest -q -p no:cacheprovider "$@"
