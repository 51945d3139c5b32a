// Tests the installed units and sudoers with systemd and sudo themselves.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type ActionTarget, planFor } from "#console/orchestration/action-arguments.ts";
import { ACTION_COMMANDS, sudoFinding } from "#doctor/sudo-check.ts";
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

/** Every sudo command of the actions, without `sudo -n`. */
function privilegedCommands(): string[] {
  const requests = [
    { action: "restart", target_service: "all" },
    { action: "reboot" },
    { action: "apt" },
    ...SERVICES.map((service) => ({ action: "logs", service, lines: 1000 })),
  ];
  const steps = requests.flatMap(
    (request) => planFor(actionRequest.parse({ nodes: ["n1"], ...request }), TARGET).steps,
  );
  assert.ok(steps.every(({ argv }) => argv[0] === "sudo" && argv[1] === "-n"));
  return steps.map(({ argv }) => argv.slice(2).join(" "));
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
  assert.equal(needed.length, 9);
  const followed = "journalctl -u svc-fileserver -n 10 -f --no-pager -o json";
  const asked = [...needed, followed, ...FORBIDDEN];
  const words = [...AS_ROOT, "unshare", "-m", "sh", "-c", NAMESPACE, "sh", SUDOERS];
  const { stdout, stderr } = spawnSync(words[0] ?? "", words.slice(1), {
    encoding: "utf8",
    input: `${asked.join("\n")}\n`,
  });
  const answers = stdout.trim().split("\n");
  const told = asked.map((line, at) => `${answers[at]}: ${line}`);
  const expected = asked.map((line, at) => `${at <= needed.length ? "yes" : "no"}: ${line}`);
  assert.deepEqual(told, expected, stderr);
  // Package installation is non-interactive, and the caller cannot choose another frontend.
  const [quiet, other, ...listing] = answers.slice(asked.length);
  assert.deepEqual([quiet, other], ["frontend=noninteractive", "frontend="]);
  // The doctor reports it too.
  const { what } = sudoFinding(listing.join("\n"));
  assert.equal(what, `all ${ACTION_COMMANDS.length} command lines are allowed`);
});
