#!/bin/sh
# tools/lint.sh [FILE.c ...]
# Runs clang-tidy with .clang-tidy over the given files, or over all of src/, tools/ and tests/, and shellcheck
# over the scripts where it is installed. Exits 0 when there is nothing to report.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

command -v clang-tidy >/dev/null || die "needs clang-tidy: apt-get install clang-tidy"
"$source_dir/tools/setup.sh"

status=0
if [ $# -eq 0 ]; then
    set -- "$source_dir"/src/*/*.c "$source_dir"/tools/*/*.c "$source_dir"/tests/*.c \
        "$source_dir"/tests/*/*.c
    if command -v shellcheck >/dev/null; then
        (cd "$source_dir" && shellcheck .ci/run tools/*.sh) || status=1
    fi
fi

# Only what is built has compile commands; a pattern without a match stays itself.
for file in "$@"; do
    file=$(realpath -- "$file")
    if grep -qF -- "\"file\": \"$file\"" "$build_dir/compile_commands.json"; then
        printf '%s\0' "$file"
    fi
done | xargs -0 -r -P "$(nproc)" -n 4 clang-tidy --quiet -p "$build_dir" || status=1
exit $status
