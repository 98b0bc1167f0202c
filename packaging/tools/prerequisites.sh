# Packages and builds for the scripts beside this one. To be sourced. "program" names the sourcing script.
# shellcheck shell=bash disable=SC2034,SC2154

readonly OLDEST_SWIFT=6.3
# First line: packages that the toolchain needs to run. Second line: libraries that the programs are linked with.
readonly BUILD_PACKAGES=(
  binutils gcc libc6-dev libcurl4 libedit2 libncurses6 libstdc++-12-dev libxml2 pkg-config tzdata zlib1g
  libinih-dev libmosquitto-dev libsodium-dev libsqlite3-dev libsystemd-dev
)
# The benchmarks need these, too: TLS for simulated devices, and chrt(1).
readonly BENCHMARK_PACKAGES=(libssl-dev openssl util-linux)
readonly SOURCE_PACKAGES=(dpkg-dev xz-utils)
# dpkg-buildpackage needs these, too.
readonly DEB_PACKAGES=(build-essential debhelper dh-python po-debconf python3)
readonly TEST_PACKAGES=(
  bash-completion bubblewrap build-essential curl debhelper dh-python faketime fish groff jose lintian man-db mandoc
  po-debconf rpm shellcheck zsh
  btrfs-progs e2fsprogs fuse3 gdb git iproute2 jq libnbd-bin mosquitto-clients mypy nbdkit netcat-openbsd nodejs openssl
  apache2-utils skopeo
  python3 python3-jsonschema python3-keyring python3-nacl python3-packaging python3-pip python3-prometheus-client
  python3-semver python3-setuptools python3-wheel socat sqlite3 strace
  libtss2-rc0 libtss2-tcti-swtpm0 swtpm tpm2-openssl tpm2-tools
  mmdebstrap systemd systemd-container util-linux valgrind xfsprogs
)
# promtool, for the examples of monitoring: a download of 20 MB. The package contains a service, too.
readonly MONITORING_PACKAGES=(prometheus)
# A broker, for the fleet. The package contains a service, too. pip fetches another one, of which Debian 12 has only an
# old release.
readonly BROKER_PACKAGES=(mosquitto)
# A registry and a client of it, for the credential helper of docker. Both packages contain services, too.
readonly REGISTRY_PACKAGES=(docker-registry docker.io)
# A relying party of proofs. The package of the web server contains a service, too.
readonly RELYING_PACKAGES=(apache2 libapache2-mod-auth-openidc)
# Cockpit and a browser, for the page: a download of 135 MB. Cockpit contains a service, too. pip fetches the rules about
# accessibility, which no Debian package has.
readonly CONSOLE_PACKAGES=(chromium chromium-driver cockpit-bridge cockpit-ws python3-selenium)

say() { echo "$program: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# Prints the version of the Swift on PATH. Prints nothing if it does not run, for example if it lacks a library.
swift_version() { swift --version 2>/dev/null | sed -En 's/.*Swift version ([0-9]+\.[0-9]+).*/\1/p'; }

require_swift() {
  local version
  command -v swift >/dev/null ||
    fail "Swift is not on PATH: install Swift $OLDEST_SWIFT or later from https://swift.org/install, and add it to PATH"
  version=$(swift_version) || version=
  if [ -z "$version" ]; then
    [ "${1:-}" = may-lack-libraries ] || fail "'swift --version' fails: run it to see the error"
  elif [ "$(printf '%s\n' "$OLDEST_SWIFT" "$version" | sort --version-sort | head -n 1)" != "$OLDEST_SWIFT" ]; then
    fail "Swift $version on PATH is too old: install Swift $OLDEST_SWIFT or later from https://swift.org/install"
  fi
}

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Requires Debian packages, and installs missing packages.
require_packages() {
  local missing
  command -v apt-get >/dev/null || fail "apt-get is missing: on this system, build with 'swift build' as README.md describes"
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || fail "packages are missing; as root, run: apt-get install ${missing[*]}"
    say "installing ${missing[*]}"
    # If one package source is down, the others may suffice: the installation will fail if they do not.
    as_root apt-get update --quiet=2 >&2 || say "some package lists could not be updated"
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install --yes --quiet=2 --no-install-recommends "${missing[@]}" >&2 || fail "the packages could not be installed"
  fi
}

# Requires Swift and Debian packages, and installs missing packages.
require() {
  require_swift may-lack-libraries
  require_packages "$@"
  require_swift
}

# A file that can forbid packages to start services during their installation (policy-rc.d(8)).
readonly SERVICE_POLICY=/usr/sbin/policy-rc.d

# Like require, for packages of which only the programs are needed: their services run neither now nor after a boot.
require_without_services() {
  local missing package
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ -e "$SERVICE_POLICY" ]; then
    require "${missing[@]}"
  else
    # In a subshell, which removes the file however it ends.
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
    # dbus-broker replaces the bus of every user session, too.
    disable "$package" user --global
  done
}

# Disables a package's units, of the system or of user sessions ($2). $3 is the option of systemctl for these.
disable() {
  local units
  mapfile -t units < <(dpkg --listfiles "$1" | sed -n "s|^.*/systemd/$2/\([^/@]*\.[a-z]*\)\$|\1|p")
  [ ${#units[@]} -eq 0 ] || as_root systemctl --quiet "$3" disable "${units[@]}" >&2
}

# Fetches nats-server for the fleet, and names it in IDENTITYD_NATS_SERVER. Debian 12 has only a release that is no longer
# maintained. Without a network, a person goes on without it.
fetch_nats_server() {
  local requirements=Tests/EndToEndTests/Fixtures/nats-server.txt folder
  folder=$PWD/.build/nats-server-$(sha256sum "$requirements" | cut --characters=1-16)
  if [ ! -x "$folder/nats-server" ]; then
    rm -rf "$folder"
    timeout 3m /usr/bin/python3 -m pip download --quiet --no-deps --require-hashes --dest "$folder" \
      --requirement "$requirements" >&2 || {
      say "pip fetched no nats-server, so nothing runs over a cluster"
      [ "${CI:-}" != true ]
      return
    }
    /usr/bin/python3 -m zipfile --extract "$folder"/*.whl "$folder"
    install --target-directory="$folder" "$folder"/*.data/scripts/nats-server
  fi
  export IDENTITYD_NATS_SERVER=$folder/nats-server
}

# Prints the compiler options that harden C code, in SwiftPM's form. A growing stack touches each page, so that it
# cannot skip the guard page. An overflow of a buffer on the stack is detected before the function returns. Indirect
# jumps and returns reach only permitted targets, on processors that enforce this.
harden_c() {
  local options=(-fstack-clash-protection -fstack-protector-strong)
  case $(uname --machine) in
    x86_64) options+=(-fcf-protection=full) ;;
    aarch64) options+=(-mbranch-protection=standard) ;;
  esac
  printf -- '-Xcc\n%s\n' "${options[@]}"
}

# The programs of the packages, as IDENTITYD_PROGRAMS takes them.
readonly SHIPPED_PROGRAMS='identityd identityctl identity-fleet identity-portal'

# Builds the programs of the packages as they are shipped, and prints their directory. IDENTITYD_PROGRAMS can name others.
#
# The same tree and toolchain give the same programs, wherever they are built: the paths in the line tables of C are
# relative to the tree, and the compiler's notes for its next run, which differ each time, are left out. Swift has no line
# tables, because its compiler writes other code with them, which takes 0.4 % more instructions.
build_release() {
  local programs=${IDENTITYD_PROGRAMS:-$SHIPPED_PROGRAMS} arguments=(
    --configuration release --static-swift-stdlib --disable-local-rpath
    -debug-info-format none -Xcc -g -Xcc "-ffile-prefix-map=$PWD=." -Xlinker --build-id=sha1
    -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen
  )
  mapfile -t -O ${#arguments[@]} arguments < <(harden_c)
  # One build of all programs, which keeps more processors busy than one build of each.
  IDENTITYD_PROGRAMS=$programs IDENTITYD_TESTS='' swift build "${arguments[@]}" >&2 &&
    swift build "${arguments[@]}" --show-bin-path
}
