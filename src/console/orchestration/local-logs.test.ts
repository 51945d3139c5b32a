// Tests that only the named log files of this machine can be read and followed (spec 4.1, decision D10).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { LogLine } from "#wire/webapi/log-tail.ts";
import {
  LOCAL_LOG_FILES_MAX,
  LOCAL_LOG_POLL_MS,
  LOG_FOLLOW_MAX_MS,
  LOG_TAIL_MAX_BYTES,
  LocalLogs,
  parseLocalLog,
  problemOf,
} from "./local-logs.ts";

const folder = scratchFolder("grove-local-logs-");

const SECRET = "a secret of this console";

function logsOf(path: string): { logs: LocalLogs; clock: ManualClock } {
  const clock = new ManualClock();
  const files = [{ nodeId: "n1", service: "fileserver", path }] as const;
  return { logs: new LocalLogs({ clock, files, secrets: () => [SECRET] }), clock };
}

const messages = (lines: readonly LogLine[]): string[] => lines.map(({ message }) => message);

test("a log is named as node/service=file with an absolute path; anything else is refused with an example", () => {
  assert.deepEqual(parseLocalLog("n1/metaserver=/var/log/a=b.log"), {
    nodeId: "n1",
    service: "metaserver",
    path: "/var/log/a=b.log",
  });
  for (const text of [
    "n1/fileserver",
    "n1/sshd=/a",
    "n1=/a",
    "n1/admin=a.log",
    "n1/admin=",
    "/admin=/a",
    "N1/admin=/a",
    "cluster/admin=/a",
    "n1/admin=/a\nb",
  ])
    assert.throws(() => parseLocalLog(text), { code: "BAD_ARGUMENT" }, text);
});

test("at most so many files are named", () => {
  const files = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ nodeId: `n${at}`, service: "admin", path: "/x" }) as const);
  const make = (count: number) =>
    new LocalLogs({ clock: new ManualClock(), files: files(count), secrets: () => [] });
  assert.equal(make(LOCAL_LOG_FILES_MAX).has("n0", "admin"), true);
  assert.throws(() => make(LOCAL_LOG_FILES_MAX + 1), { code: "BAD_ARGUMENT" });
});

test("a node's id is looked up among those that were named and never becomes a path", async () => {
  writeFileSync(join(folder, "kept.log"), "kept\n");
  const { logs } = logsOf(join(folder, "kept.log"));
  assert.equal(logs.has("n1", "fileserver"), true);
  for (const id of ["n2", "../n1", "n1/fileserver", "/etc/passwd", "", "__proto__", "constructor"])
    assert.equal(logs.has(id, "fileserver"), false, id);
  assert.equal(logs.has("n1", "admin"), false);
  await assert.rejects(logs.tail("n2", "fileserver", 10), TypeError);
});

test("the last lines are those of the last mebibyte, whole, with secrets masked", async () => {
  const path = join(folder, "long.log");
  writeFileSync(
    path,
    Array.from({ length: 50 }, (_, at) => `line ${at}\n`).join("") + `with ${SECRET} in it\nno end`,
  );
  const { logs } = logsOf(path);
  const few = await logs.tail("n1", "fileserver", 3);
  assert.deepEqual(messages(few.lines), ["line 49", "with [redacted] in it", "no end"]);
  assert.equal(few.truncated, false);
  writeFileSync(path, `${"x".repeat(LOG_TAIL_MAX_BYTES)}\nlast\n`);
  assert.deepEqual(
    await logs.tail("n1", "fileserver", 10).then(({ lines, truncated }) => [messages(lines), truncated]),
    [["last"], true],
  );
});

test("what is no file is not read, and nobody waits for it", async () => {
  const [pipe, place] = [join(folder, "pipe"), join(folder, "place")];
  execFileSync("mkfifo", [pipe]);
  mkdirSync(place);
  await assert.rejects(logsOf(pipe).logs.tail("n1", "fileserver", 10), { code: "STORAGE_FAILED" });
  await assert.rejects(logsOf(place).logs.tail("n1", "fileserver", 10));
  const missing = await logsOf(join(folder, "missing")).logs.tail("n1", "fileserver", 10).catch(problemOf);
  assert.match(String(missing), /-local_log names is not there/);
});

test("a file is followed as it grows, over its replacement, until that is ended", async () => {
  const path = join(folder, "followed.log");
  writeFileSync(path, "old\n");
  const { logs, clock } = logsOf(path);
  const heard: string[] = [];
  const ends: (string | undefined)[] = [];
  const stop = logs.follow("n1", "fileserver", {
    onLines: (lines) => heard.push(...messages(lines)),
    onEnd: (why) => ends.push(why),
  });
  const look = (): void => clock.advance(LOCAL_LOG_POLL_MS);
  await until(() => heard.includes("old"));
  appendFileSync(path, "new\nhal");
  await until(() => {
    look();
    return heard.includes("new");
  });
  appendFileSync(path, "f\n");
  await until(() => {
    look();
    return heard.includes("half");
  });
  renameSync(path, `${path}.1`);
  for (let looks = 0; looks < 3; looks++) {
    look();
    await turn();
  }
  writeFileSync(path, "next\n");
  await until(() => {
    look();
    return heard.includes("next");
  });
  stop();
  stop();
  assert.deepEqual([heard, ends], [["old", "new", "half", "next"], [undefined]]);
});

test("following ends by itself after an hour, and at once where there is no file", async () => {
  const path = join(folder, "hour.log");
  writeFileSync(path, "line\n");
  const { logs, clock } = logsOf(path);
  const ends: (string | undefined)[] = [];
  const onEnd = (why: string | undefined): number => ends.push(why);
  logs.follow("n1", "fileserver", { onLines: () => undefined, onEnd });
  clock.advance(LOG_FOLLOW_MAX_MS - 1);
  assert.deepEqual(ends, []);
  clock.advance(1);
  assert.match(String(ends[0]), /an hour/);
  logsOf(join(folder, "none")).logs.follow("n1", "fileserver", { onLines: () => undefined, onEnd });
  await until(() => ends.length === 2);
  assert.match(String(ends[1]), /is not there/);
});
