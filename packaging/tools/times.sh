# Steps of packaging/test, and the times of its steps, lanes and suites. To be sourced. "logs" is a folder for logs.
# shellcheck shell=bash disable=SC2154

: >"$logs/times"

# The cgroups that count the CPU time of this run. isolate removes them.
readonly accounts=/sys/fs/cgroup/cpuacct
# The cgroup of this shell. Empty if there is none: without root, or without cgroups of version 1.
account=

# Moves this shell to another cgroup. Its processes follow, and so do the processes in their containers.
open_account() {
  local group=$accounts/${IDENTITYD_TEST_SCRATCH##*/}/$1
  account=
  [ -w "$accounts/cpuacct.usage" ] && mkdir --parents "$group" && echo 0 >"$group/cgroup.procs" && account=$group
}

# Sets "processor" to the CPU time of this shell's account, in seconds. Without an account, these are the processes that
# the shell has waited for: a step then includes the lanes that end meanwhile, and nothing includes the processes in
# containers. A command substitution would be a shell of its own, with other times.
read_processor_time() {
  local file=$logs/processor-time.$BASHPID
  if [ -n "$account" ]; then
    processor=$(($(<"$account/cpuacct.usage") / 1000000000))
    return
  fi
  times >"$file"
  processor=$(awk 'NR == 2 { split($0, part, /[ms ]+/); print int(60 * (part[1] + part[3]) + part[2] + part[4]) }' "$file")
}
open_account steps || true

# Appends a row to the list of times: the start, the duration, the CPU time and the name.
note_time() { printf '%6d s %6d s %6d s  %s\n' "$1" "$((SECONDS - $1))" "$2" "$3" >>"$logs/times"; }

# Runs a command as a named step. The command is not part of a condition, because `set -e` would be ignored within it.
step() {
  step=$1
  local started=$SECONDS before
  read_processor_time
  before=$processor
  shift
  say "$step"
  "$@"
  read_processor_time
  note_time "$started" "$((processor - before))" "$step"
  say "$step: passed in $((SECONDS - started)) s"
}

# Merges the lines of each trial into one line.
sums() {
  awk -F '\t' -v OFS='\t' '
    NR == 1 { print; next }
    !($1 in tried) { order[++count] = $1; remark[$1] = $4 }
    { tried[$1] += $2; lost[$1] += $3; if (++lines[$1] > 1) remark[$1] = lines[$1] " parts" }
    END { for (i = 1; i <= count; i++) print order[i], tried[order[i]], lost[order[i]], remark[order[i]] }' "$1"
}

# Prints the suites of all lanes with their durations in seconds, slowest first.
suites() {
  local log
  for log in "$logs"/*.log; do
    [ -e "$log" ] || continue
    grep -a '^[✔✘] Suite' "$log" | sed -En "s/^. Suite \"?([^\"]+)\"? (passed|failed) after ([0-9.]+) seconds.*/\3 \1 ($(basename "$log" .log))/p"
  done | sort --general-numeric-sort --reverse | awk '{ printf "%9.1f s  ", $1; $1 = ""; print substr($0, 2) }'
}
