// Tests that no value of an action becomes two words in a real shell, with 2,000 hostile values.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type ActionRequest, actionRequest } from "#wire/webapi/action-request.ts";
import { type ActionTarget, planFor, wordsOf } from "./action-arguments.ts";
import { stepText } from "./remote-script.ts";
import type { RunStep } from "./remote-step.ts";
import { quoted } from "./remote-text.ts";

const folder = scratchFolder("grove-arguments-");

const target: ActionTarget = {
  id: "n1",
  repository: "/srv/grove/source",
  services: { fileserver: {}, admin: {} },
};
const request = (more: object): ActionRequest => actionRequest.parse({ nodes: ["n1"], ...more });
const lines = (more: object, at: ActionTarget = target): string =>
  wordsOf(planFor(request(more), at).steps).join(" ");
const refused = (more: object, at: ActionTarget, says: RegExp): void => {
  assert.throws(
    () => planFor(request(more), at),
    (error) => isGroveError(error, "BAD_ARGUMENT") && says.test(error.message),
  );
};

test("each action runs exactly what the specification says (spec 4.7, D7, T15, T16)", () => {
  assert.equal(lines({ action: "pull", branch: "main" }), "git pull --ff-only --end-of-options origin main");
  assert.equal(lines({ action: "build" }), "make build");
  assert.equal(lines({ action: "reboot" }), "sudo -n reboot");
  assert.equal(lines({ action: "apt", AptMode: "update_only" }), "sudo -n apt-get update");
  assert.equal(
    lines({ action: "apt" }),
    "sudo -n apt-get update && sudo -n apt-get upgrade -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold",
  );
  assert.equal(
    lines({ action: "logs", service: "metaserver", lines: 10 }),
    "sudo -n journalctl -u svc-metaserver -n 10 --no-pager -o json",
  );
  assert.deepEqual(planFor(request({ action: "custom", command: "uptime; df" }), target), {
    steps: [{ argv: ["sh", "-c", "uptime; df"], cwd: "/srv/grove/source" }],
    limitSeconds: 60,
    expectsReboot: false,
    consoleStep: undefined,
  });
  for (const action of ["reboot", "build"]) {
    assert.equal(planFor(request({ action }), target).expectsReboot, action === "reboot");
  }
});

test("a pull notes the commit before and after it, and fails on neither", () => {
  const { steps } = planFor(request({ action: "pull", branch: "main" }), target);
  assert.deepEqual(
    steps.map((step) => (step.kind === "daemon" ? [] : [step.capture, step.isOptional, step.cwd])),
    [
      ["git_before", true, "/srv/grove/source"],
      [undefined, undefined, "/srv/grove/source"],
      ["git_after", true, "/srv/grove/source"],
    ],
  );
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
  const all = request({ action: "restart", target_service: "all" });
  const { steps, consoleStep } = planFor(all, target);
  assert.equal(
    wordsOf(steps).join(" "),
    "sudo -n systemctl restart svc-fileserver && sudo -n systemctl restart svc-admin",
  );
  assert.equal(consoleStep, 1);
  assert.equal(planFor(all, { ...target, services: { metaserver: {} } }).consoleStep, undefined);
});

test("what a node lacks is refused with a sentence, before anything runs", () => {
  const bare: ActionTarget = { ...target, services: {} };
  refused({ action: "restart", target_service: "metaserver" }, target, /n1 runs no metaserver/);
  refused({ action: "restart", target_service: "all" }, bare, /n1 runs no service/);
  const binary = { action: "restart", target_service: "admin", restart_mode: "binary" };
  refused(binary, target, /how n1 starts its admin/);
  refused(binary, { ...target, services: { admin: { argv: ["x"] } } }, /how n1 starts its admin/);
  refused(binary, { ...target, services: { admin: { argv: [], pidFile: "/p" } } }, /how n1 starts its admin/);
});

test("a binary is started with the node's own parameters, and a log without a journal is a file (spec 2.9, D10)", () => {
  const parameters = {
    argv: ["./grove", "fileserver"],
    cwd: "/srv",
    env: { LANG: "C" },
    pidFile: "/run/x.pid",
    logFile: "/var/log/x.log",
  };
  const at = { ...target, services: { fileserver: parameters } };
  const restart = { action: "restart", target_service: "fileserver", RestartMode: "binary" };
  assert.deepEqual(planFor(request(restart), at).steps, [{ kind: "daemon", ...parameters }]);
  assert.equal(lines({ action: "logs", service: "fileserver" }, at), "tail -n 200 -- /var/log/x.log");
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

/** Stand-ins for the functions of a node's script that steps call. */
const STUBS = "go() { :; }; after() { :; }; say() { :; }";

test("any argument of a step comes out of its script as the one word that went in", () => {
  const values = fc.sample(hostile, 500).filter((value) => !value.includes("\0") && value.isWellFormed());
  const script = `${STUBS}\n${stepText({ kind: "run", argv: ["printf", "%s\\0", ...values] }, 0)}`;
  const { stdout } = spawnSync("sh", ["-c", script], { cwd: folder, maxBuffer: 1e8 });
  assert.deepEqual(stdout.toString("utf8").split("\0").slice(0, -1), values);
  assert.deepEqual(readdirSync(folder), []);
});

test("hostile branches, targets, services, modes, lines and nodes have no effect beyond their refusal (T15, E-02)", () => {
  // Stand-ins for git and make record their arguments.
  const tools = scratchFolder("grove-tools-");
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
    const steps = accepted
      .slice(0, 300)
      .flatMap((each) => planFor(each, at).steps)
      .filter((step): step is RunStep => step.kind !== "daemon");
    const script = [STUBS, ...steps.map(stepText)].join("\n");
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
