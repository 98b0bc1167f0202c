# Lanes of tests that run in parallel, for packaging/test. To be sourced. "logs" is a folder for logs, and "times" tells
# whether the end of the run lists all steps and suites. After the "mode" usual, it names the folder "screenshots", too.
# shellcheck shell=bash disable=SC2034,SC2154

# shellcheck source=packaging/tools/times.sh
source packaging/tools/times.sh

# --- Lanes: in parallel, since most tests wait more than they compute ----------------------------------------------

declare -A lanes=()
# The process IDs of lanes that mostly wait.
waiting=()
# More lanes than this cost more CPU time for the same tests. Lanes that mostly wait do not count.
most_lanes=$((2 * $(nproc) + 2))

# Starts a lane as soon as few enough are running.
lane() {
  while [ "$(jobs -rp | grep --count --invert-match --line-regexp --fixed-strings "${waiting[@]/#/--regexp=}" \
    --regexp=none)" -ge "$most_lanes" ]; do sleep 0.2; done
  begin_lane "$@"
}

# Starts a lane that mostly waits, for a network or for containers.
waiting_lane() {
  begin_lane "$@"
  waiting+=("${lanes[$1]}")
}

# Starts a lane: begin_lane NAME COMMAND [ARG]... Its output goes to a log, which is shown if the lane fails.
begin_lane() {
  local name=$1
  shift
  say "$name: started after $SECONDS s"
  (
    started=$SECONDS
    open_account "$name" || true
    trap 'read_processor_time; note_time "$started" "$processor" "$name (lane)"' EXIT
    "$@"
  ) >"$logs/$name.log" 2>&1 &
  lanes[$name]=$!
}

lane_exists() { [ -n "${lanes[$1]:-}" ]; }

# Waits for one lane and prints its result. Returns false if the lane failed. The run prints the failures of all lanes
# at its end, so that a log of which only the end is kept still has them.
await_lane() {
  local name=$1 status=0 log="$logs/$1.log"
  wait "${lanes[$name]}" || status=$?
  unset "lanes[$name]"
  if [ "$status" = 0 ]; then
    say "$name: $(grep -a 'Test run with' "$log" || echo passed)"
    return 0
  fi
  say "$name: failed"
  {
    echo "--- $name: failures:"
    grep -a -A 12 '✘' "$log" | grep -av -e '✔' -e ' started\.' | head -n 60 || true
    unfinished "$log" | sed 's/^/did not finish: /'
    echo "--- $name: end of the output:"
    tail -n 20 "$log"
  } >>"$logs/failures"
  return 1
}

# Prints the names of the tests in a log that began but did not end.
unfinished() {
  grep -aE '^◇ Test .* started\.$|^[✔✘➜] Test ' "$1" | sed -E 's/^. Test //; /^(case|run) /d' | awk '
    sub(/ started\.$/, "") { running[$0]; next }
    { for (name in running) if (index($0, name " ") == 1) delete running[name] }
    END { for (name in running) print name }'
}

# Waits for all lanes.
join() {
  local name failed=
  step=lanes
  for name in "${!lanes[@]}"; do await_lane "$name" || failed+=" '$name'"; done
  sanitizer_reports || failed+=" sanitizers"
  leftovers || failed+=" leftovers"
  [ -z "$failed" ] || fail "failed:$failed"
}

# Shows temporary files that tests have left behind. Returns true if there are none. Files of the toolchain
# (TemporaryDirectory.*, *.lock) and of lintian (mldbm-*) do not count.
leftovers() {
  local found
  found=$(find "$TMPDIR" -mindepth 1 -maxdepth 1 ! -name 'TemporaryDirectory.*' ! -name '*.lock' ! -name 'mldbm-*')
  [ -n "$found" ] || return 0
  {
    echo "--- files left behind by tests:"
    xargs --delimiter='\n' --arg-file=<(echo "$found") sh -c 'find "$@" -ls | head -n 40' -
  } | tee --append "$logs/failures" >&2
  return 1
}

# --- Sanitizers ----------------------------------------------------------------------------------------------------

# Tests that run unsafe code in their own process.
readonly ADDRESS_TESTS='^(LinuxSystem|Systemd|ConfigurationFiles|AppManifests|ClientSecrets|IdentityStore|FleetSeal|Mosquitto|Proofs|IdentityFuzz)Tests\.|^IdentityServerTests\.(HandoverMemory|HandoverRecord|SealedHandover)Tests/'
# Tests that run code with threads in their own process.
readonly THREAD_TESTS='^(IdentityClient|Library|Mosquitto)Tests\.|^IdentityServerTests\.(AppFolders|ConnectionService|ConnectionTable|LogThread|ThreadProgress)Tests/'

# Tests that run with the shipped programs only: a backup that repeats with many megabytes what others do with few, and
# the client's JSON of all examples, whose requests run with AddressSanitizer in another test.
readonly PLAIN_TESTS='several megabytes|the JSON of every example'
# Tests that fill the log with many megabytes. They run with ThreadSanitizer only.
readonly LOG_FLOODS='a blocked journal delays no request|a full log pipe delays no request'
# Tests of the fleet that run with the shipped programs only: who is a member, the reports of the members, and several
# brokers.
readonly PLAIN_FLEET_TESTS='/Fleet(Document|Report|Roster|Shard|Twin)Tests'

# Store tests that run plain: they search memory that a sanitizer keeps, or repeat other tests at length. All other store
# tests run with AddressSanitizer.
readonly PLAIN_STORE_TESTS='\.(ColumnTampering|LargeStore|Replacing|Witness)Tests/|behind in memory|the oldest events are removed'

# Tests of pure code and of the source tree.
readonly PURE_TESTS='^(Identity(Core|Wire|Client)|Fleet(Wire|Core|Service)|ClientFormats|Doctor|Layout|Sessions)Tests\.'

# Options of every debug build. Line tables are left out: they take a fifth of the time, and reports name functions
# anyway. CI builds each tree once, so it builds whole modules, which takes a sixth less time than an incremental build.
debug_options=(-Xswiftc -gnone)
if [ "${CI:-}" = true ]; then
  debug_options+=(
    -Xswiftc -whole-module-optimization -Xswiftc -no-emit-module-separately-wmo -Xswiftc -num-threads -Xswiftc 2
  )
fi
readonly debug_options

# Copies the tree, applies a patch to the copy, and changes to it. Preserves modification times, so that only patched
# files are built again.
enter_patched_copy() {
  local copy=$PWD/.build/planted
  mkdir -p "$copy"
  find "$copy" -mindepth 1 -maxdepth 1 ! -name .build -exec rm -rf {} +
  git ls-files -z --cached --others --exclude-standard |
    xargs -0 cp --parents --no-dereference --preserve=timestamps -t "$copy"
  patch --quiet --strip=1 --no-backup-if-mismatch --directory="$copy" <"$1"
  cd "$copy" || exit
}

# Builds for debugging: debug_build TARGETS [OPTION]... CI optimises these targets. Each list has those for which the tests
# save more time than the compiler takes.
debug_build() {
  local optimized=$1
  shift
  [ "${CI:-}" = true ] || optimized=
  IDENTITYD_OPTIMIZED=$optimized swift build "${debug_options[@]}" "$@" >&2
}

# Builds the tests: build_tests [OPTION]...
build_tests() {
  debug_build 'IdentityCore IdentityStore FleetWire FleetCore' --build-tests \
    --explicit-target-dependency-import-check error "$@"
}

# Builds programs with a sanitizer, and links the tests of the plain build with the sources of these programs: tests need
# no instrumentation, so they are compiled once. ThreadSanitizer gets the two daemons only, because identityctl has one
# thread.
build_sanitized() {
  local sanitizer=$1 programs=$SHIPPED_PROGRAMS optimized='IdentityStore IdentityServer'
  [ "$sanitizer" = address ] || programs='identityd identity-fleet' optimized=
  IDENTITYD_PROGRAMS=$programs IDENTITYD_TESTS='' debug_build "$optimized" --sanitize="$sanitizer" \
    --scratch-path ".build/$sanitizer" --disable-index-store
  # The tests look for all programs in one folder.
  [ "$sanitizer" = address ] || ln --symbolic --force "$PWD/.build/debug/identityctl" ".build/$sanitizer/debug/identityctl"
  # Without instrumentation, every test would pass and nothing would be checked.
  nm ".build/$sanitizer/debug/identityd" | grep "${sanitizer:0:1}san.module_ctor" >/dev/null ||
    fail "the daemon was built without --sanitize=$sanitizer"
  link_tests "$sanitizer"
}

# Links the tests of the plain build with the sources of a sanitizer's build, as far as that build has them.
link_tests() {
  # The wrapped modules are for debuggers only, and a build of few programs lacks some.
  local plain instrumented source expressions=(--expression='/\.swiftmodule\.o$/d') libraries
  plain=$(realpath .build/debug) instrumented=$(realpath ".build/$1/debug")
  for source in Sources/*/; do
    source=$(basename "$source").build
    [ ! -e "$instrumented/$source" ] || expressions+=(--expression="s|^$plain/$source/|$instrumented/$source/|")
  done
  sed "${expressions[@]}" "$plain/identitydPackageTests.product/Objects.LinkFileList" >"$instrumented/tests.objects"
  # Both sanitizers have this module.
  grep --quiet "^$instrumented/LinuxSystem.build/" "$instrumented/tests.objects" || fail "the tests have no sources of $1"
  mapfile -t libraries < <(pkg-config --libs libsystemd sqlite3 libsodium inih libmosquitto | xargs --max-args=1)
  swiftc -sanitize="$1" -use-ld=lld -emit-executable -module-name identitydPackageTests \
    -o "$instrumented/identitydPackageTests.xctest" "@$instrumented/tests.objects" "${libraries[@]}"
}

# Makes sanitizers write their reports to files, for every process: no test looks at the status and the output of every
# process that it starts. Sanitizers handle no signals, because tests send them on purpose.
watch_memory() {
  local common=log_path=$logs/reports/report:exitcode=99:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0
  mkdir --parents "$logs/reports"
  chmod 1777 "$logs/reports"
  # Only the daemon is checked for leaks: its tests add that option. Swift's crash handler would trip a sanitizer.
  export SWIFT_BACKTRACE=enable=no
  # Eight frames of an allocation suffice, and all frames would take a sixth of the time.
  export ASAN_OPTIONS=$common:detect_leaks=0:malloc_context_size=8:suppressions=$PWD/Tests/Sanitizers/addresses
  export TSAN_OPTIONS=$common LSAN_OPTIONS=suppressions=$PWD/Tests/Sanitizers/leaks:print_suppressions=0
}

# Shows the reports of sanitizers. Returns true if there are none.
sanitizer_reports() {
  local report found=0
  for report in "$logs"/reports/*; do
    [ -e "$report" ] || continue
    found=1
    { echo "--- report of a sanitizer:" && head -n 60 "$report"; } | tee --append "$logs/failures" >&2
  done
  return "$found"
}

# --- Tests ---------------------------------------------------------------------------------------------------------

# Runs tests of a scratch path. Does not use `swift test`, because parallel runs of it read files that another run is
# writing. The time limit ends a lane with a hung test, before the build server ends the run without naming the test.
#
# Each run has a mount namespace. The containers of another lane would else keep copies of its mounts, and a file system
# that a test has unmounted would stay mounted there.
test_limit=35m
tests() {
  local scratch=$1 output=/proc/$BASHPID/fd/1 run own_mounts=()
  shift
  [ "$(id -u)" != 0 ] || own_mounts=(unshare --mount --propagation private)
  # A lane is a background job that ignores SIGINT, and so would the programs that tests interrupt.
  env --default-signal timeout --verbose --kill-after=10 "$test_limit" "${own_mounts[@]}" \
    "$PWD/$scratch/debug/identitydPackageTests.xctest" --testing-library swift-testing --no-parallel "$@" &
  run=$!
  await_tests "$run" "$(readlink "$output")"
}

# Waits for a run of tests, which writes to a log. With ThreadSanitizer, one process in about a hundred passes all tests
# and then hangs in exit(3). After a minute, its stacks go to the warnings, and its verdict counts.
await_tests() {
  local run=$1 log=$2 over=0
  while kill -0 "$run" 2>/dev/null; do
    sleep 1
    ! tail -n 1 "$log" | grep -qa '^. Test run with' || over=$((over + 1))
    if [ "$over" = 60 ]; then
      {
        echo "--- a process hung after its tests:"
        gdb --batch -ex 'thread apply all backtrace 12' -p "$(pgrep --parent "$run")" 2>&1 | tail -n 200
      } >>"$logs/warnings"
      pkill -KILL --parent "$run"
      wait "$run" || true
      grep -a '^. Test run with' "$log" | tail -n 1 | grep -qa '^✔'
      return
    fi
  done
  wait "$run"
}

# Runs end-to-end tests with the programs as they are shipped.
shipped_programs() { IDENTITYD_TESTED_BIN=$IDENTITYD_RELEASE_BIN tests .build "$@"; }

# Runs end-to-end tests with the programs of a sanitizer. Trials are shortened: a sanitizer reports in the first round.
sanitized_programs() {
  local sanitizer=$1
  shift
  watch_memory
  IDENTITYD_SHORT=1 IDENTITYD_TESTED_BIN=$PWD/.build/$sanitizer/debug tests .build "$@"
}

sanitized_edges() {
  local sanitizer=$1
  shift
  watch_memory
  IDENTITYD_SHORT=1 tests ".build/$sanitizer" "$@"
}

# Runs the tests of the packages on one Debian release: system_tests SUITE FILTER [OPTION]...
system_tests() {
  local suite=$1 filter=$2
  shift 2
  IDENTITYD_SUITES=$suite tests .build --filter "$filter" "$@"
}

# Prints the filter of suites: names_of SUITE...
names_of() { (IFS='|' && echo "\.($*)/"); }

# Prints the suites with a tag of Tests/TestSupport/Tags.swift, one in a line. Looks for the tag in the sources, because a
# run of tests selects by names only.
suites_with() {
  grep --recursive --files-with-matches --extended-regexp --include='*.swift' "\.tags\([^)]*\.$1\b" Tests |
    sed 's|.*/||; s|\.swift$||' | sort
}

# Prints the filter of the suites with a tag.
tagged() {
  local names
  mapfile -t names < <(suites_with "$1")
  [ ${#names[@]} -gt 0 ] || fail "no suite has the tag $1"
  names_of "${names[@]}"
}

# Prints the filter of all tests that the quick run leaves out.
slow_tests() { echo "$(tagged trial)|$(tagged slow)|$PLAIN_TESTS|$LOG_FLOODS"; }

# The lanes of the quick run: tests of pure code, and of the built programs. The full run also has trials, edge tests,
# slow suites and tests of many megabytes. Their suites can be named, too.
quick_lanes() {
  local letters left_out
  left_out=$(slow_tests)
  # These lanes wait more than those with sanitizers do.
  most_lanes=9
  lane "pure" tests .build --filter "$PURE_TESTS" --skip "$left_out"
  # Parts of about the same duration.
  for letters in A-B C-D E-G H-I J-N O-R S-Z; do
    lane "end-to-end, $letters" tests .build --filter "^EndToEndTests\.[$letters]" --skip "$left_out"
  done
}

# The part of the quick run that says most about pure code.
pure_lanes() {
  local left_out
  left_out=$(slow_tests)
  lane "rules" tests .build --filter '^IdentityCoreTests\.' --skip "$left_out"
  lane "other pure tests" tests .build --filter "$PURE_TESTS" --skip "^IdentityCoreTests\.|$left_out"
  lane "examples of all verbs" tests .build --filter '\.VerbExampleTests/'
}

# Runs the suites with a tag with the daemon of ThreadSanitizer. A search of memory concerns no threads.
threaded_suites() {
  sanitized_programs thread --filter "^EndToEndTests$(tagged "$1")" --skip "$PLAIN_TESTS|in the daemon.s memory"
}

# Lanes with the programs of a sanitizer, and with the tests that run sanitized code in their own process.
sanitized_lanes() {
  local sanitizer=$1 fleet='^EndToEndTests\.Fleet' plain letters
  plain="$(tagged trial)|$(tagged plain)"
  case $sanitizer in
    address)
      for letters in A-E F-H ^A-H; do
        waiting_lane "fleet with AddressSanitizer, files $letters" \
          sanitized_programs address --filter "$fleet.*/Fleet[$letters]" --skip "$PLAIN_FLEET_TESTS|$plain"
      done
      # Parts of about the same duration. The last one has the tests without a suite, too.
      for letters in A-C D-I J-M ^A-M; do
        lane "end-to-end with AddressSanitizer, $letters" \
          sanitized_programs address --filter "^EndToEndTests\.[$letters]" --skip "$fleet|$plain|$PLAIN_TESTS|$LOG_FLOODS"
      done
      lane "edges with AddressSanitizer" sanitized_edges address --filter "$ADDRESS_TESTS" --skip "$PLAIN_STORE_TESTS"
      ;;
    thread)
      lane "end-to-end with ThreadSanitizer" threaded_suites threads
      lane "edges with ThreadSanitizer" sanitized_edges thread --filter "$THREAD_TESTS"
      ;;
  esac
}

# --- The end of a run ----------------------------------------------------------------------------------------------

# Shows the table of a long run, the slowest suites and, on request, all times. The failures come last, where a log that
# is cut off still has them.
finish() {
  local status=$?
  set +e
  [ ! -s "$logs/table" ] || sums "$logs/table" | column --table --separator $'\t'
  if [ "$times" = yes ]; then
    say "steps and lanes (start, duration, CPU time):"
    sort --numeric-sort "$logs/times" >&2
    [ -z "$account" ] || say "CPU time of all: $(($(<"${account%/*}/cpuacct.usage") / 1000000000)) s"
  fi
  [ "$mode" != usual ] || [ ! -d "$screenshots" ] || say "pictures of the page for Cockpit, by state and release: $screenshots"
  say "the slowest suites:"
  suites | sed -n "1,$([ "$times" = yes ] && echo 40 || echo 10)p" >&2
  [ ! -s "$logs/warnings" ] || cat "$logs/warnings" >&2
  [ ! -s "$logs/failures" ] || cat "$logs/failures" >&2
  if [ "$status" = 0 ]; then say "passed in $SECONDS s"; else say "${step:-preparation}: failed after $SECONDS s"; fi
}
