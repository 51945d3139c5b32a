// The shell scripts for a node: one runs argument arrays and reports their end, one inspects or ends them.
import { GroveError } from "#base/errors.ts";
import type { DaemonStep, RemoteStep } from "./remote-step.ts";
import { quoted } from "./remote-text.ts";
import { SAME_PROGRAM } from "./same-program.ts";

/** Time between TERM and KILL for the processes of a cancelled action (D7). */
export const REMOTE_TERM_GRACE_MS = 10_000;
/** Time after KILL for the last process to end. */
export const REMOTE_KILL_GRACE_MS = 5_000;
/** Acknowledged action files on a node before one process removes them all; a few bytes each. */
export const REMOTE_HEARD_FILES = 32;
/**
 * Age in days from which the file of an action whose end no console has heard goes with them: its console was
 * lost, or could not reach the node again. No console asks that late.
 */
export const REMOTE_UNHEARD_DAYS = 7;
/** Longest script sent to a node's shell: all steps of an action. */
const REMOTE_SCRIPT_MAX_BYTES = 262_144;
/** Time before KILL for a service started as a binary, its transfers included. */
const DAEMON_STOP_SECONDS = 20;

/**
 * The command for any login shell: a POSIX shell with a clean environment that reads its script from standard
 * input. So other users of the node see no arguments but those of the action's programs.
 */
export const REMOTE_SHELL =
  'exec env -i HOME="$HOME" PATH="$PATH" USER="$USER" LOGNAME="$LOGNAME" LANG=C.UTF-8 sh -s';

/** The action that both scripts are about. */
export interface ScriptSubject {
  readonly actionId: string;
  readonly nodeId: string;
  /** Prefix of every line from the script to the console. */
  readonly secret: string;
  /** File with the machine's boot id. */
  readonly bootIdFile: string;
  /** File with the seconds and hundredths since the machine's start. */
  readonly uptimeFile: string;
}

/** Mode of the second script. */
export type AfterMode =
  /** Reports whether the action runs or how it ended; forgets an ended one. */
  | "look"
  /** Ends its processes, and keeps one that has not begun from ever beginning. */
  | "end";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SECRET = /^[0-9a-f]{32}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const ROUND_SECONDS = 0.2;

/** The script of an action. Throws BAD_ARGUMENT for invalid steps. */
export function runScript(subject: ScriptSubject, steps: readonly RemoteStep[]): string {
  if (steps.length === 0) throw new GroveError("BAD_ARGUMENT", "an action has no steps");
  const body = steps.map((step, index) => stepText(step, index)).join("\n");
  const script = `${prelude(subject)}${RUN}main() {\nbegin\n${body}\nfinish - 0\n}\nmain\n`;
  if (Buffer.byteLength(script) > REMOTE_SCRIPT_MAX_BYTES) {
    throw new GroveError("BAD_ARGUMENT", "the steps of an action are too long");
  }
  return script;
}

/** The script that inspects or ends an action. */
export function afterScript(subject: ScriptSubject, mode: AfterMode): string {
  return `${prelude(subject)}${AFTER}main() {\nsay boot "$boot"\n${mode}_action\nexit 0\n}\nmain\n`;
}

function prelude(subject: ScriptSubject): string {
  const { actionId, nodeId, secret, bootIdFile, uptimeFile } = subject;
  if (!NAME.test(actionId) || !NAME.test(nodeId) || !SECRET.test(secret)) {
    throw new GroveError("BAD_ARGUMENT", "the id of an action or a node is no name");
  }
  return `k=${quoted(`${actionId}.${nodeId}`)} n=${secret} b=${quoted(bootIdFile)} u=${quoted(uptimeFile)} t=${DAEMON_STOP_SECONDS}
${COMMON}`;
}

/** One step of the script: its folder, variables and words, each value quoted once. Throws BAD_ARGUMENT. */
export function stepText(step: RemoteStep, index: number): string {
  const [program = ""] = step.argv;
  if (program === "" || program.startsWith("-"))
    throw new GroveError("BAD_ARGUMENT", "a step names no program");
  const folder = (step.cwd ?? "").replace(/^~(?:\/|$)/, "");
  const enter = folder === "" ? "" : `cd -- ${quoted(folder)} || exit 126\n`;
  const variables = Object.entries(step.env ?? {}).map(([name, value]) => {
    if (!VARIABLE.test(name))
      throw new GroveError("BAD_ARGUMENT", "a step sets a variable that has no proper name");
    return `export ${name}=${quoted(value)}\n`;
  });
  const words = step.argv.map(quoted).join(" ");
  if (step.kind === "daemon") {
    return `go ${index}\n(\n${enter}${variables.join("")}${daemonText(step)}daemon ${words}\n) </dev/null\nafter ${index} $?`;
  }
  const run = `(\n${enter}export GROVE_ACTION="$k"\n${variables.join("")}exec ${words}\n) </dev/null`;
  const after = step.isOptional === true ? ":" : `after ${index} $?`;
  if (step.capture === undefined) return `go ${index}\n${run}\n${after}`;
  if (!NAME.test(step.capture)) throw new GroveError("BAD_ARGUMENT", "a step captures under no proper name");
  return `go ${index}\nsay capture ${step.capture}\n${run}\nc=$?\nsay captured\n${after.replace("$?", "$c")}`;
}

function daemonText(step: DaemonStep): string {
  return `p=${quoted(step.pidFile)} l=${quoted(step.logFile ?? "/dev/null")}\n`;
}

/**
 * Common to both scripts. `about PID` reads a process's state, session and start from the kernel. An action's
 * file is readable by this user only, and in memory where the disk is full. Its first line has the shell's
 * pid, its start and the boot id, so a reused pid is never taken for it.
 */
const COMMON = `say() { printf '\\036%s %s\\n' "$n" "$*"; }
about() {
state= group= session= started= line=
{ IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
set -- \${line##*) }
[ $# -ge 20 ] || return 1
state=$1 group=$3 session=$4
shift 19
started=$1
}
boot=none
{ IFS= read -r boot <"$b"; } 2>/dev/null
homes() {
for d in "$HOME/.grove-actions" "/dev/shm/.grove-actions-$USER"; do
[ -d "$d" ] && [ ! -L "$d" ] && [ -O "$d" ] && "$@" && return 0
done
return 1
}
# Succeeds when the name is ours now, or was taken before us: then $taken is the boot id of that time.
claim() {
if [ -e "$d/$k" ]; then
taken=
{ IFS=' ' read -r x x taken; } 2>/dev/null <"$d/$k"
taken=\${taken:-none}
return 0
fi
set -C
{ printf '%s\\n' "$first" >"$d/$k"; } 2>/dev/null
c=$?
set +C
if [ "$c" = 0 ]; then f=$d/$k; return 0; fi
[ -s "$d/$k" ] || rm -f -- "$d/$k"
return 1
}
enrol() {
taken= f=
for d in "$HOME/.grove-actions" "/dev/shm/.grove-actions-$USER"; do
[ -d "$d" ] || mkdir -m 700 -- "$d" 2>/dev/null
done
homes claim
}
`;

/**
 * `begin` takes the action's name; `finish` reports the end on both streams and marks it as acknowledged by
 * the console. Such files are removed in bulk, with those that nobody asks for any more: a process per action
 * would be a tenth of its cost. A wrong clock removes no file of a shell that runs.
 */
const RUN = `both() { say "$@"; say "$@" >&2; }
begin() {
about $$
if [ "$session" != $$ ]; then both refused session; exit 0; fi
first="$$ $started $boot"
enrol
if [ -n "$taken" ]; then both refused taken "$taken"; exit 0; fi
if [ -z "$f" ]; then both refused place; exit 0; fi
cd -- "$HOME" 2>/dev/null || cd /
both begun "$boot"
}
finish() {
printf 'end %s %s\\n' "$1" "$2" >>"$f"
both end "$1" "$2"
heard=
IFS= read -r heard
[ "$heard" = heard ] || exit 0
if [ -e "$f.end" ]; then exec rm -f -- "$f" "$f.end"; fi
printf 'heard\\n' >"$f"
cd -- "\${f%/*}" || exit 0
set -- *
if [ $# -le ${REMOTE_HEARD_FILES} ]; then exit 0; fi
heard=
for x in "$@"; do
line=
IFS= read -r line <"$x"
[ "$line" = heard ] && heard="$heard $x"
done
for x in $(find . ! -name . -prune -type f -mtime +${REMOTE_UNHEARD_DAYS} 2>/dev/null); do
w= s= o=
IFS=' ' read -r w s o <"$x"
[ "$o" = "$boot" ] && alive "$w" "$s" || heard="$heard $x"
done
exec rm -f -- $heard
}
go() { if [ -e "$f.end" ]; then finish "$1" 143; fi; }
after() { if [ "$2" != 0 ]; then finish "$1" "$2"; fi; }
alive() { about "$1" && [ "$state" != Z ] && [ "$started" = "$2" ]; }
${SAME_PROGRAM}daemon() {
old= since= was=
[ -e "$p" ] && { IFS=' ' read -r old; IFS=' ' read -r since was; } <"$p"
case $old in *[!0-9]*) old=;; esac
if [ -n "$old" ] && about "$old" && [ "$state" != Z ]; then
whom=-$old
if [ -z "$since" ]; then
[ "$group" = "$old" ] || whom=$old
since=$started was=$boot why=
if ! same_program "$old" "$@"; then
echo "process $old of $p was not started from here, and $why: end it once by hand" >&2
exit 1
fi
echo "process $old of $p was started by hand; from now on it is started from here"
fi
if [ "$started" = "$since" ] && [ "$boot" = "$was" ]; then
kill -s TERM -- "$whom" || exit 1
i=0
while alive "$old" "$since" && [ "$i" -lt $((t * 5)) ]; do i=$((i + 1)); sleep ${ROUND_SECONDS}; done
if alive "$old" "$since"; then kill -s KILL -- "$whom"; sleep 1; fi
if alive "$old" "$since"; then echo "process $old does not end" >&2; exit 1; fi
fi
fi
{ : >>"$l"; } || exit 1
setsid "$@" >>"$l" 2>&1 &
new=$!
about "$new"
printf '%s\\n%s %s\\n' "$new" "$started" "$boot" >"$p.new" && mv -f -- "$p.new" "$p" || exit 1
since=$started i=0
while [ "$i" -lt 5 ]; do
if ! alive "$new" "$since"; then
wait "$new"
c=$?
echo "ended at once, exit code $c; see $l" >&2
[ "$c" = 0 ] && c=1
exit "$c"
fi
i=$((i + 1))
sleep ${ROUND_SECONDS}
done
}
`;

/** In hundredths of a second. */
const TERM_GRACE = REMOTE_TERM_GRACE_MS / 10;
const KILL_GRACE = REMOTE_KILL_GRACE_MS / 10;
const ROUND = ROUND_SECONDS * 100;

/**
 * The processes of an action: those of its shell's session, and those that left it with its mark in their
 * environment. The shell itself lives until the KILL, to report the end. `passed` reads the time since the first
 * round, since rounds take long on a busy node; without a clock their pauses count.
 */
const AFTER = `held() { [ -e "$d/$k" ] && f=$d/$k; }
recall() {
f= w= s= o= word= step= code=
homes held || return 1
{ IFS=' ' read -r w s o; IFS=' ' read -r word step code; } <"$f"
return 0
}
shell_runs() { [ "$o" = "$boot" ] && about "$w" && [ "$state" != Z ] && [ "$started" = "$s" ]; }
members() {
found=
[ "$o" = "$boot" ] || return 0
if ! about "$w" || [ "$started" = "$s" ]; then
for x in /proc/[0-9]*; do
x=\${x#/proc/}
if about "$x" && [ "$session" = "$w" ] && [ "$x" != "$w" ] && [ "$state" != Z ]; then found="$found $x"; fi
done
fi
for x in $(grep -lszxF "GROVE_ACTION=$k" /proc/[0-9]*/environ 2>/dev/null); do
x=\${x#/proc/}
x=\${x%/environ}
case "$found " in *" $x "*) continue;; esac
if about "$x" && [ "$state" != Z ]; then found="$found $x"; fi
done
}
ended() {
g=$f
recall
rm -f -- "$g" "$g.end"
if [ "$word" = end ]; then say ended "$step" "$code"; else say none; fi
}
look_action() {
if ! recall; then say none; return; fi
if [ "$word" = end ]; then ended; return; fi
members
if shell_runs || [ -n "$found" ]; then say running; else ended; fi
}
passed() {
x= y=
{ IFS=' .' read -r x y z; } 2>/dev/null <"$u"
case $x$y in ''|*[!0-9]*) x=0;; *) x=$x$y x=\${x#0} x=\${x#0};; esac
x=\${x:-0}
began=\${began:-$x}
over=$((x - began))
[ "$over" -ge $((i * ${ROUND})) ] || over=$((i * ${ROUND}))
}
end_action() {
if ! recall; then
first="0 0 never"
enrol
if [ -z "$taken" ]; then say none; return; fi
recall
fi
: >"$f.end"
i=0 told= began= killed=
while :; do
members
if [ -z "$found" ] && ! shell_runs; then ended; return; fi
passed
if [ -n "$killed" ] && [ $((over - killed)) -ge ${KILL_GRACE} ]; then say left $found; return; fi
if [ "$over" -ge ${TERM_GRACE} ]; then killed=\${killed:-$over}; fi
for x in $found; do
if [ -n "$killed" ]; then kill -KILL "$x" 2>/dev/null; continue; fi
case "$told " in *" $x "*) continue;; esac
told="$told $x"
kill -TERM "$x" 2>/dev/null
done
if [ -n "$killed" ] && shell_runs; then kill -KILL "$w" 2>/dev/null; fi
i=$((i + 1))
sleep ${ROUND_SECONDS}
done
}
`;
