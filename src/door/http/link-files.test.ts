// Files that a link opens, as they leave the door: whole, in ranges, empty, and refused.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { startTestDoor } from "./door.fixture.ts";
import type { LinkVisitor } from "./link-visitors.ts";

const ID = "abcdefghijkl";
const TOKEN = `gl_${"0".repeat(26)}_${ID}_${"a".repeat(32)}`;
const COOKIE = `grove-link=${TOKEN}.${"0".repeat(32)}.`;

/** A visitor of a folder with one file of these bytes; `refusal` comes instead of them. */
function visitorOf(text: string, refusal?: GroveError): LinkVisitor {
  const resource = { isCollection: false, size: text.length, changedMs: 0, etag: "e", path: [] };
  const read: LinkVisitor["read"] = async (_path, _etag, { start, end }, take) => {
    if (refusal !== undefined) throw refusal;
    const taken = take([Buffer.from(text.slice(start, end))]);
    if (taken !== true) await taken;
  };
  return {
    facts: { name: "pub", isFolder: true, isDrop: false, endsMs: 0, pass: "" },
    look: async () => resource,
    list: async () => ({ entries: [], next: "" }),
    read,
    drop: async () => undefined,
    release: () => undefined,
  } as unknown as LinkVisitor;
}

async function fetchFile(
  t: TestContext,
  visitor: LinkVisitor,
  headers: Record<string, string> = {},
): Promise<Response> {
  const door = await startTestDoor({ visitors: { open: async () => visitor } });
  t.after(() => door.stop());
  return await fetch(`http://${door.host}/l/${ID}/a.html`, { headers: { cookie: COOKIE, ...headers } });
}

const ATTACHED = /^attachment; filename="a\.html"/u;

test("several ranges of a link's file come as one attachment", async (t) => {
  const answer = await fetchFile(t, visitorOf("0123456789"), { range: "bytes=0-1,7-8" });
  assert.equal(answer.status, 206);
  assert.match(answer.headers.get("content-disposition") ?? "", ATTACHED);
  const text = await answer.text();
  assert.match(text, /\r\n\r\n01\r\n/u);
  assert.match(text, /\r\n\r\n78\r\n/u);
});

test("an empty file of a link is an attachment too", async (t) => {
  const answer = await fetchFile(t, visitorOf(""));
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-disposition") ?? "", ATTACHED);
});

test("no browser and no cache keeps a link's file: whole, in ranges or unchanged", async (t) => {
  for (const [status, headers] of [
    [200, {}],
    [206, { range: "bytes=2-4" }],
    [206, { range: "bytes=0-1,7-8" }],
    [304, { "if-none-match": '"e"' }],
  ] as const) {
    const answer = await fetchFile(t, visitorOf("0123456789"), headers);
    await answer.arrayBuffer();
    assert.deepEqual([answer.status, answer.headers.get("cache-control")], [status, "no-store"]);
    assert.equal(answer.headers.get("referrer-policy"), "no-referrer");
  }
});

test("a refusal before a file's first byte is a page, and no file", async (t) => {
  const used = new GroveError("NOT_SHARED", "used up", { metadata: { link: "used-up" } });
  const answer = await fetchFile(t, visitorOf("0123456789", used));
  assert.equal(answer.status, 410);
  assert.equal(answer.headers.get("content-disposition"), "inline");
  assert.match(answer.headers.get("content-type") ?? "", /^text\/html/u);
  assert.match(await answer.text(), /used up/u);
});

test("who sends a file that is too large for a link is told of the file, and not that nothing goes any more", async (t) => {
  const large = new GroveError("NOT_SHARED", "too large", { metadata: { link: "too-large" } });
  const { facts, release } = visitorOf("");
  const drop = (): Promise<void> => Promise.reject(large);
  const visitor = { facts: { ...facts, isDrop: true }, release, drop } as unknown as LinkVisitor;
  const door = await startTestDoor({ visitors: { open: async () => visitor } });
  t.after(() => door.stop());
  const order = { method: "PUT", headers: { cookie: COOKIE }, body: "text" };
  const answer = await fetch(`http://${door.host}/l/${ID}/a.txt`, order);
  assert.equal(answer.status, 413);
  assert.match(await answer.text(), /send a smaller one/u);
});

test("a part of a file is not taken for the whole by a link (RFC 9110, section 14.5)", async (t) => {
  let drops = 0;
  const { facts, release } = visitorOf("");
  const drop = async (): Promise<void> => void drops++;
  const visitor = { facts: { ...facts, isDrop: true }, release, drop } as unknown as LinkVisitor;
  const door = await startTestDoor({ visitors: { open: async () => visitor } });
  t.after(() => door.stop());
  const headers = { cookie: COOKIE, "content-range": "bytes 0-3/10" };
  const answer = await fetch(`http://${door.host}/l/${ID}/a.txt`, { method: "PUT", headers, body: "text" });
  assert.deepEqual([answer.status, drops], [400, 0]);
});

test("in place of a file whose link wants a password stands its form, and not as a success", async (t) => {
  const asks = new GroveError("TOKEN_REJECTED", "it has a password", { metadata: { link: "password" } });
  const door = await startTestDoor({ visitors: { open: () => Promise.reject(asks) } });
  t.after(() => door.stop());
  const ask = (name: string): Promise<Response> =>
    fetch(`http://${door.host}/l/${ID}/${name}`, { headers: { cookie: COOKIE } });
  assert.equal((await ask("")).status, 200);
  const inPlace = await ask("a.html");
  assert.equal(inPlace.status, 403);
  assert.match(await inPlace.text(), /<form method="post"/u);
});
