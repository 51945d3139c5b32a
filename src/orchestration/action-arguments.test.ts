// What actions run, word by word, and that no value is ever more than one word: through a real shell with 2,000 hostile values.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { type ActionRequest, actionRequest } from "#webapi/action-request.ts";
import { type ActionTarget, planFor } from "./action-arguments.ts";
import { quoted, remoteText } from "./remote-text.ts";

const folder = mkdtempSync(join(tmpdir(), "grove-arguments-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const target: ActionTarget = {
  nodeId: "n1",
  repository: "/srv/grove/source",
  services: { fileserver: { logFile: "/var/log/grove/fileserver.log" }, admin: {} },
  hasServiceManager: true,
};
const request = (more: object): ActionRequest => actionRequest.parse({ nodes: ["n1"], ...more });
const lines = (more: object, at: ActionTarget = target): string[] =>
  planFor(request(more), at).steps.map(({ argv }) => argv.join(" "));
const refused = (more: object, at: ActionTarget, says: RegExp): void => {
  assert.throws(
    () => planFor(request(more), at),
    (error) => isGroveError(error, "BAD_ARGUMENT") && says.test(error.message),
  );
};

test("each action runs exactly what the specification says (spec 4.7, D7, T15, T16)", () => {
  assert.deepEqual(lines({ action: "pull", branch: "main" }), [
    "git pull --ff-only --end-of-options origin main",
  ]);
  assert.deepEqual(lines({ action: "build" }), ["make build"]);
  assert.deepEqual(lines({ action: "reboot" }), ["sudo -n reboot"]);
  assert.deepEqual(lines({ action: "apt", AptMode: "update_only" }), ["sudo -n apt-get update"]);
  assert.deepEqual(lines({ action: "apt" }), [
    "sudo -n apt-get update",
    "sudo -n apt-get upgrade -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold",
  ]);
  assert.deepEqual(lines({ action: "logs", service: "metaserver", lines: 10 }), [
    "sudo -n journalctl -u svc-metaserver -n 10 --no-pager -o json",
  ]);
  assert.deepEqual(planFor(request({ action: "custom", command: "uptime; df" }), target), {
    steps: [{ argv: ["sh", "-c", "uptime; df"], cwd: "/srv/grove/source" }],
    limitSeconds: 60,
  });
  assert.equal(planFor(request({ action: "pull", branch: "x" }), target).steps[0]?.cwd, "/srv/grove/source");
});

test("limits are the action's own, and a custom command's what it asks for (D7)", () => {
  const limit = (more: object): number => planFor(request(more), target).limitSeconds;
  assert.deepEqual(
    [
      limit({ action: "pull", branch: "x" }),
      limit({ action: "build" }),
      limit({ action: "restart", target_service: "admin" }),
      limit({ action: "reboot" }),
      limit({ action: "apt" }),
      limit({ action: "logs", service: "admin" }),
      limit({ action: "custom", command: "x", timeout_seconds: 7 }),
    ],
    [120, 1_800, 60, 600, 3_600, 30, 7],
  );
});

test("a restart of all restarts what the node runs, the console last, and says that it ends with it (T14)", () => {
  const { steps } = planFor(request({ action: "restart", target_service: "all" }), target);
  assert.deepEqual(
    steps.map(({ argv, endsConsole }) => [argv.join(" "), endsConsole === true]),
    [
      ["sudo -n systemctl restart svc-fileserver", false],
      ["sudo -n systemctl restart svc-admin", true],
    ],
  );
});

test("what a node lacks is refused with a sentence, before anything runs", () => {
  const bare: ActionTarget = { ...target, services: {}, hasServiceManager: false };
  const plain: ActionTarget = { ...target, hasServiceManager: false };
  refused({ action: "restart", target_service: "metaserver" }, target, /n1 runs no metaserver/);
  refused({ action: "restart", target_service: "all" }, bare, /n1 runs no service/);
  refused({ action: "restart", target_service: "admin" }, plain, /no service manager/);
  refused({ action: "restart", target_service: "admin", restart_mode: "binary" }, target, /how n1 starts/);
  refused({ action: "logs", service: "admin" }, plain, /log of its admin/);
  assert.deepEqual(lines({ action: "logs", service: "fileserver" }, plain), [
    "tail -n 200 -- /var/log/grove/fileserver.log",
  ]);
  refused({ action: "build" }, { ...target, repository: "-x" }, /not an absolute path/);
  refused({ action: "build" }, { ...target, repository: "/a\nb" }, /not an absolute path/);
});

test("a binary's environment, which may hold secrets, is in no argument", () => {
  const binary = {
    argv: ["./grove", "fileserver"],
    cwd: "/srv",
    env: { TOKEN: "hush" },
    pidFile: "/run/x.pid",
  };
  const at = { ...target, services: { fileserver: { binary } } };
  const [step] = planFor(
    request({ action: "restart", target_service: "fileserver", restart_mode: "binary" }),
    at,
  ).steps;
  assert.deepEqual(step?.argv.slice(4), ["/run/x.pid", "/dev/null", "./grove", "fileserver"]);
  assert.doesNotMatch(step.argv.join(" "), /hush|TOKEN/);
  assert.deepEqual(step.env, { TOKEN: "hush" });
});

const PIECES = [
  ";",
  "&&",
  "|",
  "$(touch MARK)",
  "`touch MARK`",
  "'",
  '"',
  "\\",
  "\n",
  " ",
  "*",
  "?",
  "~",
  "$HOME",
  "${IFS}",
  "#",
  "!",
  "<",
  ">",
  "--",
  "-",
  "=",
  "é",
  "%",
  "a",
  "main",
  "\t",
  "(",
  ")",
  "{",
  "}",
  "\u2028",
  "touch MARK",
];
const hostile = fc.array(fc.constantFrom(...PIECES), { maxLength: 8 }).map((pieces) => pieces.join(""));

test("any value comes out of a real shell as the one word that went in", () => {
  const values = fc
    .sample(fc.oneof(hostile, fc.string({ unit: "binary" })), 2_000)
    .filter((value) => !value.includes("\0"));
  // Lone surrogates have no form in UTF-8.
  const whole = values.filter((value) => value.isWellFormed());
  const { stdout } = spawnSync("sh", ["-c", `printf '%s\\0' ${whole.map(quoted).join(" ")}`], {
    cwd: folder,
    maxBuffer: 1e8,
  });
  assert.deepEqual(stdout.toString("utf8").split("\0").slice(0, -1), whole);
  assert.deepEqual(readdirSync(folder), []);
  assert.throws(
    () => quoted("a\0b"),
    (error) => isGroveError(error, "BAD_ARGUMENT"),
  );
});

test("hostile branches, targets, services, modes, lines and nodes have no effect beyond their refusal (T15, E-02)", () => {
  // Stand-ins for git and make write down the words that they were called with.
  const tools = mkdtempSync(join(tmpdir(), "grove-tools-"));
  for (const name of ["git", "make", "sudo", "tail"]) {
    const path = join(tools, name);
    writeFileSync(path, `#!/bin/sh\nprintf '%s\\0' "\${0##*/}" "$@" >>"${tools}/words"\n`);
    chmodSync(path, 0o755);
  }
  try {
    const forms: ((value: string) => object)[] = [
      (branch) => ({ action: "pull", branch }),
      (make_target) => ({ action: "build", make_target }),
      (target_service) => ({ action: "restart", target_service }),
      (restart_mode) => ({ action: "restart", target_service: "admin", restart_mode }),
      (apt_mode) => ({ action: "apt", apt_mode }),
      (service) => ({ action: "logs", service }),
      (text) => ({ action: "logs", service: "admin", lines: text }),
      (node) => ({ action: "reboot", nodes: [node] }),
    ];
    const accepted: ActionRequest[] = [];
    for (const form of forms) {
      for (const value of fc.sample(hostile, 2_500)) {
        const result = actionRequest.safeParse({ nodes: ["n1"], ...form(value) });
        if (result.success) accepted.push(result.data);
      }
    }
    const at = { ...target, repository: tools };
    const steps = accepted.slice(0, 300).flatMap((each) => planFor(each, at).steps);
    const script = steps.map((step) => remoteText(step)).join("\n");
    spawnSync("sh", ["-c", script], { cwd: folder, env: { PATH: `${tools}:${process.env["PATH"] ?? ""}` } });
    const words = readFileSync(join(tools, "words"), "utf8").split("\0").slice(0, -1);
    assert.deepEqual(
      words,
      steps.flatMap(({ argv }) => argv),
    );
    assert.ok(words.includes("main"), "some are accepted, or this shows nothing");
    assert.deepEqual(readdirSync(folder), []);
    assert.equal(existsSync(join(tools, "MARK")), false);
  } finally {
    rmSync(tools, { recursive: true, force: true });
  }
});

test("a binary is started in the background, ended by the next start, and a stranger's process is left alone", () => {
  const at = join(folder, "binary");
  const run = (argv: readonly string[], pidFile: string): ReturnType<typeof spawnSync> => {
    const binary = { argv, cwd: folder, env: {}, pidFile };
    const plan = planFor(
      request({ action: "restart", target_service: "fileserver", restart_mode: "binary" }),
      { ...target, services: { fileserver: { binary, logFile: join(folder, "log") } } },
    );
    return spawnSync("sh", ["-c", plan.steps.map((step) => remoteText(step)).join(" && ")], {
      timeout: 60_000,
    });
  };
  const pidIn = (): number => Number(readFileSync(at, "utf8").split(" ")[0]);
  const isUp = (pid: number): boolean => existsSync(`/proc/${pid}`);
  assert.equal(run(["sleep", "300"], at).status, 0);
  const first = pidIn();
  assert.equal(isUp(first), true);
  assert.equal(run(["sleep", "301"], at).status, 0);
  const second = pidIn();
  assert.equal(isUp(first), false);
  assert.equal(isUp(second), true);
  // The same number with another start time is somebody else's process.
  writeFileSync(at, `${second} 12345\n`);
  assert.equal(run(["sleep", "302"], at).status, 0);
  assert.equal(isUp(second), true);
  process.kill(second);
  process.kill(pidIn());
  const failed = run(["false"], at);
  assert.equal(failed.status, 1);
  assert.match(String(failed.stderr), /ended at once/);
});
