#!/usr/bin/env bash
# The files of models/, written anew by the releases themselves, each in an environment of its own under /tmp.
#   make_models.sh [LIBRARY-VERSION ...]        all of them without arguments
# Needs the Pythons that old releases were made for; PYTHONS is a folder with 3.10*/bin/python and so on (pyenv's).
set -euo pipefail
cd "$(dirname "$0")"
PYTHONS=${PYTHONS:-$HOME/.pyenv/versions}
SCRATCH=${SCRATCH:-/tmp/gigrad-old-releases}
# library version python what-it-needs-beside
releases="
xgboost 1.7.6 3.10 numpy<2 scipy<1.12 scikit-learn<1.5
xgboost 2.0.3 3.10 numpy<2 scipy<1.12 scikit-learn<1.5
xgboost 2.1.4 3.10 numpy<2 scipy<1.12 scikit-learn<1.5
xgboost 3.0.5 3.11 scikit-learn<1.7
xgboost 3.1.3 3.11 scikit-learn<1.7
lightgbm 3.0.0 3.8 numpy<1.24 scipy<1.10 scikit-learn<1.2
lightgbm 3.3.5 3.10 numpy<1.24 scipy<1.12 scikit-learn<1.3
lightgbm 4.0.0 3.10 numpy<2 scipy<1.12 scikit-learn<1.5
lightgbm 4.6.0 3.11 scikit-learn<1.7
catboost 1.0.6 3.10 numpy<1.24 pandas<2 matplotlib<3.8
catboost 1.1.1 3.10 numpy<1.24 pandas<2 matplotlib<3.8
catboost 1.2.0 3.10 numpy<1.25 pandas<2 matplotlib<3.8
catboost 1.2.5 3.11 numpy<2 pandas<3
sklearn 1.2.2 3.10 numpy<1.25 scipy<1.12 skops==0.6.0
sklearn 1.3.2 3.10 numpy<2 scipy<1.12 skops==0.9.0
sklearn 1.4.2 3.10 numpy<2 skops==0.10.0
sklearn 1.5.2 3.11 skops==0.11.0
sklearn 1.6.1 3.11 skops==0.12.0
sklearn 1.7.2 3.11 skops==0.13.0
"
while read -r library version python needs; do
    [ -n "$library" ] || continue
    if [ $# -gt 0 ] && [[ " $* " != *" $library-$version "* ]]; then continue; fi
    package=$library
    if [ "$library" = sklearn ]; then package=scikit-learn; fi
    env="$SCRATCH/$library-$version"
    if [ ! -f "$env/ready" ]; then
        rm -rf "$env"
        "$(ls -d "$PYTHONS"/"$python"*/bin/python | head -n 1)" -m venv "$env"
        # shellcheck disable=SC2086  # several words are meant
        "$env/bin/python" -m pip install -q --disable-pip-version-check "$package==$version" $needs
        touch "$env/ready"
    fi
    OMP_NUM_THREADS=1 "$env/bin/python" write_models.py models "$library"
    echo "$library $version: written"
done <<< "$releases"
