// Tests nodes' audit lines in GET /api/audit: complete, once, in chain order, with all breaks (D24).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { silentLogger } from "#base/log.ts";
import { PollError } from "#console/cluster/poll-error.ts";
import { AUDIT_GENERATIONS_MAX, AuditGathering, readAnswer } from "#console/services/audit-gathering.ts";
import { AuditCopies } from "#security/audit/audit-copies.ts";
import { verifyCopies } from "#security/audit/verify-copies.ts";
import type { AuditEntry } from "#wire/webapi/audit.ts";
import { FakeLog, startGathering } from "./audit-gathering.fixture.ts";

const ends: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ends.toReversed()) await end();
});

const subjects = ({ entries }: { entries: AuditEntry[] }): string[] =>
  entries.map(({ node, subject }) => `${node} ${subject}`);

test("lines of all nodes and of the console are listed, newest first, in pages, each once", async () => {
  const { round, list, logs, own } = await startGathering(ends, "fs-a", "fs-b");
  const expected: string[] = [];
  for (let i = 0; i < 10; i++) {
    logs.get("fs-a")?.add("file.delete", `bob@example.com:/a${i}`);
    logs.get("fs-b")?.add("share.add", `eve@example.com:/b${i}`);
    await round();
    expected.push(`fs-a bob@example.com:/a${i}`, `fs-b eve@example.com:/b${i}`);
  }
  own.append({
    act: "operator.open",
    actor: "0123abcd",
    subject: "console",
    detail: { address: "192.0.2.1" },
  });
  expected.push("console console");
  assert.deepEqual(subjects(await list()), expected.toReversed());
  const paged: string[] = [];
  let cursor = "";
  for (;;) {
    const page = await list(`?limit=4${cursor}`);
    paged.push(...subjects(page));
    if (page.next_cursor === null) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  assert.deepEqual(paged, expected.toReversed());
});

test("filters by act, actor, subject, node and time", async () => {
  const { round, list, logs, ask, askAsOperator } = await startGathering(ends, "fs-a", "fs-b");
  for (let i = 0; i < 6; i++) {
    logs
      .get("fs-a")
      ?.add(
        i % 2 === 0 ? "file.delete" : "share.add",
        `bob@example.com:/a/${i}"*`,
        `user${i % 3}@example.com`,
      );
    logs.get("fs-b")?.add("quota.set", `b${i}`);
  }
  await round();
  await round();
  const count = async (query: string): Promise<number> => (await list(query)).entries.length;
  assert.equal(await count(""), 12);
  assert.equal(await count("?act=file.delete"), 3);
  assert.equal(await count("?act=file.delete,quota.set"), 9);
  assert.equal(await count("?act=share.*"), 3);
  assert.equal(await count("?actor=user1@example.com"), 2);
  assert.equal(await count("?subject=bob@example.com:/a/*"), 6);
  assert.equal(await count("?subject=b3"), 1);
  assert.equal(await count("?node=fs-b&subject=b*"), 6);
  const day = Date.UTC(2026, 8, 21) / 1000;
  assert.equal(await count(`?from=${day + 2}&to=${day + 3}`), 4);
  assert.equal((await ask("/api/audit")).status, 401);
  for (const query of [
    "act=",
    "limit=501",
    "limit=0",
    "from=x",
    "from=-1",
    "from=5&to=4",
    "cursor=1",
    "user=bob",
    "node=a&node=b",
  ]) {
    const { status, problem } = await askAsOperator(`/api/audit?${query}`);
    assert.deepEqual([status, problem?.code], [422, "QUERY_INVALID"], query);
  }
});

test("a node that rewrites its past, cuts its log off or begins it anew is found at the next look (D24)", async () => {
  const { round, list, logs, raised, dataFolder } = await startGathering(ends, "fs-a");
  const log = logs.get("fs-a") ?? assert.fail();
  for (let i = 0; i < 5; i++) log.add("file.delete", `/${i}`);
  await round();
  const rewritten = new FakeLog();
  for (let i = 0; i < 5; i++) rewritten.add("file.delete", `/${i === 2 ? "harmless" : i}`);
  logs.set("fs-a", rewritten);
  await round();
  assert.deepEqual(
    raised.map(({ key, level, detail }) => [key, level, detail?.["reason"]]),
    [["audit_broken:fs-a", "critical", "line 5 is not the one that was gathered"]],
  );
  rewritten.lines.pop();
  await round();
  assert.match(
    String(raised[1]?.detail?.["reason"]),
    /the log ends with line 4; line 5 was gathered from it/,
  );
  const { entries } = await list("?act=audit.broken");
  assert.deepEqual(entries.map(({ node, broken }) => `${node} ${broken ?? "-"}`).sort(), [
    "console -",
    "console -",
    "fs-a line 5 is not the one that was gathered",
    "fs-a the log ends with line 4; line 5 was gathered from it",
  ]);
  const verdicts = await verifyCopies(dataFolder);
  assert.equal(verdicts.find(({ source }) => source === "fs-a")?.broken.length, 2);
  // The lines before the rewrite are kept beside the rewritten ones.
  const told = subjects(await list("?node=fs-a&act=file.delete"));
  assert.ok(told.includes("fs-a /2") && told.includes("fs-a /harmless"));
});

test("a log with a gap of its own is one break, and goes on behind it", async () => {
  const { round, logs, raised, gathering, list } = await startGathering(ends, "fs-a");
  const log = logs.get("fs-a") ?? assert.fail();
  for (let i = 0; i < 3; i++) log.add("file.delete", `/${i}`);
  assert.equal(log.skip(5), 8);
  log.add("audit.gap", "audit", "node");
  log.add("file.delete", "/later");
  for (let i = 0; i < 3; i++) await round();
  assert.equal(raised.length, 1);
  assert.match(String(raised[0]?.detail?.["reason"]), /line 9 came where line 4 should be/);
  assert.equal(gathering.chains().find(({ node }) => node === "fs-a")?.last_seq, 10);
  assert.equal((await list("?node=fs-a&act=file.delete")).entries.length, 4);
});

test("garbage, refusals and logs that break again and again cost nothing but that node's lines (M-05)", async () => {
  const { round, logs, lies, gathering, raised, asked } = await startGathering(ends, "fs-a", "fs-b");
  logs.get("fs-b")?.add("file.delete", "/b");
  for (const lie of [
    "",
    "{}",
    '{"entries":[',
    '{"entries":[],"next_after":0,"head_seq":-1,"complete":true}',
    '{"entries":[1,\n2],"next_after":0,"head_seq":2}',
    new PollError("the answer has status 401"),
  ]) {
    lies.set("fs-a", lie);
    await round();
    assert.ok(gathering.chains().find(({ node }) => node === "fs-a")?.problem !== undefined);
  }
  assert.equal(gathering.chains().find(({ node }) => node === "fs-b")?.last_seq, 1);
  assert.deepEqual(raised, []);
  lies.set("fs-a", '{"entries":[{"no":"line"}],"next_after":1,"head_seq":1,"complete":false}');
  for (let i = 0; i < AUDIT_GENERATIONS_MAX; i++) await round();
  assert.equal(raised.length, AUDIT_GENERATIONS_MAX);
  const before = asked.length;
  await round();
  assert.deepEqual(
    asked.slice(before).filter((line) => line.startsWith("fs-a")),
    [],
    "an operator must look first",
  );
});

test("a page is cut into its lines as they were written (D24)", () => {
  const log = new FakeLog();
  for (const subject of ["a,\\nb", '],"next_after":1', "{}"]) log.add("file.delete", subject);
  assert.deepEqual(readAnswer(Buffer.from(log.answer(0))).lines, log.lines);
  assert.deepEqual(readAnswer(Buffer.from(log.answer(3))), { lines: [], headSeq: 3, isComplete: true });
});

test("what is gathered survives a restart of the console, and nothing is gathered twice", async () => {
  const { round, logs, copies, dataFolder, clock } = await startGathering(ends, "fs-a");
  for (let i = 0; i < 9; i++) logs.get("fs-a")?.add("file.delete", `/${i}`);
  await round();
  await round();
  const again = await AuditCopies.open({ dataFolder, clock, log: silentLogger });
  assert.deepEqual(again.states(), copies.states());
  assert.equal(again.states().get("fs-a")?.head?.seq, 9);
});

test("lines of the console's own that are on no disk any more keep nobody waiting", async () => {
  const { clusterState, copies, clock } = await startGathering(ends);
  const gathering = new AuditGathering({
    copies,
    own: {
      flush: () => Promise.resolve(),
      read: (after) => Promise.resolve({ lines: [], nextAfter: after, headSeq: 5 }),
    },
    cluster: clusterState,
    addresses: { target: (id) => ({ ip: id, port: 1, host: id }) },
    http: { get: () => Promise.reject(new PollError("nobody")) },
    audit: () => undefined,
    onBroken: () => undefined,
    onRestored: () => undefined,
    clock,
    log: silentLogger,
  });
  await gathering.takeOwn();
  gathering.close();
});
