#!/bin/sh
# tools/package.sh [--check [PACKAGE.deb ...] | --windows]
# Builds Debian packages into build/packages with cpack: vknerf (program, man page, completions, documents and the
# bundled scene), libvknerf0, libvknerf-dev and, if MPI is found, vknerf-mpi. Installs missing build packages first.
# --check then tests the built (or the named) packages in a temporary bare system of the machine's own release
# (tools/bare.sh): installs them, lists devices with the distribution's lavapipe, trains the bundled scene for a few
# steps, tests the device (vknerf certify, parts that compile quickly), compiles a program against the library and purges
# the packages, which must leave no file. Needs root and debootstrap, and takes some minutes, most of them for downloads.
# --windows builds build/packages/vknerf-VERSION-windows-x86_64.zip instead (tools/windows.sh).
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

answer_help "$@"
packages=$build_dir/packages
check=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
    command -v debootstrap >/dev/null || die "--check needs debootstrap: apt-get install debootstrap"
    [ "$(id -u)" = 0 ] || die "--check needs root rights"
elif [ "${1:-}" = --windows ]; then
    "$source_dir/tools/windows.sh"
    cmake --build "$source_dir/build/windows/build" --target bundle >&2
    mkdir -p "$packages"
    mv "$source_dir"/build/windows/build/vknerf-*-windows-*.zip "$packages"
    ls "$packages"/vknerf-*-windows-*.zip
    exit 0
elif [ $# -gt 0 ]; then
    die "$1: unknown option"
fi

if [ $check = no ] || [ $# -eq 0 ]; then
    "$source_dir/tools/setup.sh" --package
    rm -f "$packages"/*.deb
    cpack --config "$build_dir/CPackConfig.cmake" -B "$packages" >"$build_dir/package.log" 2>&1 || {
        cat "$build_dir/package.log" >&2
        die "cpack failed"
    }
    rm -rf "$packages/_CPack_Packages"
    ls "$packages"/*.deb
    [ $check = no ] || set -- "$packages"/*.deb
fi
[ $check = yes ] || exit 0

# ---- a bare system --------------------------------------------------------------------------------

work=$(mktemp -d)
# Safe to remove: bare.sh's mounts end with its processes.
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
system=$work/system
"$source_dir/tools/bare.sh" --make "$system"
mkdir "$system/packages"
cp -- "$@" "$system/packages"
cat >"$system/packages/check.sh" <<'CHECK'
set -eu
fail() { echo "FAILED: $*"; exit 1; }
say() { echo "== $*"; }
install() { apt-get install -qq -y --no-install-recommends "$@" >/tmp/log 2>&1 || { cat /tmp/log; fail "apt-get install $*"; }; }
list() { find / -xdev \( -path /proc -o -path /packages -o -path /tmp -o -path /var -o -path /root \) -prune -o -print | sort; }
cd /packages

say "the program"
list >/tmp/before
install ./vknerf_*.deb
dpkg -V vknerf || fail "dpkg -V"
vknerf --version
[ -f /usr/share/man/man1/vknerf.1.gz ] || fail "no man page"
ls /usr/share/doc/vknerf/docs/*.md >/dev/null || fail "no documents"
code=0
vknerf info 2>/tmp/err || code=$?
[ $code = 3 ] && grep -q mesa-vulkan-drivers /tmp/err || fail "vknerf info without a driver: $code: $(cat /tmp/err)"
apt-get purge -qq -y --autoremove vknerf >/tmp/log 2>&1 || fail "apt-get purge: $(cat /tmp/log)"
list >/tmp/after
diff /tmp/before /tmp/after >/tmp/left || fail "files differ after purge: $(head -n 5 /tmp/left)"

say "the program with the distribution's lavapipe"
install ./vknerf_*.deb mesa-vulkan-drivers man-db
# man may find nothing: dpkg can be configured to install no man pages.
man vknerf 2>/dev/null | grep -q 'vknerf train SCENE' || fail "man vknerf"
vknerf info >/tmp/devices
head -n 12 /tmp/devices
small='--set batch.samples=4096 --set batch.max_rays=1024 --set march.resolution=32 --set mlp.density_width=16
    --set mlp.color_width=16 --set grid.levels=4'
# shellcheck disable=SC2086  # a list of words
vknerf train /usr/share/vknerf/assets/demo --steps 16 --downscale 4 --out /tmp/run --quiet $small
[ -s /tmp/run/report.html ] || fail "no report"
# Old versions of lavapipe compile field_backward for longer than this check takes: parts without that pass.
vknerf certify --only basics,rays,march,grid,composite,optim --out /tmp/certificate --quiet >/tmp/log 2>&1 ||
    fail "vknerf certify: $(tail -n 5 /tmp/log)"
grep -q '"failed":[[:space:]]*0,' /tmp/certificate/certificate.json || fail "certificate.json: $(cat /tmp/log)"
[ -s /tmp/certificate/certificate.html ] || fail "no certificate.html"
tail -n 2 /tmp/log

say "the library"
install ./libvknerf0_*.deb ./libvknerf-dev_*.deb gcc libc6-dev pkg-config
cat >/tmp/devices.c <<'END'
#include <stdio.h>
#include <vknerf/vknerf.h>
int main(void)
{
    char *devices = NULL;
    int status = vkn_info_json(NULL, &devices);
    puts(devices ? devices : vkn_last_error());
    vkn_free(devices);
    return status;
}
END
# shellcheck disable=SC2046  # lists of words
cc $(pkg-config --cflags vknerf) /tmp/devices.c -o /tmp/list_devices $(pkg-config --libs vknerf)
/tmp/list_devices >/tmp/out || fail "the library: $(cat /tmp/out)"
grep -q llvmpipe /tmp/out || fail "the library finds no device: $(cat /tmp/out)"

for package in ./vknerf-mpi_*.deb; do
    [ ! -f "$package" ] || apt-get install -qq --simulate "$package" >/dev/null || fail "$package"
done
# Each recommended package is available under one of its alternative names.
for alternatives in $(dpkg-deb -f ./vknerf_*.deb Recommends | sed 's/ *| */|/g; s/, */ /g'); do
    found=no
    for name in $(echo "$alternatives" | tr '|' ' '); do
        ! apt-cache policy "$name" | grep -q 'Candidate: [0-9]' || found=yes
    done
    [ $found = yes ] || fail "the distribution has none of the recommended packages $alternatives"
done

say "removed"
dpkg -L vknerf libvknerf0 libvknerf-dev | sort -u >/tmp/installed
apt-get purge -qq -y vknerf libvknerf0 libvknerf-dev >/tmp/log 2>&1 || fail "apt-get purge: $(cat /tmp/log)"
while read -r path; do
    # A folder may belong to another package, too.
    [ ! -e "$path" ] || dpkg -S "$path" >/dev/null 2>&1 || fail "purge has not removed $path"
done </tmp/installed
! ldconfig -p | grep libvknerf || fail "the loader's cache still lists libvknerf"
say "all passed"
CHECK
"$source_dir/tools/bare.sh" "$system" sh /packages/check.sh
