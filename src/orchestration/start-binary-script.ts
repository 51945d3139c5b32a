// The constant script that restarts a binary on a node without a service manager; what varies comes as its positional parameters.

/**
 * Parameters: pid file, log file, then the binary's own arguments. Ends the process that the pid file names (TERM, 20 s, KILL) if it is
 * still the one that was started, starts the binary in a session of its own, and writes "pid start-time": a number alone may belong to
 * somebody else by now. Fails when the new process is gone within a second.
 */
export const START_BINARY_SCRIPT: string = `set -eu
pidfile=$1; logfile=$2; shift 2
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
state() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1; }
running() {
  case $(state "$1") in '' | Z | X) return 1 ;; esac
  [ -z "$2" ] || [ "$(started "$1")" = "$2" ]
}
if [ -f "$pidfile" ]; then
  pid=; since=
  read -r pid since <"$pidfile" || true
  case $pid in '' | *[!0-9]*) pid= ;; esac
  if [ -n "$pid" ] && [ "$pid" -gt 1 ] && running "$pid" "$since"; then
    kill -TERM "$pid"
    tries=0
    while running "$pid" "$since" && [ "$tries" -lt 100 ]; do sleep 0.2; tries=$((tries + 1)); done
    if running "$pid" "$since"; then kill -KILL "$pid"; sleep 0.5; fi
    if running "$pid" "$since"; then echo "process $pid does not end" >&2; exit 1; fi
  fi
fi
setsid "$@" </dev/null >>"$logfile" 2>&1 &
pid=$!
umask 077
echo "$pid $(started "$pid")" >"$pidfile.new"
mv "$pidfile.new" "$pidfile"
sleep 1
if ! running "$pid" ""; then echo "it ended at once; see $logfile" >&2; exit 1; fi
echo "started as process $pid"`;
