#!/bin/bash
# A client of identityd that uses nc of netcat-openbsd; see identityd-protocol(7).
#   client.sh WORD...        sends one request, and prints its rows and the words after OK
#   client.sh follow [SEQ [EPOCH]]   prints events as they happen, first those after SEQ, and continues after a
#       restart. If the daemon no longer has them, prints the current values, and then the events that follow.
# Exit status: 0 for OK, 1 for ERR, 2 for a word that cannot be sent, 3 for no daemon or an incomplete answer.
trap '' PIPE
socket=${IDENTITYD_SOCKET:-/run/identityd/identityd.sock} request='' last='' epoch=''
say() { echo "client.sh: $*" >&2; }
# Sends a line, and reads up to the final line, or after subscribe up to the end of the connection.
converse() {
  local line status=3
  coproc nc -N -U "$socket" 2>/dev/null
  exec 3<&"${COPROC[0]}" 4>&"${COPROC[1]}" && printf '%s\n' "$1" >&4 2>/dev/null
  while IFS= read -r line <&3; do
    case $line in
    '* '*) printf '%s\n' "${line#\* }" ;;
    'EVENT '*' lag '*) last=${line##*from=} && printf 'subscribe since=%s%s\n' "$last" "$epoch" >&4 ;;
    'EVENT '*) printf '%s\n' "$line" && line=${line#EVENT } last=${line%% *} ;;
    'ERR '*) say "${line#ERR }"
      [[ $1$line == subscribe*'ERR gone '* ]] || return 1
      last='' epoch='' && printf 'subscribe snapshot=yes\n' >&4 ;;
    OK*) line=${line#OK} status=0
      [[ $1 == subscribe* ]] || { printf '%s' "${line:+${line# }$'\n'}" && return 0; }
      last=${line# } epoch=${last#"${last%% *}"} last=${last%% *} ;;
    esac
  done
  return "$status"
}
if [ "${1:-}" = follow ]; then
  last=${2:-} epoch=${3:+ epoch=$3}
  while converse "subscribe${last:+ since=$last$epoch}" || { status=$? && [[ $status$last = 3?* ]]; }; do sleep 1; done
else
  for word; do
    [[ $word != *[[:cntrl:]]* ]] || { say "a word with control characters" && exit 2; }
    [[ $word =~ ^([A-Za-z][A-Za-z0-9._-]*=)?(.*)$ ]] && word=${BASH_REMATCH[2]//\\/\\\\}
    request+="${BASH_REMATCH[1]}\"${word//\"/\\\"}\" "
  done
  converse "$request" && exit 0 || status=$?
fi
[ "$status" = 1 ] || say "no answer from $socket"; exit "$status"
