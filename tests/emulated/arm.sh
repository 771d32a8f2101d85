#!/usr/bin/env bash
# The native core on 64-bit ARM, under qemu-user (make test-arm). On Debian:
#   apt-get install g++-aarch64-linux-gnu qemu-user
# 1. Every walk on the same forests: NEON gives the bits of the plain lanes, and ARM the bits of this machine.
# 2. Everything that tests/native/sanitize.cpp walks, under AddressSanitizer and UndefinedBehaviorSanitizer.
# 3. With "count" as an argument, instructions of each walk on either machine (needs gcc, and valgrind for this one).
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
    command -v $tool > /dev/null || { echo "arm.sh: needs $tool; on Debian: apt-get install g++-aarch64-linux-gnu qemu-user"; exit 1; }
done
. tests/emulated/build.sh

arm() { build arm "aarch64-linux-gnu-g++ -static" "$1" -DGIGRAD_NEON plain "" neon ""; }

arm walks
here walks
echo "on ARM:"; qemu-aarch64 build/arm/walks | tee build/arm/digests
echo "here:"; build/here/walks | tee build/here/digests
same_bits arm lanes portable

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
# Linked to shared libraries, as AddressSanitizer must be, and without the search for leaks: qemu-user cannot trace a process.
build arm-sanitized aarch64-linux-gnu-g++ sanitize \
    "-DGIGRAD_NEON -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" plain "" neon ""
ASAN_OPTIONS=detect_leaks=0 qemu-aarch64 -L /usr/aarch64-linux-gnu build/arm-sanitized/sanitize
