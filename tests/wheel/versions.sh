#!/usr/bin/env bash
# versions.sh PYTHON core|oldest|newest [PYTEST-ARGUMENTS]: the wheel of build/wheel in an environment of its own.
#   core     NumPy and narwhals alone
#   oldest   the floors of pyproject.toml, exactly (constraints in oldest.txt)
#   newest   whatever is newest
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/wheel/isolated.sh
python=$(absolute "$1") which=$2 work=$PWD/build/wheel here=$PWD/tests/wheel
shift 2
rm -rf "${work:?}/$which"
"$python" -m venv "$work/$which"
mine=$work/$which/bin/python
wheel=$(ls "$work"/dist/*.whl)
# torch is left out unless TORCH=1: where no build without GPU packages is to be had, it is gigabytes.
extras=xgboost,lightgbm,catboost,sklearn,skops,frames,polars,plot,report,cli,serve${TORCH:+,torch}
case $which in
    core) needs=("$wheel") ;;
    oldest) needs=("${wheel}[$extras]" -c "$here/oldest.txt") ;;
    newest) needs=("${wheel}[$extras]" --upgrade-strategy eager) ;;
    *) echo "versions.sh: core, oldest or newest; got $which"; exit 2 ;;
esac
"$mine" -m pip install -q --upgrade "${needs[@]}" "pytest>=8" "hypothesis>=6.100"
copy_tests "$work/tree"
tools_without_compilers "$work/tools-only"
cd "$work/tree"
export PATH="$work/$which/bin:$work/tools-only"
"$mine" -m pip list --format freeze
if [ $# -eq 0 ]; then
    mapfile -t files < <(sed 's/#.*//; /^ *$/d' "$here/tests-core.txt")
    if [ "$which" != core ]; then mapfile -t -O "${#files[@]}" files < <(sed 's/#.*//; /^ *$/d' "$here/tests-matrix.txt"); fi
    set -- "${files[@]}"
fi
exec "$mine" -m pytest -q -p no:cacheprovider "$@"
