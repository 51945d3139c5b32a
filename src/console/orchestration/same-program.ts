// The part of a node's script that compares a running process with the program of a binary restart.

/**
 * `same_program PID WORDS…` succeeds when the process runs the words' program, with their first argument and
 * in their data folder; else `$why` has the difference. A script's process is its interpreter with the script
 * among its words; Grove's launcher becomes Node with the entry file beside it. The data folder is what
 * `-data` names, else the working folder, in which the default lies.
 */
export const SAME_PROGRAM = `folder_of() {
data=
while [ $# -gt 0 ]; do
case $1 in
-data|--data) data=\${2-};;
-data=*|--data=*) data=\${1#*=};;
esac
shift
done
}
within() { case $2 in /*) printf '%s' "$2";; '') printf '%s' "$1";; *) printf '%s' "$1/$2";; esac; }
same_program() {
o=$1
shift
case $1 in */*) file=$1;; *) file=$(command -v -- "$1");; esac
file=$(readlink -f -- "$file") verb=\${2-}
if [ -z "$file" ]; then why="there is no $1"; return 1; fi
exe=$(readlink -f "/proc/$o/exe" 2>/dev/null) there=$(readlink "/proc/$o/cwd" 2>/dev/null)
if [ -z "$exe" ] || [ -z "$there" ]; then why="it belongs to another user"; return 1; fi
folder_of "$@"
wanted=$(readlink -f -- "$(within "$(pwd -P)" "$data")")
why=$(
set -f
IFS='
'
set -- $(tr '\\000' '\\n' <"/proc/$o/cmdline")
folder_of "$@"
found=$(readlink -f -- "$(within "$there" "$data")")
program= named=
[ "$exe" = "$file" ] && program=yes
for x in "$@"; do
[ "$x" = "$verb" ] && named=yes
case $x in (*/*) ;; (*) [ -e "$there/$x" ] || continue;; esac
x=$(readlink -f -- "$(within "$there" "$x")")
case $x in ("$file"|"\${file%/*}/src/bin/grove.ts"|"\${file%/*}/dist/bin/grove.js") program=yes;; esac
done
case $verb in (''|-*) named=yes;; esac
if [ -z "$program" ]; then echo "it runs another program, $exe"
elif [ -z "$named" ]; then echo "it was not started as $verb"
elif [ "$found" != "$wanted" ]; then echo "its data folder is $found and not $wanted"
fi
)
[ -z "$why" ]
}
`;
