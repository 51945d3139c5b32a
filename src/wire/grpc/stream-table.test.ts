// Tests of the table of streams, alone and in sessions of node:http2.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Http2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { StreamTable, useStreamTable } from "./stream-table.ts";

/** What node:http2 keeps of a session's streams. */
function streamsOf(session: Http2Session): unknown {
  const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === "state");
  assert.ok(symbol !== undefined, "this Node keeps its state elsewhere");
  return Reflect.get(Reflect.get(session, symbol) as object, "streams");
}

test("it answers as a map does", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom("set", "delete"), fc.nat(5))), (steps) => {
      const [table, map] = [new StreamTable(), new Map<number, object>()];
      for (const [what, id] of steps) {
        const stream = { id };
        if (what === "set") {
          map.set(id, stream);
          table.set(id, stream);
        } else {
          assert.equal(table.delete(id), map.delete(id));
        }
        assert.equal(table.size, map.size);
        assert.equal(table.get(id), map.get(id));
      }
      const walked = new Map<number, object>();
      table.forEach((stream, id) => walked.set(id, stream));
      assert.deepEqual(walked, map);
    }),
  );
});

test("streams may end during a walk, as when a session is destroyed", () => {
  const table = new StreamTable();
  for (const id of [1, 3, 5]) table.set(id, {});
  let walked = 0;
  table.forEach((_, id) => {
    walked++;
    table.delete(id);
  });
  assert.equal(walked, 3);
  assert.equal(table.size, 0);
});

test("Node 26 lets a session have it, before its first stream alone", { timeout: 60_000 }, async () => {
  const server = createServer();
  const sessions: Http2Session[] = [];
  server.on("session", (session) => {
    sessions.push(session);
    useStreamTable(session);
  });
  const open: unknown[] = [];
  server.on("stream", (stream: ServerHttp2Stream) => {
    open.push(streamsOf(stream.session as Http2Session));
    useStreamTable(stream.session as Http2Session);
    open.push(streamsOf(stream.session as Http2Session));
    stream.respond({ ":status": 204 }, { endStream: true });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  useStreamTable(client);
  for (let round = 0; round < 3; round++) {
    const stream = client.request({ ":path": "/" });
    assert.equal(table(client).size, round === 0 ? 0 : 1);
    const [headers] = await once(stream, "response");
    assert.equal(headers[":status"], 204);
    stream.resume();
    await once(stream, "close");
    assert.equal(table(client).size, 0);
  }
  // With a stream in it, the table stays the same.
  assert.equal(new Set(open).size, 1);
  const last = client.request({ ":path": "/" });
  client.destroy();
  await once(last, "close");
  for (const session of sessions) {
    assert.ok(streamsOf(session) instanceof StreamTable);
    session.destroy();
  }
  server.close();
});

test("a session that looks otherwise is left alone", () => {
  const state = Symbol("state");
  for (const inside of [undefined, null, 1, {}, { streams: [] }, { streams: new Map([[1, {}]]) }]) {
    const session = { [state]: inside };
    const before = structuredClone(inside);
    useStreamTable(session as unknown as Http2Session);
    assert.deepEqual(session[state], before);
  }
  useStreamTable({} as Http2Session);
});

function table(session: Http2Session): StreamTable {
  const streams = streamsOf(session);
  assert.ok(streams instanceof StreamTable);
  return streams;
}
