// A console's answers to an operator about a cluster with problems, in real shapes and lengths.
import { HISTORY_COLUMNS } from "#wire/webapi/performance.ts";
import type { FakeConsole } from "./fake-console.ts";
import { BOB, COMMITS } from "./full-cluster.ts";
import { answerMoves } from "./move-answers.ts";
import { answerForUsers } from "./user-answers.ts";

const GIB = 2 ** 30;

/** An hour with a gap of a few minutes in it. */
function historyOf(now: number): object {
  const points = Array.from({ length: 720 }, (_, index) => {
    const ts = now - (719 - index) * 5;
    const isGap = index > 400 && index < 440;
    return HISTORY_COLUMNS.map((column, place) =>
      column === "ts"
        ? ts
        : isGap
          ? null
          : Math.round((30 + 20 * Math.sin(index / (20 + place)) + (index % 7)) * 100) / 100,
    );
  });
  return {
    node_id: "n1",
    interval_seconds: 5,
    kept_from: now - 3 * 86_400,
    from: now - 3_600,
    to: now,
    columns: HISTORY_COLUMNS,
    points,
  };
}

const NODES: readonly (readonly [string, string])[] = [
  ["n1", "fs-x86-1"],
  ["n2", "fs-x86-2"],
  ["n4", "fs-a-node-with-a-rather-long-name-in-the-cellar"],
];

const RESTART = ["sudo", "-n", "systemctl", "restart", "svc-fileserver"];

function action(now: number, fields: Record<string, unknown> = {}): Record<string, unknown> {
  const target = ([id, name]: readonly [string, string], state: string, code: number | null): object => ({
    node_id: id,
    node_name: name,
    argv: RESTART,
    exit_code: code,
    state,
    ...(state === "failed"
      ? { message: "The command ended with exit code 5: Unit svc-fileserver.service not found." }
      : {}),
    started_at: now - 60,
    stdout: "",
    stderr: "",
    truncated: false,
  });
  const [first, second, third] = NODES;
  return {
    id: "x1",
    action: "restart",
    request: { action: "restart", dry_run: false, target_service: "fileserver" },
    operator: { session: "5f3c9a10", ip: "192.0.2.17" },
    state: "running",
    created_at: now - 64,
    exit_code: null,
    stdout: "",
    stderr: "",
    targets: [
      target(first ?? ["", ""], "succeeded", 0),
      target(second ?? ["", ""], "failed", 5),
      target(third ?? ["", ""], "running", null),
    ],
    ...fields,
  };
}

function rollout(now: number, fields: Record<string, unknown> = {}): Record<string, unknown> {
  const steps = (done: number): object[] =>
    [
      ["pull", "git -C /opt/grove pull --ff-only origin main"],
      ["build", "make -C /opt/grove build"],
      ["restart", "sudo -n systemctl restart svc-fileserver"],
    ].map(([step = "", line = ""], index) => ({
      step,
      argv: line.split(" "),
      ...(index < done ? { action_id: `x${index}` } : {}),
    }));
  const nodes = NODES.map(([id, name], wave) => ({
    node_id: id,
    node_name: name,
    wave,
    changed: wave < 2,
    steps: steps(wave === 0 ? 3 : wave === 1 ? 2 : 0),
  }));
  return {
    id: "r1",
    direction: "forward",
    request: {
      nodes: "all",
      branch: "main",
      make_target: "build",
      restart_mode: "systemctl",
      target_service: "fileserver",
      step_size: 1,
      gates: { health_seconds: 60, observe_seconds: 30, errors_per_second_above: 0.1 },
      dry_run: false,
    },
    operator: { session: "5f3c9a10", ip: "192.0.2.17" },
    state: "running",
    seq: 4,
    created_at: now - 130,
    can_go_back: false,
    nodes: [
      {
        ...nodes[0],
        state: "running",
        step: "gate",
        commit_before: COMMITS[1],
        commit_after: COMMITS[0],
        errors_per_second_before: 0.02,
        errors_per_second_after: 0,
      },
      { ...nodes[1], state: "running", step: "build" },
      { ...nodes[2], state: "pending" },
    ],
    ...fields,
  };
}

/** A rollout that stopped at its second node. */
function stopped(now: number): Record<string, unknown> {
  const first = rollout(now)["nodes"] as Record<string, unknown>[];
  const nodes = [
    { ...first[0], state: "succeeded" },
    {
      ...first[1],
      state: "failed",
      step: "gate",
      commit_before: COMMITS[1],
      commit_after: COMMITS[0],
      message: "did not answer within 60 s after its restart",
      errors_per_second_before: 0,
      errors_per_second_after: 3.25,
    },
    { ...first[2], state: "skipped" },
  ];
  return rollout(now, {
    id: "r2",
    state: "failed",
    reason: "fs-x86-2 did not answer within 60 s after its restart",
    finished_at: now - 20,
    can_go_back: true,
    nodes,
  });
}

const without = (record: object, names: RegExp): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record).filter(([name]) => !names.test(name)));

/** A rollout before its start. */
function planned(now: number, fields: Record<string, unknown> = {}): Record<string, unknown> {
  const nodes = (rollout(now)["nodes"] as { steps: object[] }[]).map((node) => ({
    ...without(node, /^(?:step|commit_.*|errors_.*)$/),
    state: "pending",
    steps: node.steps.map((step) => without(step, /^action_id$/)),
  }));
  return rollout(now, { id: "plan", state: "planned", nodes, ...fields });
}

/** Fills a fake console with the answers of an operator's pages. */
export function answerEverything(fake: FakeConsole, now: number): void {
  const say = (path: string, reply: object): void => void fake.replies.set(path, reply);
  for (const id of ["n1", "n2", "n3", "n4", "cluster"]) say(`GET /api/history/${id}`, historyOf(now));
  say("GET /api/actions/history", {
    records: [
      action(now),
      action(now, {
        id: "x2",
        action: "custom",
        state: "succeeded",
        finished_at: now,
        created_at: now - 4_000,
      }),
      action(now, {
        id: "x3",
        action: "apt",
        state: "partly_failed",
        finished_at: now - 700,
        created_at: now - 90_000,
      }),
    ],
    total: 3,
  });
  say("GET /api/actions/presets", [
    {
      id: "p1",
      title: "Restart every FileServer",
      description: "One after the other; stops when one fails.",
      danger: "confirm",
      request: { action: "restart", nodes: "all", mode: "rolling", target_service: "fileserver" },
    },
  ]);
  say("GET /api/actions/x1", action(now));
  const lines = Array.from(
    { length: 60 },
    (_, index) => `Get:${index} http://deb.example/debian stable/main package-${index} [${index * 17} kB]`,
  );
  say("GET /api/actions/x1/output", {
    entries: [
      { seq: 10, after_seq: 0, ts: now, node_id: "n1", stream: "stdout", data: `${lines.join("\n")}\n` },
      {
        seq: 11,
        after_seq: 10,
        ts: now,
        node_id: "n2",
        stream: "stderr",
        data: "Failed to restart svc-fileserver.service: Unit svc-fileserver.service not found.\n",
      },
    ],
    next_seq: 11,
    complete: false,
  });
  say(
    "POST /api/actions/execute",
    action(now, {
      id: "dry",
      state: "succeeded",
      request: { action: "restart", dry_run: true },
      finished_at: now,
      targets: NODES.map(([node_id, node_name]) => ({
        node_id,
        node_name,
        argv: RESTART,
        state: "skipped",
        exit_code: null,
      })),
    }),
  );
  say("GET /api/rollouts", { rollouts: [rollout(now), stopped(now)], total: 2 });
  say("POST /api/rollouts", planned(now));
  say("GET /api/rollouts/r1", rollout(now));
  say("GET /api/rollouts/r2", stopped(now));
  say("POST /api/rollouts/r2/back", planned(now, { direction: "back" }));
  const entry = (seq: number, act: string, subject: string, detail: object): object => ({
    node: seq % 2 === 0 ? "console" : "n2",
    gathered_at: now - seq * 60,
    seq,
    time: new Date((now - seq * 60) * 1_000).toISOString(),
    actor: seq % 2 === 0 ? "operator 5f3c9a10" : BOB,
    act,
    subject,
    detail,
  });
  say("GET /api/audit", {
    entries: [
      entry(1, "file.delete", "/scans/2026/a-file-with-a-long-name.pdf", { inode: "123456" }),
      entry(2, "quota.set", BOB, { quota_bytes: 40 * GIB, previous_bytes: 16 * GIB, outcome: "done" }),
      entry(3, "share.grant", "/photos", { to: "carol@people.example", level: "read" }),
      entry(4, "session.open", "operator", { address: "192.0.2.17" }),
    ],
    next_cursor: "1.1",
  });
  say("GET /api/audit/chains", {
    chains: [
      { node: "console", last_seq: 412, asked_at: now, breaks: 0 },
      { node: "n2", last_seq: 90_211, asked_at: now - 3, breaks: 1 },
      { node: "n3", last_seq: 17, asked_at: now - 372, breaks: 0, problem: "The node does not answer." },
    ],
  });
  say("GET /api/silences", {
    silences: [
      {
        id: "s1",
        matchers: [
          { name: "node_id", value: "n2", is_regex: false },
          { name: "type", value: "storage_warning", is_regex: false },
        ],
        starts_at: now - 60,
        ends_at: now + 7_200,
        comment: "a new disk comes tomorrow",
        created_by: "5f3c9a10",
        created_at: now - 60,
        state: "active",
      },
    ],
  });
  say("GET /api/auth/sessions", {
    sessions: [
      { id: "5f3c9a10", address: "192.0.2.17", opened_at: now - 700, expires_at: now + 42_500, is_own: true },
      {
        id: "0a77be21",
        address: "2001:db8::5",
        opened_at: now - 9_000,
        expires_at: now + 34_200,
        is_own: false,
      },
    ],
  });
  say("GET /api/version", { version: "0.1.0", git_commit: COMMITS[0], api: "1", min_client: "0.1.0" });
  answerForUsers(fake, now);
  answerMoves(fake, now);
  say("GET /api/settings", {
    store: { kind: "sqlite", place: "/var/lib/grove/metadata.db", state: "answering", read_at: now - 4 },
    metaservers: [
      { address: "meta-1.example.net:50050", state: "answering", last_seen: now - 3 },
      {
        address: "[2001:db8::50]:50050",
        state: "offline",
        last_seen: now - 95,
        reason: "the connection was refused: nothing listens on the metrics port",
      },
    ],
  });
  say("GET /api/notices", {
    enabled: true,
    receivers: [
      { name: "pager", kind: "webhook", state: "ok", waiting: 0, last_delivery_at: now - 300 },
      {
        name: "post",
        kind: "email",
        state: "failing",
        waiting: 3,
        last_error: "The mail server refused the sender.",
      },
    ],
    queued: 0,
  });
  say("GET /api/logs/tail", {
    node_id: "n1",
    service: "fileserver",
    unit: "svc-fileserver",
    source: "journal",
    lines: logLines(now),
    text: "",
    truncated: false,
  });
}

function logLines(now: number): object[] {
  const line = (index: number, level: string, event: string, more: object): object => ({
    ts: now - 100 + index,
    priority: level === "error" ? 3 : 6,
    message: JSON.stringify({
      level,
      time: new Date((now - 100 + index) * 1_000).toISOString(),
      event,
      ...more,
    }),
  });
  return Array.from({ length: 40 }, (_, index) =>
    index % 9 === 8
      ? line(index, "error", "upload failed", {
          user: BOB,
          code: "DISK_FULL",
          path: "/scans/a-very-long-name-of-a-file-that-goes-on-and-on.tar.gz",
        })
      : line(index, "info", "quota set", { user: BOB, bytes: 17_179_869_184 }),
  );
}
