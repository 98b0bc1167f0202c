# What the scripts beside this one need on this machine. To be sourced; "program" names the sourcing script.
# shellcheck shell=bash disable=SC2034,SC2154

readonly OLDEST_SWIFT=6.3
# The first line: what the toolchain itself runs with. The second: what the programs are linked with.
readonly BUILD_PACKAGES=(
  binutils gcc libc6-dev libcurl4 libedit2 libncurses6 libstdc++-12-dev libxml2 pkg-config tzdata zlib1g
  libinih-dev libsodium-dev libsqlite3-dev libsystemd-dev
)
readonly TEST_PACKAGES=(
  bash-completion bubblewrap build-essential curl debhelper faketime fish lintian mandoc rpm shellcheck zsh
  btrfs-progs e2fsprogs fuse3 gdb git libnbd-bin nbdkit netcat-openbsd python3 python3-prometheus-client socat sqlite3 strace
  mmdebstrap systemd systemd-container tmux util-linux valgrind xfsprogs
)

readonly BENCH_PACKAGES=(binutils util-linux valgrind)
# What identityd is compared with.
readonly PEER_PACKAGES=(dbus-broker memcached mosquitto redis-server uuid-runtime)

say() { echo "$program: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# The version of the Swift on PATH; nothing where it does not run, as when a library of its own is missing.
swift_version() { swift --version 2>/dev/null | sed -En 's/.*Swift version ([0-9]+\.[0-9]+).*/\1/p'; }

require_swift() {
  local version
  command -v swift >/dev/null ||
    fail "there is no Swift on PATH: install $OLDEST_SWIFT or later from https://swift.org/install, and put it there"
  version=$(swift_version) || version=
  if [ -z "$version" ]; then
    [ "${1:-}" = may-lack-libraries ] || fail "'swift --version' does not work here: see what it says"
  elif [ "$(printf '%s\n' "$OLDEST_SWIFT" "$version" | sort --version-sort | head -n 1)" != "$OLDEST_SWIFT" ]; then
    fail "Swift $version is on PATH, but this takes $OLDEST_SWIFT or later: install it from https://swift.org/install"
  fi
}

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Makes sure of Swift and of Debian packages, and installs those that are missing.
require() {
  local missing
  require_swift may-lack-libraries
  command -v apt-get >/dev/null || fail "this script knows Debian's packages only; build with 'swift build' as README.md says"
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || fail "packages are missing, as root: apt-get install ${missing[*]}"
    say "installing ${missing[*]}"
    # A source that is down is no reason to give up while the others have what is needed: the installation tells.
    as_root apt-get update --quiet=2 >&2 || say "the package lists could not all be updated"
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install --yes --quiet=2 --no-install-recommends "${missing[@]}" >&2 || fail "the packages cannot be installed"
  fi
  require_swift
}

# Whether something forbids packages to start services while they are installed (policy-rc.d(8)).
readonly SERVICE_POLICY=/usr/sbin/policy-rc.d

# The same for packages of which only the programs are wanted: their services neither run now nor after the next boot.
require_without_services() {
  local missing package
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ -e "$SERVICE_POLICY" ]; then
    require "${missing[@]}"
  else
    # In a shell of its own, which removes it again however it ends.
    (
      trap 'as_root rm -f "$SERVICE_POLICY"' EXIT
      printf '#!/bin/sh\nexit 101\n' | as_root tee "$SERVICE_POLICY" >/dev/null
      as_root chmod 755 "$SERVICE_POLICY"
      require "${missing[@]}"
    )
  fi
  command -v systemctl >/dev/null || return 0
  for package in "${missing[@]}"; do
    disable "$package" system --system
    # dbus-broker takes the place of the bus of every user's session, too.
    disable "$package" user --global
  done
}

# Disables a package's units: those of the system or of users' sessions, which systemctl calls by the option that is given.
disable() {
  local units
  mapfile -t units < <(dpkg --listfiles "$1" | sed -n "s|^.*/systemd/$2/\([^/@]*\.[a-z]*\)\$|\1|p")
  [ ${#units[@]} -eq 0 ] || as_root systemctl --quiet "$3" disable "${units[@]}" >&2
}

# The compiler's defences for code in C, as SwiftPM passes them on: a stack that grows touches each page, so that it cannot
# leap over the guard page; a buffer on it that overflows is noticed before the return; and a jump through a pointer or a
# return lands only where it may, on processors that see to it.
harden_c() {
  local options=(-fstack-clash-protection -fstack-protector-strong)
  case $(uname --machine) in
    x86_64) options+=(-fcf-protection=full) ;;
    aarch64) options+=(-mbranch-protection=standard) ;;
  esac
  printf -- '-Xcc\n%s\n' "${options[@]}"
}

# Builds the programs as they are shipped, and prints the directory they are in. The same tree and toolchain give the same
# programs: debugging symbols, which no package has, and what the compiler notes for its own next run are left out, since
# they are another thing each time.
build_release() {
  local arguments=(
    --configuration release --static-swift-stdlib --disable-local-rpath
    -debug-info-format none -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen
  )
  mapfile -t -O ${#arguments[@]} arguments < <(harden_c)
  swift build "${arguments[@]}" --product identityd >&2 &&
    swift build "${arguments[@]}" --product identityctl >&2 &&
    swift build "${arguments[@]}" --show-bin-path
}
