# Makes folders from packages of Debian or Ubuntu without changing the machine; sourced after common.sh, never run.
# apt downloads the packages from the machine's own mirror and verifies signatures, but uses lists, status and cache of
# a private configuration, so that no root rights are needed.
# shellcheck shell=sh
# shellcheck disable=SC2034  # the scripts that source this file use its variables

# Prints the URI of the mirror that serves the machine's own release.
find_mirror() { # CODENAME
    # shellcheck disable=SC2016  # the dollar signs are apt's
    apt-get indextargets --no-release-info --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        sed -nE "s/^($1|stable|oldstable|testing) //p" | head -n 1
}

find_keyring() { # NAME
    for keyring in "/usr/share/keyrings/$1.pgp" "/usr/share/keyrings/$1.gpg"; do
        [ -f "$keyring" ] && { printf '%s' "$keyring"; return; }
    done
    die "no archive keyring $1 in /usr/share/keyrings; install the package $1"
}

# Sets mirror, keyring and components of the machine's distribution, and newest_suites, which have a new lavapipe.
find_archive() {
    # shellcheck source=/dev/null
    . /etc/os-release
    case " ${ID:-} ${ID_LIKE:-} " in
        *" ubuntu "*)
            codename=${UBUNTU_CODENAME:-${VERSION_CODENAME:-}}
            keyring=$(find_keyring ubuntu-archive-keyring)
            newest_suites='resolute resolute-updates' components='main universe' ;;
        *" debian "*)
            codename=${VERSION_CODENAME:-}
            keyring=$(find_keyring debian-archive-keyring)
            newest_suites='trixie trixie-backports' components=main ;;
        *) die "/etc/os-release: neither Debian nor Ubuntu" ;;
    esac
    mirror=$(find_mirror "$codename")
    [ -n "$mirror" ] || die "apt's sources name no mirror of $codename"
}

# Writes a private configuration of apt into FOLDER, with packages (deb) or source packages (deb-src) of the suites.
write_apt_configuration() { # FOLDER TYPE SUITE ...
    apt_folder=$1
    type=$2
    shift 2
    mkdir -p "$apt_folder/lists/partial" "$apt_folder/cache/archives/partial" "$apt_folder/none"
    # Packages are only unpacked, so the tools of their scripts are not needed: declares them installed.
    for package in debconf dpkg python3; do
        printf 'Package: %s\nStatus: install ok installed\nArchitecture: %s\nVersion: 999\nMulti-Arch: allowed\n\n' \
            $package "$(dpkg --print-architecture)"
    done >"$apt_folder/status"
    for suite in "$@"; do
        printf '%s [signed-by=%s] %s %s %s\n' "$type" "$keyring" "${mirror%/}" "$suite" "$components"
    done >"$apt_folder/sources.list"
    # Backports are pinned low by default; here the newest version wins.
    printf 'Package: *\nPin: release *\nPin-Priority: 500\n' >"$apt_folder/preferences"
    # apt reads this after the machine's own configuration: keeps proxy settings, clears hooks.
    cat >"$apt_folder/apt.conf" <<CONF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "$apt_folder/sources.list";
Dir::Etc::sourceparts "$apt_folder/none";
Dir::Etc::preferences "$apt_folder/preferences";
Dir::Etc::preferencesparts "$apt_folder/none";
Dir::State "$apt_folder";
Dir::State::lists "$apt_folder/lists";
Dir::State::status "$apt_folder/status";
Dir::State::extended_states "$apt_folder/extended_states";
Dir::Cache "$apt_folder/cache";
Dir::Cache::archives "$apt_folder/cache/archives";
Dir::Log "$apt_folder/cache";
APT::Sandbox::User "root";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-hidpi::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::CNF::DefaultEnabled "false";
CONF
}

# Makes FOLDER by calling FUNCTION, which fills $work/root, unless FOLDER has VERSION already. Removes $work at the end.
make_root() { # FOLDER VERSION FUNCTION
    work=$1.new
    mkdir -p "${1%/*}"
    # One maker at a time; a second caller waits and then finds the work done.
    exec 9>"$1.lock"
    flock 9
    if [ "$(cat "$1/.complete" 2>/dev/null)" != "$2" ]; then
        say "Making $1"
        rm -rf "$work"
        mkdir -p "$work/root"
        "$3"
        printf '%s\n' "$2" >"$work/root/.complete"
        rm -rf "$1"
        mv "$work/root" "$1"
        rm -rf "$work"
    fi
    exec 9>&-
}

# Runs a command of make_root's FUNCTION. If the command fails, prints the command's output and dies with MESSAGE.
logged() { # MESSAGE COMMAND [ARGUMENT ...]
    message=$1
    shift
    "$@" >"$work/log" 2>&1 </dev/null || {
        cat "$work/log" >&2
        die "$message"
    }
}

private_apt() { # ARGUMENT ...
    apt-get -q -y -c "$work/apt/apt.conf" "$@"
}

update_private_lists() { # TYPE SUITE ...
    write_apt_configuration "$work/apt" "$@"
    logged "the mirror's lists could not be read or verified" private_apt update
}

# Downloads packages and what they depend on into $work/apt/cache/archives.
download_packages() { # PACKAGE ...
    logged "the packages of ${work%.new} could not be downloaded" \
        private_apt install --download-only --no-install-recommends "$@"
}

unpack() { # ROOT PACKAGE-FILE ...
    to=$1
    shift
    printf '%s\0' "$@" >"$work/files"
    logged "the packages of ${work%.new} could not be unpacked" \
        xargs -0 -P 2 -a "$work/files" -I '{}' dpkg -x '{}' "$to"
}
