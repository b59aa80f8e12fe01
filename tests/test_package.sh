#!/bin/sh
# Tests the Debian packages that cpack makes of the build: their content, their control files, and the program unpacked
# from them. tools/package.sh --check tests their installation in a bare system.
set -u
source=${VKNERF_SOURCE_DIR:?}
build=${VKNERF_BUILD_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# Compression would take nine tenths of the time.
cpack --config "$build/CPackConfig.cmake" -B "$work/packages" -D CPACK_DEBIAN_COMPRESSION_TYPE=none >log 2>&1 ||
    fail "cpack: $(tail -n 5 log)"
version=$(sed -n 's/.*VKN_VERSION_[A-Z]* \([0-9]*\).*/\1/p' "$source/include/vknerf/api.h" | paste -sd.)
mpi=
[ ! -f "$build/vknerf-mpi.so" ] || mpi=vknerf-mpi
for name in vknerf libvknerf0 libvknerf-dev $mpi; do
    file=packages/${name}_$version-1_$(dpkg --print-architecture).deb
    [ -f "$file" ] || { fail "there is no $file: $(ls packages)"; continue; }
    mkdir "$name"
    dpkg-deb -x "$file" "$name" || fail "dpkg-deb -x $file"
    dpkg-deb -I "$file" control >"$name.control"
    dpkg-deb -c "$file" >"$name.contents"
    # All files belong to root, and no other user may write.
    grep -vE '^(d|-)r[w-][x-]r-[x-]r-[x-] root/root |^lrwxrwxrwx root/root ' "$name.contents" && fail "$name: permissions"
    grep -E '^-..x' "$name.contents" | grep -v ' \./usr/bin/vknerf$' && fail "$name: these are no programs"
    for document in copyright changelog.Debian.gz; do
        [ -s "$name/usr/share/doc/$name/$document" ] || fail "$name: no $document"
    done
    grep -raqF -e "$build" "$name" && fail "$name: names $build: $(grep -ralF -e "$build" "$name" | head -n 3)"
    grep -q '^ ' "$name.control" || fail "$name: no description"
done

says() { # PACKAGE FIELD TEXT
    sed -n "s/^$2: //p" "$1.control" | grep -qF -- "$3" || fail "$1: $2 lacks $3: $(cat "$1.control")"
}
for name in vknerf libvknerf0; do
    says $name Depends libvulkan1
    says $name Depends libc6
    says $name Recommends 'mesa-vulkan-drivers | vulkan-icd'
    says $name Recommends 'libwebp7, libtiff6'
done
for tool in ffmpeg colmap libmicrohttpd12; do
    says vknerf Recommends $tool
done
says vknerf Section graphics
says libvknerf-dev Depends "libvknerf0 (= $version-1)"
[ -z "$mpi" ] || says vknerf-mpi Depends libopenmpi
dpkg-deb -I packages/libvknerf0_*.deb shlibs | grep -qF "libvknerf 0 libvknerf0 (>= $version)" || fail "libvknerf0: shlibs"
dpkg-deb -I packages/libvknerf0_*.deb triggers | grep -q ldconfig || fail "libvknerf0: no trigger"
dpkg-deb -I packages/vknerf_*.deb conffiles >/dev/null 2>&1 && fail "vknerf: conffiles"

for file in man/man1/vknerf.1.gz bash-completion/completions/vknerf zsh/vendor-completions/_vknerf \
    fish/vendor_completions.d/vknerf.fish vknerf/assets/demo/transforms_train.json; do
    [ -s "vknerf/usr/share/$file" ] || fail "vknerf: no $file"
done
[ "$(find vknerf/usr/share/doc/vknerf -name '*.md' | wc -l)" -ge 20 ] || fail "vknerf: the manual is not there"
zcat vknerf/usr/share/man/man1/vknerf.1.gz | grep -q '^\.SH ENVIRONMENT' || fail "vknerf.1.gz is no man page"
libraries=$(dirname "$(find libvknerf0 -name libvknerf.so.0)")
[ -L "$libraries/libvknerf.so.0" ] || fail "libvknerf0: no libvknerf.so.0"
[ -f "libvknerf-dev/${libraries#libvknerf0/}/pkgconfig/vknerf.pc" ] || fail "libvknerf-dev: no vknerf.pc"
nm "libvknerf-dev/${libraries#libvknerf0/}/libvknerf.a" 2>&1 | grep -q ' T vkn_version$' || fail "libvknerf.a: no symbols"

# The packaged program finds its scene.
program=$work/vknerf/usr/bin/vknerf
"$program" --version >out 2>&1
grep -q "^vknerf $version " out || fail "vknerf --version: $(cat out)"
"$program" info vknerf/usr/share/vknerf/assets/demo >out 2>&1
grep -q train out || fail "vknerf info: $(cat out)"
VKNERF_DISABLE=float16,cooperative_matrix "$source/tools/run_test.sh" "$program" demo --out run --steps 2 --quiet --downscale 8 \
    --set batch.samples=1024 --set batch.max_rays=256 --set march.resolution=16 --set march.steps_per_unit=64 \
    --set mlp.density_width=16 --set mlp.color_width=16 --set mlp.color_layers=1 --set mlp.sh_degree=3 \
    --set grid.levels=4 --set grid.log2_entries=12 >out 2>&1 || fail "vknerf demo: $(cat out)"
[ -s run/report.html ] || fail "vknerf demo: no report"

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
