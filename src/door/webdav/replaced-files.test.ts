// GET of a file that is replaced between the look at it and the reading of its bytes.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { serveTree } from "./litmus.fixture.ts";
import { MemoryTree } from "./memory-tree.fixture.ts";
import type { WriteWish } from "./resource.ts";

const ANY: WriteWish = { size: undefined, ifMatch: undefined, mustBeNew: false, changedMs: 0 };
/** More than one call brings. */
const OLD = "old".repeat(30_000);
const NEW = "newer".repeat(20_000);

/** A tree in which somebody replaces a file, so many times, just before it is read; the first reads are left out. */
class ReplacedTree extends MemoryTree {
  left = 0;
  spared = 0;

  put(text: string): Promise<{ readonly etag: string }> {
    return this.write(["f"], Readable.from([Buffer.from(text)]), ANY, []);
  }

  override async read(...order: Parameters<MemoryTree["read"]>): Promise<void> {
    if (this.spared-- <= 0 && this.left-- > 0) await this.put(NEW);
    await super.read(...order);
  }
}

type Headers = Readonly<Record<string, string>>;

/** Gets a file that is replaced so many times; `headers` of its etag before. */
async function getReplaced(
  t: TestContext,
  times: number,
  headers: (etag: string) => Headers = () => ({}),
): Promise<{ answer: Response; text: string; etag: string }> {
  const tree = new ReplacedTree();
  const address = `${await serveTree(t, tree)}f`;
  const before = await tree.put(OLD);
  tree.left = times;
  const answer = await fetch(address, { headers: headers(`"${before.etag}"`) });
  const text = await answer.text();
  return { answer, text, etag: `"${(await tree.look(["f"]))?.etag}"` };
}

test("a file that is replaced meanwhile is answered anew, headers and bytes of one version", async (t) => {
  const { answer, text, etag } = await getReplaced(t, 1);
  assert.equal(answer.status, 200);
  assert.equal(text, NEW);
  assert.equal(answer.headers.get("etag"), etag);
  assert.equal(answer.headers.get("content-length"), String(NEW.length));
});

test("so is a part, and the whole where the part was wanted of the old version alone", async (t) => {
  const part = await getReplaced(t, 1, () => ({ range: "bytes=89000-" }));
  assert.deepEqual([part.answer.status, part.text], [206, NEW.slice(89_000)]);
  assert.equal(part.answer.headers.get("content-range"), "bytes 89000-99999/100000");
  const whole = await getReplaced(t, 1, (etag) => ({ range: "bytes=0-4", "if-range": etag }));
  assert.deepEqual([whole.answer.status, whole.text], [200, NEW]);
  assert.equal(whole.answer.headers.get("content-range"), null);
});

test("a part that is wanted by the date alone is no part: another version may have the same date", async (t) => {
  const address = `${await serveTree(t, new MemoryTree())}f`;
  const dated = { "x-oc-mtime": "1700000000" };
  await fetch(address, { method: "PUT", headers: dated, body: "older" });
  const date = (await fetch(address)).headers.get("last-modified") ?? "";
  await fetch(address, { method: "PUT", headers: dated, body: "newer" });
  const answer = await fetch(address, { headers: { range: "bytes=3-", "if-range": date } });
  assert.deepEqual([answer.headers.get("last-modified"), answer.status], [date, 200]);
  assert.equal(await answer.text(), "newer");
});

test("several parts are of one version: anew where none has left, and cut off where one has", async (t) => {
  const ranges = { range: "bytes=0-4, 89000-89004" };
  const { answer, text } = await getReplaced(t, 1, () => ranges);
  assert.equal(answer.status, 206);
  for (const [start, end] of [
    [0, 5],
    [89_000, 89_005],
  ] as const) {
    const head = `Content-Range: bytes ${start}-${end - 1}/${NEW.length}`;
    assert.ok(text.includes(`${head}\r\n\r\n${NEW.slice(start, end)}\r\n--`), text);
  }
  const tree = new ReplacedTree();
  const address = `${await serveTree(t, tree)}f`;
  await tree.put(OLD);
  [tree.left, tree.spared] = [1, 1];
  await assert.rejects(
    fetch(address, { headers: ranges }).then((cut) => cut.text()),
    TypeError,
  );
});

test("conditions are judged again: what was asked of the old version alone is 412", async (t) => {
  for (const headers of [
    (etag: string) => ({ "if-match": etag }),
    (etag: string) => ({ if: `([${etag}])` }),
  ]) {
    assert.equal((await getReplaced(t, 1, headers)).answer.status, 412);
    assert.equal((await getReplaced(t, 0, headers)).answer.status, 200);
  }
  for (const headers of [{ "if-match": "*" }, { "if-none-match": '"another"' }]) {
    const { answer, text } = await getReplaced(t, 1, () => headers);
    assert.deepEqual([answer.status, text], [200, NEW]);
  }
});

test("a file that is replaced over and over is asked for later", async (t) => {
  const { answer } = await getReplaced(t, 5);
  assert.equal(answer.status, 503);
  assert.equal(answer.headers.get("retry-after"), "5");
  for (const name of ["etag", "content-range", "last-modified"])
    assert.equal(answer.headers.get(name), null, name);
});
