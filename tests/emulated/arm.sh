#!/usr/bin/env bash
# The native core on 64-bit ARM, under qemu-user (make test-arm). On Debian:
#   apt-get install g++-aarch64-linux-gnu qemu-user
# 1. Every walk on the same forests: NEON gives the bits of the plain lanes, and ARM the bits of this machine.
# 2. Everything that tests/native/sanitize.cpp walks.
# 3. With "count" as an argument, instructions of each walk on either machine (needs gcc, and valgrind for this one).
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
    command -v $tool > /dev/null || { echo "arm.sh: needs $tool; on Debian: apt-get install g++-aarch64-linux-gnu qemu-user"; exit 1; }
done
kernels=src/gigrad/kernels
flags="-std=c++17 -O3 -ffp-contract=off -Wall -Wextra -Wno-psabi -pthread -I$kernels"

build() { # FOLDER COMPILER PROGRAM DEFINITION [WALK FLAGS]...
    local folder=build/$1 compiler="$2 $flags $4" program=$3
    shift 4
    mkdir -p "$folder"
    local objects=()
    while [ $# -gt 0 ]; do
        objects+=("$folder/$1.o")
        if [ ! "$folder/$1.o" -nt "$kernels/lanes/simd_$1.cpp" ] || [ -n "$(find $kernels -newer "$folder/$1.o" -name '*.hpp')" ]; then
            $compiler $2 -c "$kernels/lanes/simd_$1.cpp" -o "$folder/$1.o"
        fi
        shift 2
    done
    $compiler "tests/native/$program.cpp" "${objects[@]}" -o "$folder/$program"
}
arm() { build arm "aarch64-linux-gnu-g++ -static" "$1" -DGIGRAD_NEON plain "" neon ""; }
here() {
    if [ "$(uname -m)" = x86_64 ]; then
        build here "${CXX:-g++}" "$1" -DGIGRAD_X86 plain "" avx2 "-mavx2 -mbmi -mpopcnt" \
            avx512 "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mbmi -mpopcnt -Wno-maybe-uninitialized"
    else
        build here "${CXX:-g++}" "$1" -DGIGRAD_NEON plain "" neon ""
    fi
}

arm walks
here walks
echo "on ARM:"; qemu-aarch64 build/arm/walks | tee build/arm/digests
echo "here:"; build/here/walks | tee build/here/digests
for walk in lanes portable; do
    [ "$(grep "^$walk" build/arm/digests)" = "$(grep "^$walk" build/here/digests)" ] ||
        { echo "arm.sh: the walk '$walk' gives other bits on ARM than here"; exit 1; }
done

if [ "${1:-}" = count ]; then
    gcc -shared -fPIC -O2 tests/emulated/instructions.c -o build/arm/instructions.so
    on_arm() { qemu-aarch64 -plugin build/arm/instructions.so build/arm/walks "$1" 2>&1 > /dev/null | sed -n 's/^instructions: //p'; }
    on_this() { valgrind --tool=callgrind --callgrind-out-file=/dev/null build/here/walks "$1" 2>&1 > /dev/null | sed -n 's/.*Collected : //p'; }
    empty=$(on_arm none)
    for walk in neon portable; do echo "ARM, $walk: $(($(on_arm $walk) - empty)) instructions"; done
    empty=$(on_this none)
    for walk in avx2 portable; do echo "x86, $walk: $(($(on_this $walk) - empty)) instructions"; done
    exit
fi
arm sanitize
qemu-aarch64 build/arm/sanitize
