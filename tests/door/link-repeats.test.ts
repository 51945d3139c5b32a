// A link's download whose first call breaks: the door asks again in a way that the FileServer counts once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { fileAttr, refusal, startFakeServer } from "#client/commands/fake-server.fixture.ts";
import { LinkVisit } from "#door/tree/link-visits.ts";
import { makePerson } from "#door/tree/person.ts";

const DATA = Buffer.from("0123456789");

test("repeats of one download of a visitor have one key, and each download has its own", async (t) => {
  const keys: string[] = [];
  const attr = fileAttr("f", DATA);
  const server = await startFakeServer({
    async *downloadFile({ requestKey }) {
      keys.push(requestKey);
      // Each second call gets its bytes.
      if (keys.length % 2 === 1) throw refusal(14, "");
      yield { part: { case: "attr", value: attr } };
      yield { part: { case: "chunk", value: { offset: 0n, data: DATA, crc32: crc32(DATA) } } };
    },
  });
  t.after(() => server.stop());
  const person = makePerson({
    username: "alice@example.com",
    profile: { metaservers: [], ca: undefined, mock: true, idp: undefined, fileserver: server.address },
    credential: () => Promise.resolve("mock-jwt.alice@example.com"),
    signal: new AbortController().signal,
  });
  t.after(() => person.cluster.close());
  const facts = { name: "f", isFolder: false, isDrop: false, endsMs: 0, pass: "" };
  const visit = new LinkVisit(person, facts, { failed: () => undefined, released: () => undefined });
  for (let download = 0; download < 2; download++) {
    let text = "";
    await visit.read([], attr.etag ?? "", { start: 0, end: DATA.length }, (parts) => {
      text += Buffer.concat(parts).toString();
      return true;
    });
    assert.equal(text, "0123456789");
  }
  const [first = "", again, second = "", last] = keys;
  assert.match(first, /^[\w-]{22}$/u);
  assert.match(second, /^[\w-]{22}$/u);
  assert.deepEqual([again, last, keys.length], [first, second, 4]);
  assert.notEqual(first, second);
});
