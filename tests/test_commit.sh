#!/bin/sh
# Tests the commit that a build records: clean, with changes, from an archive, without git, within another repository.
set -u
source=${VKNERF_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# EXPECTED is the commit that a build of FOLDER would record.
expect_commit() { # EXPECTED FOLDER
    cmake -D SOURCE_DIR="$work/$2" -D OUTPUT="$work/$2.h" -P "$source/cmake/write_commit.cmake" ||
        fail "$2: cmake failed"
    echo "#define VKNERF_COMMIT \"$1\"" | cmp -s - "$2.h" || fail "$2: not $1 but $(cat "$2.h")"
}

tree() { # FOLDER
    mkdir -p "$1/cmake"
    cp "$source/.gitattributes" "$1"
    cp "$source/cmake/commit.txt" "$1/cmake"
}

tree plain
expect_commit unknown plain
touch -d 2001-01-01 plain.h
expect_commit unknown plain
[ -z "$(find plain.h -newermt 2001-01-02)" ] || fail "a commit that is still the same was written again"
tree archive
echo abc1234 >archive/cmake/commit.txt
expect_commit abc1234 archive
tree broken
echo 'gitdir: /not/there' >broken/.git
expect_commit unknown broken

if ! command -v git >/dev/null; then
    echo "skipped: test_commit: no git"
    exit $failures
fi
git() {
    command git -c user.name=x -c user.email=x@y -c init.defaultBranch=main "$@"
}
tree repository
git -C repository init -q
expect_commit unknown repository # has no commit yet
git -C repository add .
git -C repository commit -qm one
hash=$(git -C repository rev-parse --short HEAD)
expect_commit "$hash" repository
git -C repository tag v1
expect_commit "$hash" repository
touch repository/untracked
expect_commit "$hash" repository
echo >>repository/.gitattributes
expect_commit "$hash-dirty" repository
git -C repository commit -qam two
expect_commit "$(git -C repository rev-parse --short HEAD)" repository
# The archive of the first commit, unpacked within the repository.
git -C repository archive --prefix=inner/ v1 | tar x -C repository
expect_commit "$hash" repository/inner
tree repository/other
expect_commit unknown repository/other

[ $failures = 0 ] && echo "all passed"
[ $failures = 0 ]
