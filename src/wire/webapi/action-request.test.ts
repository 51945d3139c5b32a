// Requests for actions: kinds, defaults, aliases, and refusals that name the place (spec 2.9, D7, T15, E-02).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { actionRequest, CUSTOM_COMMAND_MAX_BYTES } from "./action-request.ts";

const N1 = { nodes: ["n1"] };
const read = (request: object): unknown => actionRequest.parse({ ...N1, ...request });
const placesOf = (request: object): string[] => {
  const result = actionRequest.safeParse({ ...N1, ...request });
  return result.success ? [] : result.error.issues.map(({ path }) => path.join("/"));
};

test("each kind comes out in full, with the specification's defaults (spec 2.9)", () => {
  const common = { nodes: ["n1"], dry_run: false };
  const table: [object, object][] = [
    [{ action: "pull", branch: "main" }, { branch: "main" }],
    [{ action: "build" }, { make_target: "build" }],
    [
      { action: "restart", target_service: "all" },
      { restart_mode: "systemctl", target_service: "all" },
    ],
    [{ action: "reboot" }, {}],
    [{ action: "apt" }, { apt_mode: "update_upgrade" }],
    [
      { action: "logs", service: "admin" },
      { service: "admin", lines: 200 },
    ],
    [
      { action: "custom", command: "uptime" },
      { command: "uptime", timeout_seconds: 60 },
    ],
  ];
  for (const [request, more] of table) {
    assert.deepEqual(read(request), { ...common, ...more, action: (request as { action: string }).action });
  }
  assert.deepEqual(actionRequest.parse({ action: "reboot", nodes: "all", dry_run: true }), {
    action: "reboot",
    nodes: "all",
    dry_run: true,
  });
});

test("the specification's own names are taken too, but not beside ours (D7)", () => {
  assert.deepEqual(
    read({ action: "restart", RestartMode: "binary", TargetService: "fileserver" }),
    read({ action: "restart", restart_mode: "binary", target_service: "fileserver" }),
  );
  assert.deepEqual(
    read({ action: "apt", AptMode: "update_only" }),
    read({ action: "apt", apt_mode: "update_only" }),
  );
  assert.deepEqual(
    read({ action: "custom", command: "x", TimeoutSeconds: 5 }),
    read({ action: "custom", command: "x", timeout_seconds: 5 }),
  );
  assert.deepEqual(placesOf({ action: "apt", AptMode: "update_only", apt_mode: "update_only" }), ["AptMode"]);
});

test("what an action needs is asked for, and what does not go with it is refused", () => {
  assert.deepEqual(placesOf({ action: "pull" }), ["branch"]);
  assert.deepEqual(placesOf({ action: "restart" }), ["target_service"]);
  assert.deepEqual(placesOf({ action: "logs" }), ["service"]);
  assert.deepEqual(placesOf({ action: "custom" }), ["command"]);
  assert.deepEqual(placesOf({ action: "reboot", command: "rm -r /" }), ["command"]);
  assert.deepEqual(placesOf({ action: "pull", branch: "main", timeout_seconds: 5 }), ["timeout_seconds"]);
  assert.deepEqual(placesOf({ action: "reboot", AptMode: "update_only" }), ["apt_mode"]);
  assert.equal(placesOf({ action: "reboot", sudo: true }).length, 1);
  assert.deepEqual(placesOf({ action: "format" }), ["action"]);
});

test("numbers and sizes are held at both sides of their limits (D7, D17)", () => {
  const custom = (more: object): string[] => placesOf({ action: "custom", command: "x", ...more });
  for (const [timeout_seconds, isFine] of [
    [0, false],
    [1, true],
    [3_600, true],
    [3_601, false],
    [1.5, false],
    ["60", false],
  ] as const) {
    assert.equal(custom({ timeout_seconds }).length === 0, isFine, `${timeout_seconds}`);
  }
  assert.deepEqual(custom({ command: "x".repeat(CUSTOM_COMMAND_MAX_BYTES) }), []);
  assert.deepEqual(custom({ command: "x".repeat(CUSTOM_COMMAND_MAX_BYTES + 1) }), ["command"]);
  assert.deepEqual(custom({ command: "é".repeat(CUSTOM_COMMAND_MAX_BYTES / 2 + 1) }), ["command"]);
  assert.deepEqual(custom({ command: "a\0b" }), ["command"]);
  for (const [lines, isFine] of [
    [9, false],
    [10, true],
    [1_000, true],
    [1_001, false],
    [1e30, false],
  ] as const) {
    assert.equal(placesOf({ action: "logs", service: "admin", lines }).length === 0, isFine, `${lines}`);
  }
  const nodes = Array.from({ length: 51 }, (_, at) => `n${at}`);
  assert.deepEqual(placesOf({ action: "reboot", nodes }), ["nodes"]);
  assert.deepEqual(placesOf({ action: "reboot", nodes: nodes.slice(1) }), []);
  for (const bad of [[], ["n1", "n1"], ["-oProxyCommand=x"], ["N1"], ["a.b"], ["n1\n"], "n1", null]) {
    assert.equal(placesOf({ action: "reboot", nodes: bad }).length > 0, true, JSON.stringify(bad));
  }
});

test("branches and targets that are something else to git, make or a shell are refused (T15, E-02)", () => {
  for (const branch of ["main", "release/1.2", "a", "x".repeat(200), "feature/a_b-c.d"]) {
    assert.deepEqual(placesOf({ action: "pull", branch }), [], branch);
  }
  for (const branch of [
    "",
    "-x",
    "--upload-pack=touch /tmp/x",
    "a..b",
    "a//b",
    "a/",
    "/a",
    "a.lock",
    "a.lock/b",
    "a/.b",
    "a.",
    ".a",
    "a b",
    "a;b",
    "a$(b)",
    "a`b`",
    "a|b",
    "a&b",
    "a>b",
    "a'b",
    'a"b',
    "a\\b",
    "a\nb",
    "a\n",
    "a\0",
    "a:b",
    "a~1",
    "a^",
    "a?",
    "a*",
    "a[b",
    "@{u}",
    "ä",
    "x".repeat(201),
    "+main",
    "refs/heads/main:refs/heads/x",
  ]) {
    assert.deepEqual(placesOf({ action: "pull", branch }).length > 0, true, JSON.stringify(branch));
  }
  for (const make_target of [
    "",
    "-f",
    "--eval=x",
    "A=b",
    "SHELL=/bin/sh",
    "a b",
    "a;b",
    "a/b",
    "$(x)",
    "a\n",
    "x".repeat(65),
  ]) {
    assert.deepEqual(
      placesOf({ action: "build", make_target }),
      ["make_target"],
      JSON.stringify(make_target),
    );
  }
  assert.deepEqual(placesOf({ action: "build", make_target: "x".repeat(64) }), []);
});

test("whatever comes in, it is an action in full or a refusal, and never anything between", () => {
  const value = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.integer(),
    fc.constantFrom(null, true, "all", "main", "n1", ["n1"]),
    fc.anything(),
  );
  const names = [
    "action",
    "nodes",
    "branch",
    "make_target",
    "command",
    "timeout_seconds",
    "TimeoutSeconds",
    "lines",
    "service",
    "target_service",
    "RestartMode",
    "apt_mode",
    "strategy",
    "__proto__",
    "constructor",
  ];
  const request = fc.dictionary(fc.constantFrom(...names), value);
  fc.assert(
    fc.property(
      request,
      fc.constantFrom("pull", "build", "restart", "reboot", "apt", "logs", "custom"),
      (rest, action) => {
        const result = actionRequest.safeParse({ action, nodes: ["n1"], ...rest });
        if (!result.success) return;
        const { data } = result;
        if (data.action === "pull") assert.match(data.branch, /^[A-Za-z0-9][A-Za-z0-9._/-]*$/);
        if (data.action === "build") assert.match(data.make_target, /^[A-Za-z0-9][A-Za-z0-9._-]*$/);
        if (data.action === "restart") assert.match(`${data.target_service}${data.restart_mode}`, /^[a-z]+$/);
        if (data.action === "custom") assert.ok(data.timeout_seconds >= 1 && data.command !== "");
      },
    ),
    { numRuns: 1_500 },
  );
});
