// Tests the installed units and sudoers with systemd and sudo themselves.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type ActionTarget, followedLog, planFor } from "#console/orchestration/action-arguments.ts";
import { ACTION_COMMANDS, sudoFinding } from "#doctor/sudo-check.ts";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { actionRequest } from "#wire/webapi/action-request.ts";

const PACKAGING = fileURLToPath(new URL("../packaging", import.meta.url));
const SUDOERS = `${PACKAGING}/sudoers.d/svc`;
const SERVICES = ["fileserver", "metaserver", "admin"] as const;
/** The largest permitted score of `systemd-analyze security`. */
const EXPOSURE_MAX = 2.5;

const AS_ROOT = process.getuid?.() === 0 ? [] : ["sudo", "-n"];

/** The reason to skip a test whose program this machine lacks. */
function without(...words: readonly string[]): string | false {
  const [program = "", ...rest] = words;
  const { status } = spawnSync(program, rest, { stdio: "ignore" });
  return status === 0 ? false : `needs ${words.join(" ")}`;
}

test("the sudoers file is one that sudo reads (D20)", { skip: without("visudo", "-V") }, () => {
  const { status, stdout, stderr } = spawnSync("visudo", ["-c", "-f", SUDOERS], { encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
});

for (const service of [...SERVICES, "door"]) {
  test(`svc-${service} is exposed at ${EXPOSURE_MAX} at most, and runs \`grove ${service}\``, {
    skip: without("systemd-analyze", "--version"),
  }, () => {
    const unit = `${PACKAGING}/systemd/svc-${service}.service`;
    const threshold = `--threshold=${EXPOSURE_MAX * 10}`;
    const { status, stdout, stderr } = spawnSync(
      "systemd-analyze",
      ["security", "--offline=true", "--no-pager", threshold, unit],
      { encoding: "utf8" },
    );
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, /Overall exposure level/);
    assert.doesNotMatch(stderr, /Unknown|Failed to parse|ignoring/i);
    assert.match(readFileSync(unit, "utf8"), new RegExp(`^ExecStart=/opt/grove/grove ${service} `, "m"));
  });
}

const TARGET: ActionTarget = {
  id: "n1",
  repository: "grove",
  services: { fileserver: {}, metaserver: {}, admin: {} },
};

/** Every sudo command of the actions and of followed logs, without `sudo -n`. */
function privilegedCommands(): string[] {
  const requests = [
    { action: "restart", target_service: "all" },
    { action: "reboot" },
    { action: "apt" },
    ...SERVICES.map((service) => ({ action: "logs", service, lines: 1000 })),
  ];
  const lines = requests.flatMap((request) =>
    planFor(actionRequest.parse({ nodes: ["n1"], ...request }), TARGET).steps.flatMap(({ argv }) =>
      request.action === "logs" ? [argv, followedLog(argv)] : [argv],
    ),
  );
  assert.ok(lines.every((argv) => argv[0] === "sudo" && argv[1] === "-n"));
  return lines.map((argv) => argv.slice(2).join(" "));
}

/** Near misses of each, and commands that an attacker with the key would try. */
const FORBIDDEN = [
  "reboot -f",
  "systemctl restart",
  "systemctl restart ssh",
  "systemctl restart svc-admin ssh",
  "systemctl stop svc-admin",
  "systemctl edit svc-admin",
  "journalctl",
  "journalctl -u svc-admin",
  "journalctl -u ssh -n 10 --no-pager -o json",
  "journalctl -u svc-admin -n 10 --no-pager -o json --file=/etc/shadow",
  "journalctl --file=/etc/shadow -u svc-admin -n 10 --no-pager -o json",
  "journalctl -u svc-admin -n 10 -o json",
  "apt-get update -o APT::Update::Pre-Invoke::=id",
  "apt-get upgrade -y",
  "apt-get install bash",
  "sh -c id",
  "visudo",
];

/**
 * A mount namespace with its own users, sudoers and apt-get. Nothing runs as root but the stand-in of
 * apt-get.
 */
const NAMESPACE = `
set -e
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; chmod 755 "$folder"
for file in passwd group shadow; do cp -p /etc/$file "$folder/$file"; done
echo 'svc:x:64242:64242::/nonexistent:/bin/sh' >> "$folder/passwd"
echo 'svc:x:64242:' >> "$folder/group"
echo 'svc:*:19000:0:99999:7:::' >> "$folder/shadow"
for file in passwd group shadow; do mount --bind "$folder/$file" /etc/$file; done
mount -t tmpfs -o mode=755 none /etc/sudoers.d
install -m 440 "$1" /etc/sudoers.d/svc
printf '#!/bin/sh\\necho "frontend=$DEBIAN_FRONTEND"\\n' > "$folder/apt-get"; chmod 755 "$folder/apt-get"
mount --bind "$folder/apt-get" /usr/bin/apt-get
as() { setpriv --reuid 64242 --regid 64242 --clear-groups "$@"; }
while read -r line; do if as sudo -n -l $line >/dev/null 2>&1; then echo yes; else echo no; fi; done
for value in noninteractive editor; do as env DEBIAN_FRONTEND=$value sudo -n apt-get update; done
as env LC_ALL=C sudo -n -l
`;

test("sudo allows what the actions run, to the letter, and nothing beside it (T16, E-08)", {
  skip: without("sudo", "-V") || without(...AS_ROOT, "unshare", "-m", "true"),
}, () => {
  const needed = privilegedCommands();
  assert.equal(needed.length, 12);
  const asked = [...needed, ...FORBIDDEN];
  const words = [...AS_ROOT, "unshare", "-m", "sh", "-c", NAMESPACE, "sh", SUDOERS];
  const { stdout, stderr } = spawnSync(words[0] ?? "", words.slice(1), {
    encoding: "utf8",
    input: `${asked.join("\n")}\n`,
  });
  const answers = stdout.trim().split("\n");
  const told = asked.map((line, at) => `${answers[at]}: ${line}`);
  const expected = asked.map((line, at) => `${at < needed.length ? "yes" : "no"}: ${line}`);
  assert.deepEqual(told, expected, stderr);
  // Package installation is non-interactive, and the caller cannot choose another frontend.
  const [quiet, other, ...listing] = answers.slice(asked.length);
  assert.deepEqual([quiet, other], ["frontend=noninteractive", "frontend="]);
  // The doctor reports it too.
  const { what } = sudoFinding(listing.join("\n"));
  assert.equal(what, `all ${ACTION_COMMANDS.length} command lines are allowed`);
});

/** Runs the package's script of an upgrade where systemd seems to run; its programs only tell what they are asked. */
const UPGRADE = `
set -e
mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/stub
for name in systemd-sysusers systemd-tmpfiles systemctl deb-systemd-invoke; do
printf '#!/bin/sh\\n[ "$1" != try-restart ] || echo "$2"\\n' > /run/stub/$name; chmod 755 /run/stub/$name
done
PATH=/run/stub:$PATH
sh "$1" configure 0.0.9
# As an action's shell has it, with a program between that clears its environment, as sudo does.
GROVE_ACTION=x.n1 sh -c 'env -i PATH="$PATH" sh "$1" configure 0.0.9; :' sh "$1"
`;

test("an upgrade restarts the services in order, and not the console whose own action installs it", {
  skip: without(...AS_ROOT, "unshare", "-m", "true"),
}, () => {
  const words = [...AS_ROOT, "unshare", "-m", "sh", "-c", UPGRADE, "sh", `${PACKAGING}/debian/postinst`];
  const { status, stdout, stderr } = spawnSync(words[0] ?? "", words.slice(1), { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  const before = ["svc-metaserver.service", "svc-fileserver.service", "svc-door.service"];
  assert.deepEqual(stdout.trim().split("\n"), [...before, "svc-admin.service", ...before], stderr);
  assert.match(stderr, /^grove: svc-admin runs on as it was, since its action installs this; restart it/m);
});

/** A system with these files, and what a script of the package leaves of it. */
function afterRemoval(
  files: readonly string[],
  ...acts: readonly string[]
): { readonly root: string; readonly left: string[]; readonly told: string } {
  const root = scratchFolder("grove-package-");
  for (const path of [...files, "etc/grove/init.json", "var/cache/grove/admin/x", "var/lib/svc/.ssh/x"]) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), "");
  }
  let told = "";
  for (const act of acts) {
    const env = { PATH: process.env["PATH"], DPKG_ROOT: root };
    const { status, stderr } = spawnSync("sh", [`${PACKAGING}/debian/postrm`, act], {
      encoding: "utf8",
      env,
    });
    assert.equal(status, 0, stderr);
    told += stderr;
  }
  const left = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return { root, left: left.map(({ parentPath, name }) => join(parentPath, name)), told };
}

test("purging the package leaves users' files with the keys that serve them, and tells what removes them", () => {
  const data = "var/lib/grove";
  const kept = [
    `${data}/fileserver/${DATABASE_FILE}`,
    `${data}/fileserver/tls/node.key`,
    `${data}/ca/ca.key`,
  ];
  const { root, left, told } = afterRemoval(kept, "remove", "purge");
  assert.deepEqual(left.toSorted(), kept.map((path) => join(root, path)).toSorted());
  assert.match(told, new RegExp(`holds users' files, so that .* with: rm -r ${join(root, data)}$`, "m"));
  // A database that was lost does not make its chunks worthless.
  const chunk = `${data}/fileserver/chunks/aa/01ARZ3NDEKTSV4RRFFQ69G5FAV`;
  const other = afterRemoval([chunk], "purge");
  assert.deepEqual(other.left, [join(other.root, chunk)]);
});

test("purging the package takes settings and state where no users' files are, and nothing of the operator's own", () => {
  const data = "var/lib/grove";
  const state = [
    "ca/ca.key",
    "metaserver/metadata.db",
    "fileserver/node.json",
    "cluster.json",
    "admin/password",
  ];
  const files = state.map((path) => `${data}/${path}`);
  const all = afterRemoval(files, "remove", "purge", "purge");
  assert.deepEqual([all.left, existsSync(join(all.root, data)), all.told], [[], false, ""]);
  const backup = `${data}/backup/chunks/x`;
  const { root, left, told } = afterRemoval([...files, backup], "purge");
  assert.deepEqual(left, [join(root, backup)]);
  assert.match(told, /holds what Grove has not put there, so that it was not removed/);
  assert.equal(afterRemoval(files, "remove").left.length, files.length + 3);
});

/** Purges where a disk is mounted for the FileServer, and then where one is for all data; tells what is left of each. */
const PURGE_DISKS = `
set -e
for place in var/lib/grove/fileserver var/lib/grove; do
mount -t tmpfs none /mnt && DPKG_ROOT=/mnt/root && export DPKG_ROOT
mkdir -p "$DPKG_ROOT/$place" && mount -t tmpfs none "$DPKG_ROOT/$place"
mkdir -p "$DPKG_ROOT/var/lib/grove/ca" && echo x > "$DPKG_ROOT/var/lib/grove/ca/ca.key"
[ "$place" = var/lib/grove ] || echo x > "$DPKG_ROOT/$place/of the operator's own"
sh "$1" purge
(cd "$DPKG_ROOT" && find . -type f)
done
`;

test("purging the package empties no disk that is mounted in the data folder, nor fails at one", {
  skip: without(...AS_ROOT, "unshare", "-m", "true"),
}, () => {
  const words = [...AS_ROOT, "unshare", "-m", "sh", "-c", PURGE_DISKS, "sh", `${PACKAGING}/debian/postrm`];
  const { status, stdout, stderr } = spawnSync(words[0] ?? "", words.slice(1), { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.equal(stdout, "./var/lib/grove/fileserver/of the operator's own\n");
  assert.equal(stderr.match(/^grove: \S+ holds what Grove has not put there/gm)?.length, 2, stderr);
});
