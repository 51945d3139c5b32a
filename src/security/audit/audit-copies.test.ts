// Tests of gathered audit lines: stored as written, every break of a chain found, nothing lost by crashes and
// rotations.
import assert from "node:assert/strict";
import { appendFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { AuditCopies, COPIES_FOLDER } from "./audit-copies.ts";
import { CHAIN_START, type ChainHead, lineAfter } from "./audit-line.ts";
import { scanCopies } from "./scan-copies.ts";
import { compareCopies, verifyCopies } from "./verify-copies.ts";

const clock = new ManualClock();
const open = (
  dataFolder: string,
  more: { fileMaxBytes?: number; filesKept?: number } = {},
): Promise<AuditCopies> => AuditCopies.open({ dataFolder, clock, log: silentLogger, ...more });

/** Lines of a chain; `salt` makes another one. */
function chain(count: number, salt = "", from: ChainHead = CHAIN_START): string[] {
  const lines: string[] = [];
  let head = from;
  for (let i = 0; i < count; i++) {
    const subject = `bob${salt}:/file ${i} "quoted"\ttab`;
    const line = lineAfter(head, { act: "file.delete", actor: "bob", subject }, clock.wallMs());
    lines.push(line.text);
    head = line.head;
  }
  return lines;
}

async function backwards(copies: AuditCopies, maxBytes = 1e9): Promise<string[]> {
  const found: string[] = [];
  let from: Parameters<typeof scanCopies>[1];
  do {
    from = await scanCopies(copies, from, maxBytes, ({ source, text, broken }) => {
      found.push(`${source} ${text ?? broken}`);
      return true;
    });
  } while (from !== undefined);
  return found;
}

test("lines come back as they were written, newest first, in pages of any size", async () => {
  const folder = scratchFolder("grove-copies-");
  const copies = await open(folder, { fileMaxBytes: 2_000 });
  const [a, b] = [chain(40, "a"), chain(40, "b")];
  const expected: string[] = [];
  for (let i = 0; i < 40; i += 4) {
    assert.equal(copies.take("fs-a", a.slice(i, i + 4)).problem, undefined);
    assert.equal(copies.take("fs-b", b.slice(i, i + 4)).problem, undefined);
    await copies.flush();
    expected.push(
      ...a.slice(i, i + 4).map((line) => `fs-a ${line}`),
      ...b.slice(i, i + 4).map((line) => `fs-b ${line}`),
    );
  }
  assert.ok((await copies.files()).length > 3);
  assert.deepEqual(await backwards(copies), expected.toReversed());
  assert.deepEqual(await backwards(copies, 1), expected.toReversed());
  const one: string[] = [];
  let from: Parameters<typeof scanCopies>[1];
  do {
    from = await scanCopies(copies, from, 1e9, ({ source, text }) => {
      one.push(`${source} ${text}`);
      return false;
    });
  } while (from !== undefined);
  assert.deepEqual(one, expected.toReversed(), "one line at a time");
  assert.deepEqual(
    (await verifyCopies(folder)).map(({ source, lines, broken }) => [source, lines, broken]),
    [
      ["fs-a", 40, []],
      ["fs-b", 40, []],
    ],
  );
});

test("a line that was changed, left out, or is none stops the taking and says why", async () => {
  const copies = await open(scratchFolder("grove-copies-"));
  const lines = chain(10);
  copies.take("fs-a", lines.slice(0, 5));
  assert.match(copies.take("fs-a", lines.slice(6)).problem ?? "", /line 7 came where line 6 should be/);
  const other = chain(10, "x");
  assert.match(copies.take("fs-a", other.slice(5)).problem ?? "", /line 6 does not follow from line 5/);
  for (const bad of [
    "",
    "{}",
    "x",
    '{"seq":6}',
    `${lines[5]}\n`,
    "[]",
    `{"seq":6,"time":"","prev":"${"x".repeat(70_000)}"}`,
  ]) {
    assert.match(copies.take("fs-a", [bad]).problem ?? "", /is no line of an audit log/, bad.slice(0, 20));
  }
  assert.equal(copies.take("fs-a", lines.slice(5)).problem, undefined, "the true chain goes on");
  assert.equal(copies.states().get("fs-a")?.head?.seq, 10);
});

test("after a break another chain begins, and the check tells of it", async () => {
  const folder = scratchFolder("grove-copies-");
  const copies = await open(folder);
  copies.take("fs-a", chain(5));
  copies.startOver("fs-a", "line 5 is another one than\nwas gathered");
  assert.deepEqual(copies.states().get("fs-a"), { generation: 2, head: undefined });
  assert.equal(copies.take("fs-a", chain(8, "x")).problem, undefined);
  await copies.close();
  const [verdict] = await verifyCopies(folder);
  assert.deepEqual(verdict?.broken, ["line 5 is another one than was gathered"]);
  assert.equal(verdict?.lines, 13);
});

test("a start finds where each chain stands, with or without what was written down, and cuts off a torn line", async () => {
  const folder = scratchFolder("grove-copies-");
  const first = await open(folder);
  const [a, b] = [chain(20, "a"), chain(20, "b")];
  first.take("fs-a", a.slice(0, 10));
  await first.close();
  const second = await open(folder);
  second.take("fs-b", b.slice(0, 7));
  await second.flush();
  const path = (await second.files()).at(-1)?.path ?? "";
  await appendFile(path, `1790000000\tfs-b\t1\t${b[7]?.slice(0, 30)}`);
  const third = await open(folder);
  assert.deepEqual(
    [...third.states()].map(([source, { head }]) => [source, head?.seq]),
    [
      ["fs-a", 10],
      ["fs-b", 7],
    ],
  );
  assert.equal(third.take("fs-a", a.slice(10)).problem, undefined);
  assert.equal(third.take("fs-b", b.slice(7)).problem, undefined);
  await third.flush();
  await writeFile(join(folder, COPIES_FOLDER, "heads.json"), "nonsense");
  const fourth = await open(folder);
  assert.deepEqual(
    [...fourth.states().values()].map(({ head }) => head?.seq),
    [20, 20],
  );
  assert.deepEqual(
    (await verifyCopies(folder)).flatMap(({ broken }) => broken),
    [],
  );
});

test("a damaged line takes none of those along that stand behind it", async () => {
  const folder = scratchFolder("grove-copies-");
  const first = await open(folder);
  const lines = chain(20);
  first.take("fs-a", lines.slice(0, 10));
  await first.close();
  const path = (await first.files()).at(-1)?.path ?? "";
  const stored = await readFile(path, "latin1");
  const starts = [0, ...[...stored.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const damaged = Buffer.from(stored, "latin1");
  // No UTF-8: as text such a line has other bytes. The last one decides where the next goes.
  for (const line of [2, 9]) damaged[starts[line] ?? 0] = 0xff;
  await writeFile(path, damaged);
  const second = await open(folder);
  assert.equal(second.take("fs-a", lines.slice(10)).problem, undefined);
  await second.close();
  const kept = await readFile(path);
  assert.deepEqual(kept.subarray(0, damaged.length), damaged);
  const found = kept.toString("utf8").trimEnd().split("\n");
  assert.deepEqual(
    found.slice(10).map((line) => line.split("\t").at(-1)),
    lines.slice(10),
  );
});

test("the oldest files go, and what stands in them is forgotten without breaking the chain", async () => {
  const folder = scratchFolder("grove-copies-");
  const copies = await open(folder, { fileMaxBytes: 1_000, filesKept: 3 });
  const lines = chain(60);
  for (const line of lines) {
    copies.take("fs-a", [line]);
    await copies.flush();
  }
  assert.equal((await copies.files()).length, 3);
  const found = await backwards(copies);
  assert.deepEqual(
    found,
    lines
      .slice(-found.length)
      .map((line) => `fs-a ${line}`)
      .toReversed(),
  );
  assert.deepEqual((await verifyCopies(folder))[0]?.broken, []);
  await copies.close();
  assert.equal((await open(folder)).states().get("fs-a")?.head?.seq, 60);
});

test("a stop between two files costs neither", async () => {
  const folder = scratchFolder("grove-copies-");
  const copies = await open(folder, { fileMaxBytes: 1_000 });
  const lines = chain(30);
  for (const line of lines.slice(0, 20)) {
    copies.take("fs-a", [line]);
    await copies.flush();
  }
  await copies.close();
  const files = await copies.files();
  const newest = files.at(-1);
  assert.ok(newest !== undefined && files.length > 2);
  const gone = (await readFile(newest.path, "utf8")).split("\n").length - 1;
  await rm(newest.path);
  // The saved state refers to a missing file.
  const again = await open(folder, { fileMaxBytes: 1_000 });
  assert.equal(again.take("fs-a", lines.slice(20)).problem, undefined);
  await again.flush();
  assert.equal((await backwards(again)).length, 30 - gone);
});

test("a copy that was changed on the console's disk is found", async () => {
  const folder = scratchFolder("grove-copies-");
  const copies = await open(folder);
  copies.take("fs-a", chain(9));
  await copies.close();
  const path = (await copies.files())[0]?.path ?? "";
  const text = await readFile(path, "utf8");
  await writeFile(path, text.replace("/file 4", "/file 5"));
  assert.match(
    (await verifyCopies(folder))[0]?.broken[0] ?? "",
    /copy of line 6 does not follow from that of line 5/,
  );
});

test("a node's log that was written anew, or cut off, differs from what was gathered (D24)", async () => {
  const [folder, node] = [scratchFolder("grove-copies-"), scratchFolder("grove-copies-")];
  const copies = await open(folder);
  const lines = chain(10);
  copies.take("fs-a", lines);
  await copies.close();
  const log = join(node, "audit", "0000000000000001.log");
  await mkdir(join(node, "audit"));
  const put = (text: readonly string[]) => writeFile(log, text.map((line) => `${line}\n`).join(""));
  await put(lines);
  assert.deepEqual(await compareCopies(folder, "fs-a", node), {
    compared: 10,
    differences: [],
  });
  await put(chain(10, "x"));
  assert.equal((await compareCopies(folder, "fs-a", node)).differences.length, 10);
  await put(lines.slice(0, 8));
  assert.deepEqual((await compareCopies(folder, "fs-a", node)).differences, [
    "the log ends with line 8; lines up to 10 were gathered from it",
  ]);
  assert.deepEqual((await compareCopies(folder, "fs-b", node)).differences, [
    "nothing was gathered from fs-b",
  ]);
});
