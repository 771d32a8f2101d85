#!/usr/bin/env bash
# The native core on 64-bit Windows, built by MinGW and run under Wine (make test-windows). On Debian:
#   apt-get install g++-mingw-w64-x86-64-posix wine64 wine
# 1. Every walk on the same forests gives the bits of this machine.
# 2. Everything that tests/native/sanitize.cpp walks.
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in x86_64-w64-mingw32-g++-posix wine; do
    command -v $tool > /dev/null ||
        { echo "windows.sh: needs $tool; on Debian: apt-get install g++-mingw-w64-x86-64-posix wine64 wine"; exit 1; }
done
[ "$(uname -m)" = x86_64 ] || { echo "windows.sh: Wine runs programs of this processor only, which must be x86_64"; exit 1; }
. tests/emulated/build.sh
export WINEPREFIX=$PWD/build/windows/wine WINEDEBUG=-all

# GCC 12 warns of std::vector freeing what it did not allocate, wrongly.
windows() { build windows "x86_64-w64-mingw32-g++-posix -static -Wno-free-nonheap-object" "$1" -DGIGRAD_X86 "${x86_walks[@]}"; }

windows walks
here walks
echo "on Windows:"; wine build/windows/walks.exe | tr -d '\r' | tee build/windows/digests
echo "here:"; build/here/walks | tee build/here/digests
same_bits windows lanes portable
windows sanitize
wine build/windows/sanitize.exe
