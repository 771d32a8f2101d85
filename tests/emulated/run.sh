#!/usr/bin/env bash
# tests/kernels/test_simd.py on an emulated processor with AVX-512; see README.md. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-../.venv/bin/python}
KERNEL=${KERNEL:-$(ls /boot/vmlinuz-* 2> /dev/null | tail -n 1 || true)}
[ -f "$KERNEL" ] || { echo "run.sh: needs a Linux kernel to boot, and there is none in /boot: set KERNEL to its file"; exit 1; }
for tool in bochs xorriso cpio script "$PYTHON"; do
    command -v "$tool" > /dev/null || { echo "run.sh: needs $tool; README.md beside it says where it comes from"; exit 1; }
done

work=$(realpath ..)/build/emulated
rm -rf "$work"
mkdir -p "$work"/{disk,system/dev,system/tmp}

export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH=helpers
options=(-q --color=no --noconftest -p no:cacheprovider "$@")
"$PYTHON" emulated/pack.py "$work/system" -c /dev/null --rootdir=. "${options[@]}" kernels/test_simd.py
cp emulated/guest.py "$work/system"
printf '%s\n' "${options[@]}" > "$work/system/arguments"
cd "$work"

# Without xsaves and xsavec, because Bochs and Linux do not agree on the size of what these save, upon which Linux would
# do without vectors. What it does not know itself, Linux hands to the first process: variables, and words after "--".
parameters="console=ttyS0 loglevel=2 mitigations=off random.trust_cpu=on clearcpuid=xsaves,xsavec rdinit=/python"
variables="PYTHONHOME=/ PYTHONPATH=/modules LD_LIBRARY_PATH=/lib64 PYTHONDONTWRITEBYTECODE=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"
cat > disk/isolinux.cfg <<END
DEFAULT linux
LABEL linux
 LINUX /vmlinuz
 INITRD /initrd
 APPEND $parameters $variables -- -S /guest.py
END
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 disk
cp "$KERNEL" disk/vmlinuz
(cd system && find . | cpio --quiet -o -H newc) > disk/initrd
xorriso -as mkisofs -quiet -o disk.iso -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table disk 2> log

# Nothing but panics is logged: the log and the clock of Bochs 3.0 can wait for each other for ever.
cat > bochsrc <<END
cpu: model=corei7_skylake_x, ips=50000000, reset_on_triple_fault=0
memory: guest=1024, host=1024
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
display_library: term
ata0-master: type=cdrom, path=disk.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=console
log: log
panic: action=fatal
error: action=ignore
info: action=ignore
clock: sync=none
END
command="bochs -q -f bochsrc"
if [[ $(bochs --help 2>&1) == *"-rc filename"* ]]; then  # with a debugger, which must be told to go on
    echo continue > go
    command+=" -rc go"
fi
touch console
tail -f console &
TERM=xterm script -qc "$command" screen > /dev/null < /dev/null &  # its display wants a terminal, if only to hide it
trap 'kill $(jobs -p)' EXIT
while [[ $(jobs -r) == *script* ]] && ! grep -q '^status:' console; do sleep 1; done
grep -q '^status: 0' console || { echo "run.sh: the tests did not pass in the emulated machine; see $work"; exit 1; }
