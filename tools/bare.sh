#!/bin/sh
# tools/bare.sh --make FOLDER [PACKAGE ...] | FOLDER COMMAND [ARGUMENT ...]
# Makes a bare system in FOLDER by debootstrap, or runs a command as root inside of one. The system has the machine's
# own release, from the machine's own mirror; VKNERF_BARE_RELEASE names another release of the distribution,
# VKNERF_BARE_MIRROR another mirror. /proc, /sys (read-only) and /dev are mounted only while the command runs and
# disappear however it ends. Needs root and debootstrap.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

[ $# -ge 2 ] || die "usage: tools/bare.sh --make FOLDER [PACKAGE ...] | FOLDER COMMAND [ARGUMENT ...]"
[ "$(id -u)" = 0 ] || die "needs root rights"

# Prints sources.list lines for the machine's own distribution, updates included.
list_sources() {
    # shellcheck disable=SC2016  # the dollar signs are apt's
    apt-get indextargets --format '$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sed -nE 's/^(Debian|Ubuntu) (deb .*)/\2/p' | sort -u
}

make_system() { # FOLDER [PACKAGE ...]
    folder=$1
    shift
    command -v debootstrap >/dev/null || die "needs debootstrap: apt-get install debootstrap"
    [ ! -e "$folder" ] || die "$folder: exists already"
    # shellcheck source=/dev/null
    own_release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    release=${VKNERF_BARE_RELEASE:-$own_release}
    sources=$(list_sources)
    # All releases of a distribution are on the same mirror.
    mirror=${VKNERF_BARE_MIRROR:-$(printf '%s\n' "$sources" | sed -nE "s/^deb ([^ ]*) $own_release .*/\1/p" | head -n 1)}
    [ -n "$mirror" ] || die "apt's sources name no mirror of $own_release"
    say "Making a bare $release in $folder"
    mkdir -p "$folder"
    debootstrap --variant=minbase "$release" "$folder" "$mirror" >"$folder.log" 2>&1 || {
        tail -n 5 "$folder.log" >&2
        die "debootstrap failed"
    }
    rm "$folder.log"
    [ "$release" != "$own_release" ] || printf '%s\n' "$sources" >"$folder/etc/apt/sources.list"
    # The mirror may only be reachable through the machine's proxy.
    apt-config dump | grep -E '^Acquire::https?::Proxy' >"$folder/etc/apt/apt.conf.d/proxy" || :
    cp /etc/resolv.conf "$folder/etc/resolv.conf"
    # Installed systems and containers have the file; debootstrap of Debian 12 makes none.
    [ -e "$folder/etc/hosts" ] || printf '127.0.0.1\tlocalhost\n' >"$folder/etc/hosts"
    # Packages must not start services in the bare system.
    printf '#!/bin/sh\nexit 101\n' >"$folder/usr/sbin/policy-rc.d"
    chmod +x "$folder/usr/sbin/policy-rc.d"
    inside "$folder" apt-get -qq update
    [ $# -eq 0 ] || inside "$folder" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "$@"
}

how=
inside() { # FOLDER COMMAND [ARGUMENT ...]
    # unshare passes signals to the command; if unshare is killed, so are all processes that the command started.
    # shellcheck disable=SC2016  # the dollar signs are the inner shell's
    $how unshare --mount --pid --fork --kill-child sh -eu -c '
        folder=$1
        shift
        # unshare, in the system, needs a root directory that is a mount.
        mount --bind "$folder" "$folder"
        mount -t proc proc "$folder/proc"
        mount -t sysfs -o ro sysfs "$folder/sys"
        mount --rbind /dev "$folder/dev" && mount --make-rslave "$folder/dev"
        exec chroot "$folder" env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' sh "$@"
}

if [ "$1" = --make ]; then
    shift
    make_system "$@"
else
    how="exec"
    inside "$@"
fi
