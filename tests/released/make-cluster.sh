#!/bin/sh
# Makes the folders of a released version that open-cluster.test.ts opens: make-cluster.sh CHECKOUT OUT.tar.zst
# CHECKOUT is a checkout of the release with its packages (git worktree add, npm ci).
# Needs python3, zstd and free default ports.
set -eu
checkout=$1 out=$(realpath "$2") work=$(mktemp -d)
cd "$checkout"
export GROVE_CONFIG_DIR="$work/pack/client-of-alice"

./grove up -mock -nodes 2 -data "$work/pack/cluster" > "$work/up.log" 2>&1 &
until grep -q 'Next, in another terminal' "$work/up.log"; do sleep 1; done
cluster=$work/pack/cluster/cluster.json
pid_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pids"][sys.argv[2]])' "$cluster" "$1"; }

# Line n of a file with seed s is "s:n", n with ten digits.
python3 - "$work/in" <<'END'
import os, sys
top = sys.argv[1]
def pattern(size, seed):
    lines = b"".join(b"%d:%010d\n" % (seed, number) for number in range(size // 12 + 2))
    return lines[:size]
files = {"large.bin": pattern(9_000_001, 7), "begun.bin": b"", "tree/empty": b"", "tree/deep/chunk.bin": pattern(300_000, 3),
         "tree/deep/er/Zürich – 東京.txt": "Grüezi\n".encode(), **{f"tree/file {n}.txt": pattern(n * 997, n) for n in range(40)}}
for name, content in files.items():
    path = os.path.join(top, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(content)
    if name == "begun.bin": os.truncate(path, 400_000_000)
    os.utime(path, (1_700_000_000, 1_700_000_000))
END

./grove login --cluster "$cluster" --mock alice@example.com
./grove put "$work/in/large.bin" /
./grove put -r "$work/in/tree" /
./grove mkdir /shared
./grove cp /large.bin /shared/copy.bin
./grove share /shared bob@example.com
node=$(./grove roots --json | grep -o 'node-[12]' | head -1)

# An upload of which two chunks have arrived.
chunks() { find "$work/pack/cluster/$node/chunks" -type f | wc -l; }
before=$(chunks)
./grove put -q "$work/in/begun.bin" / & put=$!
until [ "$(chunks)" -ge $((before + 3)) ]; do sleep 0.01; done
kill -9 "$put"
pkill -9 -f "put -q $work/in/begun.bin" || true
./grove rm -r /tree/deep

as() { GROVE_CONFIG_DIR="$work/$1" ./grove login --cluster "$cluster" --mock "$1@example.com"; }
as bob
echo "from bob" | GROVE_CONFIG_DIR="$work/bob" ./grove write alice@example.com:/shared/bob.txt
as admin
GROVE_CONFIG_DIR="$work/admin" ./grove quota set alice@example.com 5GiB

# An alert that came and went, and a gap in the history.
other=$(pid_of node-1)
kill -STOP "$other"; sleep 45; kill -CONT "$other"; sleep 12
kill -INT "$(pid_of up)"
wait || true
./grove ca init -ca_dir "$work/pack/ca"
./grove ca issue n1 -ca_dir "$work/pack/ca" -host n1.example.net -out "$work/pack/ca-n1"
rm -f "$work"/pack/cluster/up.lock* "$work"/pack/cluster/logs/*
tar --sparse --numeric-owner --sort=name -C "$work/pack" -cf - . | zstd -19 --long=24 -o "$out"
rm -rf "$work"
