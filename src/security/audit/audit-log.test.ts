// Tests of the audit log: the chain and its breaks, crashes, rotation, the cursor, and failing disks.
import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import type { AuditAct } from "#base/audit-act.ts";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { AUDIT_FILES_KEPT } from "./audit-files.ts";
import { hashOf } from "./audit-line.ts";
import { AUDIT_FLUSH_INTERVAL_MS, AUDIT_PENDING_BYTES, AUDIT_RECENT_LINES, AuditLog } from "./audit-log.ts";
import { verifyAudit } from "./verify-audit.ts";

const act = (number: number): AuditAct => ({
  act: "file.delete",
  actor: "a@example.com",
  subject: `a@example.com:/f${number}`,
  detail: { bytes: BigInt(number), inodes: 1 },
});

function open(
  dataFolder: string,
  options: { clock?: ManualClock; fileMaxBytes?: number; filesKept?: number } = {},
): Promise<AuditLog> {
  return AuditLog.open({ dataFolder, clock: new ManualClock(), log: silentLogger, ...options });
}

/** Writes so many acts and closes. */
async function written(dataFolder: string, count: number, options = {}): Promise<void> {
  const log = await open(dataFolder, options);
  for (let at = 1; at <= count; at++) {
    log.append(act(at));
    if (at % 10 === 0) await log.flush();
  }
  await log.close();
}

const files = (dataFolder: string): string[] =>
  readdirSync(join(dataFolder, "audit"))
    .filter((name) => name.endsWith(".log"))
    .toSorted();
const only = (dataFolder: string): string => join(dataFolder, "audit", files(dataFolder)[0] ?? "");
const linesIn = (path: string): string[] => readFileSync(path, "utf8").trimEnd().split("\n");

test("each line names the hash of the line before, and the head the last one (D24)", async () => {
  const data = scratchFolder("grove-audit-");
  await written(data, 25);
  const lines = linesIn(only(data));
  let before = "0".repeat(64);
  for (const [at, text] of lines.entries()) {
    const line = JSON.parse(text) as Record<string, unknown>;
    assert.equal(line["seq"], at + 1);
    assert.equal(line["prev"], before);
    assert.deepEqual(line["detail"], { bytes: at + 1, inodes: 1 });
    before = hashOf(text);
  }
  assert.deepEqual(JSON.parse(readFileSync(join(data, "audit", "head.json"), "utf8")), {
    seq: 25,
    hash: before,
  });
  const verdict = await verifyAudit(data);
  assert.deepEqual(
    [verdict.broken, verdict.lines, verdict.first?.seq, verdict.last?.seq],
    [undefined, 25, 1, 25],
  );
});

test("any change of a log is found, and the first line that it breaks is named (D24)", async () => {
  const data = scratchFolder("grove-audit-");
  await written(data, 30);
  const path = only(data);
  const original = readFileSync(path, "utf8");
  const lines = original.trimEnd().split("\n");
  const withLines = (changed: readonly string[]): string => `${changed.join("\n")}\n`;
  const rows: [string, string, RegExp][] = [
    ["a changed word", original.replace('/f12"', '/f13"'), /line 13: does not follow/],
    ["a changed last line", original.replace('/f30"', '/f31"'), /line 30: is not the line that head\.json/],
    ["a line taken out", withLines(lines.toSpliced(9, 1)), /line 11: line 10 should be here/],
    [
      "two lines exchanged",
      withLines([lines[1] ?? "", lines[0] ?? "", ...lines.slice(2)]),
      /begins with|line/,
    ],
    ["a line put in", withLines(lines.toSpliced(9, 0, lines[8] ?? "")), /line 9: line 10 should be here/],
    ["the tail cut off", withLines(lines.slice(0, 20)), /ends with line 20; head\.json tells of line 30/],
    [
      "the beginning cut off",
      withLines(lines.slice(5)),
      /begins with .*line 6; the files before it are gone/,
    ],
    ["everything gone", "", /ends with line 0; head\.json tells of line 30/],
    ["a word of no line", withLines(lines.toSpliced(4, 1, "hello")), /after 4: is no line/],
  ];
  for (const [what, text, expected] of rows) {
    writeFileSync(path, text);
    const { broken } = await verifyAudit(data);
    assert.match(broken ?? "(holds)", expected, what);
  }
  writeFileSync(path, original);
  writeFileSync(join(data, "audit", "head.json"), "{");
  assert.match((await verifyAudit(data)).broken ?? "", /head\.json cannot be read/);
  assert.match((await verifyAudit(scratchFolder("grove-audit-"))).broken ?? "", /there is no audit log/);
  const fresh = scratchFolder("grove-audit-");
  await written(fresh, 0);
  assert.deepEqual(await verifyAudit(fresh), {
    lines: 0,
    first: undefined,
    last: undefined,
    broken: undefined,
    notes: [],
  });
});

test("a byte changed anywhere breaks the chain (D24)", async () => {
  const data = scratchFolder("grove-audit-");
  await written(data, 8);
  const path = only(data);
  const original = readFileSync(path);
  await fc.assert(
    fc.asyncProperty(fc.nat(original.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
      const changed = Buffer.from(original);
      changed[at] = (changed[at] ?? 0) ^ flip;
      writeFileSync(path, changed);
      const { broken, notes } = await verifyAudit(data);
      assert.ok(broken !== undefined, `byte ${at}: ${notes.join()}`);
    }),
    { numRuns: 60 },
  );
});

test("a torn last line is set aside at the next start, wherever the crash cut it, and the chain goes on (A-01)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 200 }), async (tornBytes) => {
      const data = scratchFolder("grove-audit-");
      await written(data, 5);
      const path = only(data);
      const whole = readFileSync(path, "utf8");
      // State after a crash: a whole or partial line beyond the head.
      appendFileSync(path, whole.slice(0, tornBytes).replaceAll("\n", " "));
      assert.equal((await verifyAudit(data)).broken, undefined);
      const log = await open(data);
      log.append(act(6));
      await log.close();
      assert.ok(readdirSync(join(data, "audit")).some((name) => name.includes(".torn-")));
      const verdict = await verifyAudit(data);
      assert.deepEqual([verdict.broken, verdict.lines], [undefined, 6]);
    }),
    { numRuns: 15 },
  );
});

test("all lines behind a damaged one are set aside, as many as there are (D24)", async () => {
  const data = scratchFolder("grove-audit-");
  const log = await open(data);
  for (let at = 1; at <= 400; at++) log.append({ ...act(at), subject: "x".repeat(4_000) });
  await log.close();
  const path = only(data);
  const [first = "", second = "", ...behind] = linesIn(path);
  writeFileSync(path, [first, second.slice(1), ...behind, ""].join("\n"));
  await (await open(data)).close();
  const aside = readdirSync(join(data, "audit")).find((name) => name.includes(".torn-")) ?? "";
  assert.deepEqual(linesIn(join(data, "audit", aside)), [second.slice(1), ...behind]);
});

test("a piece of a line that cannot be set aside on a full disk keeps no process from its start; whole lines do (A-01)", async () => {
  const data = scratchFolder("grove-audit-");
  await written(data, 5);
  const path = only(data);
  const whole = readFileSync(path, "utf8");
  // A folder of that name takes no file, as a full disk does not.
  mkdirSync(`${path}.torn-${whole.length}`);
  writeFileSync(path, `${whole}{"seq":6,\n${linesIn(path)[0] ?? ""}\n`);
  await assert.rejects(open(data));
  writeFileSync(path, `${whole}{"seq":6,`);
  await (await open(data)).close();
  assert.equal(readFileSync(path, "utf8"), whole);
});

test("lines that a crash kept from the head are kept, and the head catches up (A-01)", async () => {
  const data = scratchFolder("grove-audit-");
  await written(data, 5);
  const head = readFileSync(join(data, "audit", "head.json"));
  const log = await open(data);
  log.append(act(6));
  await log.close();
  writeFileSync(join(data, "audit", "head.json"), head);
  assert.equal((await verifyAudit(data)).broken, undefined);
  const again = await open(data);
  again.append(act(7));
  await again.close();
  assert.deepEqual((await verifyAudit(data)).last?.seq, 7);
});

test("a tail that was cut off stays visible after a start, in the log itself too (D24)", async () => {
  for (const cut of [
    (path: string) => truncateSync(path, Buffer.byteLength(linesIn(path).slice(0, 4).join("\n")) + 1),
    (path: string) => unlinkSync(path),
  ]) {
    const data = scratchFolder("grove-audit-");
    await written(data, 9);
    cut(only(data));
    const log = await open(data);
    log.append(act(10));
    await log.close();
    const { broken } = await verifyAudit(data);
    assert.match(broken ?? "(holds)", /line 10/);
    const path = join(data, "audit", files(data).at(-1) ?? "");
    assert.ok(linesIn(path).some((line) => line.includes('"act":"audit.gap"')));
  }
});

test("files are bounded in size and number; the chain runs through them and verifies without the oldest (D24)", async () => {
  const data = scratchFolder("grove-audit-");
  const small = { fileMaxBytes: 2_000, filesKept: AUDIT_FILES_KEPT };
  await written(data, 100, small);
  const few = files(data).length;
  assert.ok(few > 5 && few < AUDIT_FILES_KEPT, String(few));
  assert.deepEqual((await verifyAudit(data)).lines, 100);
  await written(data, 600, small);
  assert.equal(files(data).length, AUDIT_FILES_KEPT);
  const verdict = await verifyAudit(data);
  assert.equal(verdict.broken, undefined);
  assert.match(verdict.notes.join(), /rotated away/);
  assert.equal(verdict.last?.seq, 700);
  // A file missing from the middle is noticed.
  const names = files(data);
  renameSync(join(data, "audit", names[3] ?? ""), join(data, "elsewhere"));
  assert.ok((await verifyAudit(data)).broken !== undefined);
});

test("the cursor gives each durable line once and in order, across files and restarts, in bounded pages (D24)", async (t) => {
  const data = scratchFolder("grove-audit-");
  await written(data, 95, { fileMaxBytes: 3_000 });
  const log = await open(data, { fileMaxBytes: 3_000 });
  t.after(() => log.close());
  const read = async (limit: number): Promise<number[]> => {
    const seen: number[] = [];
    for (let after = 0; ; ) {
      const page = await log.read(after, limit);
      assert.ok(page.lines.length <= limit);
      seen.push(...page.lines.map((line) => (JSON.parse(line) as { seq: number }).seq));
      if (page.nextAfter === after) return seen;
      after = page.nextAfter;
    }
  };
  const numbers = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);
  assert.deepEqual(await read(7), numbers(95));
  for (let at = 96; at <= 120; at++) log.append(act(at));
  // Not before it is on stable storage.
  assert.deepEqual((await log.read(95, 10)).lines, []);
  await log.flush();
  assert.deepEqual(await read(1_000), numbers(120));
  assert.deepEqual((await log.read(120, 10)).lines, []);
  assert.deepEqual([(await log.read(500, 10)).nextAfter, (await log.read(500, 10)).headSeq], [500, 120]);
  for (let at = 121; at <= 120 + AUDIT_RECENT_LINES; at++) log.append(act(at));
  await log.flush();
  assert.deepEqual((await read(300)).length, 120 + AUDIT_RECENT_LINES);
});

test("acts wait for the next flush and nobody for them; more than fit are dropped and counted (D24)", async () => {
  const data = scratchFolder("grove-audit-");
  const clock = new ManualClock();
  const log = await open(data, { clock });
  log.append(act(1));
  assert.equal(files(data).length, 0);
  clock.advance(AUDIT_FLUSH_INTERVAL_MS - 1);
  assert.equal(files(data).length, 0);
  clock.advance(1);
  while ((await log.read(0, 1)).lines.length === 0) await new Promise(setImmediate);
  const long = { ...act(2), subject: "x".repeat(100_000) };
  let appended = 0;
  for (let bytes = 0; bytes < AUDIT_PENDING_BYTES + 100_000; bytes += 4_400) {
    log.append(long);
    appended++;
  }
  await log.flush();
  log.append(act(3));
  await log.close();
  const texts = files(data).flatMap((name) => linesIn(join(data, "audit", name)));
  const dropped = texts.find((line) => line.includes('"act":"audit.dropped"'));
  const count = (JSON.parse(dropped ?? "{}") as { detail?: { lines?: number } }).detail?.lines ?? 0;
  assert.equal(texts.length - 3 + count, appended);
  assert.ok(count > 0);
  assert.equal((await verifyAudit(data)).broken, undefined);
});

test("a folder that takes nothing for a while loses nothing: the lines go out when it does again", async () => {
  const data = scratchFolder("grove-audit-");
  const log = await open(data);
  log.append(act(1));
  await log.flush();
  renameSync(join(data, "audit"), join(data, "away"));
  log.append(act(2));
  await log.flush();
  assert.equal(log.failure, undefined);
  renameSync(join(data, "away"), join(data, "audit"));
  log.append(act(3));
  await log.close();
  assert.deepEqual((await verifyAudit(data)).lines, 3);
  assert.ok(existsSync(only(data)));
});

test("an act that must be written before something is done is on the disk then, or refused (E-03)", async () => {
  const data = scratchFolder("grove-audit-");
  const log = await open(data);
  await log.write(act(1));
  assert.equal(linesIn(only(data)).length, 1);
  renameSync(join(data, "audit"), join(data, "away"));
  await assert.rejects(log.write(act(2)), { code: "STORAGE_FAILED" });
  renameSync(join(data, "away"), join(data, "audit"));
  await log.write(act(3));
  assert.equal(linesIn(only(data)).length, 3, "the one that was refused had waited");
  await log.close();
  await assert.rejects(log.write(act(4)), { code: "STORAGE_FAILED" });
});

test("acts that come while others are being written to the disk are in the log too, once each (D24)", async () => {
  const data = scratchFolder("grove-audit-");
  const log = await open(data);
  log.append(act(1));
  const flushed = log.flush();
  // One turn of the event loop each: they fall into every step of the write.
  for (let at = 2; at <= 400; at++) {
    await new Promise((resolve) => setImmediate(resolve));
    log.append(act(at));
  }
  await flushed;
  await log.close();
  const { broken, lines, last } = await verifyAudit(data);
  assert.deepEqual([broken, lines, last?.seq], [undefined, 400, 400]);
});
