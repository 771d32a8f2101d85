# shellcheck shell=bash
# Sourced by arm.sh and windows.sh, from the root of the repository: programs of tests/native, for another system and for this one.
kernels=src/gigrad/kernels
flags="-std=c++17 -O3 -ffp-contract=off -Wall -Wextra -Wno-psabi -pthread -I$kernels"
x86_walks=(plain "" avx2 "-mavx2 -mbmi -mpopcnt"
    avx512 "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mbmi -mpopcnt -Wno-maybe-uninitialized")

build() { # FOLDER COMPILER PROGRAM DEFINITION [WALK FLAGS]...
    local folder=build/$1 compiler="$2 $flags $4" program=$3
    shift 4
    mkdir -p "$folder"
    local objects=()
    while [ $# -gt 0 ]; do
        objects+=("$folder/$1.o")
        if [ ! "$folder/$1.o" -nt "$kernels/lanes/simd_$1.cpp" ] || [ -n "$(find $kernels -newer "$folder/$1.o" -name '*.hpp')" ]; then
            # shellcheck disable=SC2086  # flags are several words
            $compiler $2 -c "$kernels/lanes/simd_$1.cpp" -o "$folder/$1.o"
        fi
        shift 2
    done
    $compiler "tests/native/$program.cpp" "${objects[@]}" -o "$folder/$program"
}

here() {
    if [ "$(uname -m)" = x86_64 ]; then
        build here "${CXX:-g++}" "$1" -DGIGRAD_X86 "${x86_walks[@]}"
    else
        build here "${CXX:-g++}" "$1" -DGIGRAD_NEON plain "" neon ""
    fi
}

same_bits() { # SYSTEM WALK...: the digests of these walks, printed there and here
    local system=$1 walk
    shift
    for walk in "$@"; do
        [ "$(grep "^$walk" "build/$system/digests")" = "$(grep "^$walk" build/here/digests)" ] ||
            { echo "The walk '$walk' gives other bits for $system than here."; exit 1; }
    done
}
