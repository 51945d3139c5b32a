// Tests the history of actions on a real disk: write-ahead, bounds, crashes (spec 4.7, 8; D7, A-10, E-06).
import assert from "node:assert/strict";
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type ActionRecord, actionRecord } from "#wire/webapi/action-record.ts";
import {
  ActionHistory,
  type ActionHistoryDeps,
  HISTORY_FILE,
  TARGET_OUTPUT_KEPT_BYTES,
  UNRUN_RECORDS_KEPT,
} from "./action-history.ts";
import { ACTION_OUTPUT_KEPT_BYTES } from "./action-output.ts";
import { ACTION_RECORDS_WITH_OUTPUT } from "./output-store.ts";

let folder = "";
const clock = new ManualClock();
const NOW = Math.trunc(clock.wallMs() / 1_000);
beforeEach(async () => {
  folder = scratchFolder("grove-actions-");
});

const open = (more: Partial<ActionHistoryDeps> = {}): ReturnType<typeof ActionHistory.open> =>
  ActionHistory.open({ folder, clock, log: silentLogger, ...more });
const opened = async (more: Partial<ActionHistoryDeps> = {}): Promise<ActionHistory> =>
  (await open(more)).history;
const ids = (history: ActionHistory): string[] => history.list().map(({ id }) => id);

function record(id: string, more: Partial<ActionRecord> = {}): ActionRecord {
  const target = { node_id: "n1", node_name: "pi-1", argv: ["make", "build"], exit_code: null };
  return actionRecord.parse({
    id,
    action: "build",
    request: { action: "build", nodes: ["n1"], dry_run: false, make_target: "build" },
    operator: { session: "0123abcd", ip: "127.0.0.1" },
    state: "succeeded",
    created_at: NOW,
    exit_code: 0,
    stdout: "",
    stderr: "",
    targets: [{ ...target, state: "running", stdout: "", stderr: "", truncated: false }],
    ...more,
  });
}

test("a record is in command_history.json, private, when put resolves, and there after a restart (spec 8)", async () => {
  const history = await opened();
  await history.put(record("a", { state: "running" }));
  const file = JSON.parse(await readFile(join(folder, HISTORY_FILE), "utf8")) as {
    schema: number;
    records: unknown[];
  };
  assert.equal(file.schema, 1);
  assert.equal(file.records.length, 1);
  assert.equal((await stat(join(folder, HISTORY_FILE))).mode & 0o777, 0o600);
  await history.put(record("a"));
  await history.put(record("b"));
  const again = await opened();
  assert.deepEqual(again.list(), history.list());
  assert.deepEqual(ids(again), ["b", "a"]);
  assert.equal(again.find("a")?.state, "succeeded");
});

test("an action whose record cannot be written does not start: put throws, and the history is as it was", async () => {
  let isFull = false;
  const history = await opened({
    replaceFile: async (path, content) => {
      if (isFull) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
      await writeFile(path, content);
    },
  });
  await history.put(record("a"));
  isFull = true;
  await assert.rejects(history.put(record("b")), (error) => isGroveError(error, "STORAGE_FAILED"));
  assert.deepEqual(ids(history), ["a"]);
  isFull = false;
  await history.put(record("c"));
  assert.deepEqual(ids(history), ["c", "a"]);
});

test("a console starts on a full disk over an action that the one before has left, and the next write has its end", async () => {
  await (await opened()).put(record("a", { state: "running" }));
  let isFull = true;
  const history = await opened({
    replaceFile: async (path, content) => {
      if (isFull) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
      await writeFile(path, content);
    },
  });
  assert.equal(history.find("a")?.state, "orphaned");
  isFull = false;
  await history.put(record("b"));
  assert.match(await readFile(join(folder, HISTORY_FILE), "utf8"), /"state":"orphaned"/);
});

test("after a failed flush nothing is written any more: a flush is never tried again", async () => {
  let calls = 0;
  const history = await opened({
    replaceFile: async () => {
      calls++;
      throw new GroveError("STORAGE_FAILED", "flush");
    },
  });
  await assert.rejects(history.put(record("a")), (error) => isGroveError(error, "STORAGE_FAILED"));
  await assert.rejects(history.put(record("a")), /until a restart/);
  assert.equal(calls, 1);
});

test("the newest finished records up to -history_limit are kept, and every unfinished one besides (spec 8, D7)", async () => {
  const history = await opened({ limit: 3 });
  await history.put(record("running", { state: "running" }));
  for (const id of ["1", "2", "3"]) await history.put(record(id));
  assert.deepEqual(ids(history), ["3", "2", "1", "running"]);
  await history.put(record("4"));
  assert.deepEqual(ids(history), ["4", "3", "2", "running"]);
  await history.put(record("running"));
  assert.deepEqual(ids(history), ["4", "3", "2"], "it is the oldest of the finished now");
  assert.equal((await opened({ limit: 3 })).list().length, 3);
});

test("dry runs and rejected actions displace none that ran, nor the output of one; the newest of them are kept besides (spec 8)", async () => {
  const limit = UNRUN_RECORDS_KEPT + 1;
  const history = await opened({ limit });
  const ran = Array.from({ length: limit }, (_, at) => `ran-${at}`);
  for (const id of ran) await history.put(record(id, { stdout: "out" }));
  for (let at = 0; at < limit; at++) {
    await history.put(record(`rejected-${at}`, { state: "rejected" }));
    const { request } = record("x");
    await history.put(record(`dry-${at}`, { request: { ...request, dry_run: true } }));
  }
  const kept = ids(history);
  assert.deepEqual(
    kept.filter((id) => id.startsWith("ran-")),
    ran.toReversed(),
  );
  assert.equal(history.find(`ran-${limit - ACTION_RECORDS_WITH_OUTPUT}`)?.stdout, "out");
  assert.equal(kept.length, limit + UNRUN_RECORDS_KEPT);
  assert.deepEqual(kept.slice(0, 2), [`dry-${limit - 1}`, `rejected-${limit - 1}`]);
  assert.deepEqual(history.known().endedNewestFirst, ran.toReversed());
  assert.deepEqual(ids(await opened({ limit })), kept);
  const small = await opened({ limit: 2 });
  await small.put(record("ran"));
  assert.deepEqual(ids(small), ["ran", `dry-${limit - 1}`, `rejected-${limit - 1}`, ran.at(-1)]);
});

test("records put at the same time all arrive, in order", async () => {
  const history = await opened();
  const names = Array.from({ length: 30 }, (_, at) => `${at}`);
  await Promise.all(names.map((id) => history.put(record(id))));
  assert.deepEqual(ids(await opened()), names.toReversed());
});

test("what a console that died left unfinished is orphaned and its targets unknown; what it handed over is not (T14)", async () => {
  const history = await opened();
  for (const state of ["queued", "locking", "running", "handed_over", "failed"] as const) {
    await history.put(record(state, { state }));
  }
  const again = await opened();
  assert.deepEqual(
    again.list().map(({ id, state }) => [id, state]),
    [
      ["failed", "failed"],
      ["handed_over", "handed_over"],
      ["running", "orphaned"],
      ["locking", "orphaned"],
      ["queued", "orphaned"],
    ],
  );
  assert.equal(again.find("running")?.finished_at, NOW);
  assert.equal(again.find("running")?.targets[0]?.state, "unknown");
  assert.deepEqual(
    again.handedOver().map(({ id }) => id),
    ["handed_over"],
  );
  assert.doesNotMatch(
    await readFile(join(folder, HISTORY_FILE), "utf8"),
    /"\},"state":"(?:queued|locking|running)"/,
  );
});

test("a record keeps the end of long output, whole characters of it, and says that it is cut (D7)", async () => {
  const history = await opened();
  const long = `${"é".repeat(ACTION_OUTPUT_KEPT_BYTES)}end`;
  const [target] = record("x").targets;
  if (target === undefined) throw new TypeError("a target");
  await history.put(record("a", { stdout: long, stderr: "short", targets: [{ ...target, stderr: long }] }));
  const kept = history.find("a");
  assert.ok(Buffer.byteLength(kept?.stdout ?? "") <= ACTION_OUTPUT_KEPT_BYTES);
  assert.match(kept?.stdout ?? "", /^é+end$/);
  assert.equal(kept?.stderr, "short");
  assert.ok(Buffer.byteLength(kept?.targets[0]?.stderr ?? "") <= TARGET_OUTPUT_KEPT_BYTES);
  assert.equal(kept?.targets[0]?.truncated, true);
});

test("only the newest records keep output in the file; older ones say that theirs is cut (D7)", async () => {
  const history = await opened();
  const [target] = record("x").targets;
  if (target === undefined) throw new TypeError("a target");
  const count = ACTION_RECORDS_WITH_OUTPUT + 2;
  for (let at = 0; at < count; at++) {
    await history.put(record(`${at}`, { stdout: "out", targets: [{ ...target, stdout: "out" }] }));
  }
  const withOutput = history.list().filter(({ stdout }) => stdout === "out");
  assert.equal(withOutput.length, ACTION_RECORDS_WITH_OUTPUT);
  assert.equal(history.find("1")?.stdout, "");
  assert.equal(history.find("1")?.targets[0]?.truncated, true);
  assert.equal(history.find("2")?.stdout, "out");
});

test("a damaged file is set aside and the generation before takes its place; with none of it the history is empty (A-10)", async () => {
  const path = join(folder, HISTORY_FILE);
  const history = await opened();
  await history.put(record("a"));
  await history.put(record("b"));
  const whole = await readFile(path, "utf8");
  for (const text of [
    "",
    "{",
    "null",
    "[]",
    '{"schema":1}',
    '{"schema":1,"records":[{}]}',
    whole.slice(0, -10),
    "\0".repeat(99),
  ]) {
    await writeFile(path, text);
    const { history: recovered, setAsideAs } = await open();
    assert.match(setAsideAs ?? "", /\.corrupt-\d+$/);
    assert.deepEqual(ids(recovered), ["a"], JSON.stringify(text.slice(0, 20)));
    await rm(setAsideAs ?? "");
  }
  await writeFile(path, "{");
  await writeFile(`${path}.previous`, "{");
  const { history: empty } = await open();
  assert.deepEqual(ids(empty), []);
  assert.ok((await readdir(folder)).some((name) => name.includes(".corrupt-")));
  // Output without a record may be that of a lost one, also once the new history has been read again.
  assert.equal(empty.known().isIncomplete, true);
  await empty.put(record("c"));
  assert.equal((await open()).history.known().isIncomplete, true);
});

test("the history of a newer version is refused, not overwritten (D18)", async () => {
  const path = join(folder, HISTORY_FILE);
  await writeFile(path, '{"schema":2,"records":[]}');
  await assert.rejects(open(), /newer Grove/);
  assert.equal(await readFile(path, "utf8"), '{"schema":2,"records":[]}');
});
