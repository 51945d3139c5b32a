// Tests every kind of call and every error between the room and other implementations, both ways.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connectNode } from "./connect-node.ts";
import { grpcJs } from "./grpc-js.ts";
import { findPython, servePython } from "./grpcio.ts";
import { type PeerClient, type PeerKind, type PeerServer, plain, type Request } from "./peer.ts";
import { room } from "./room.ts";

const PAIRS: (readonly [client: PeerKind, server: PeerKind])[] = [
  [room, room],
  [grpcJs, room],
  [room, grpcJs],
  [connectNode, room],
  [room, connectNode],
];
const python = findPython();
if (python !== undefined) {
  const grpcio: PeerKind = {
    name: "Python's grpcio",
    serve: () => servePython(python),
    connect: room.connect,
  };
  PAIRS.push([room, grpcio]);
} else {
  test("the room calls Python's grpcio", { skip: "needs python3-grpcio and python3-protobuf" });
}
/** Calls that are cancelled before they have come are cancelled at no server. */
const ARRIVAL_MS = 800;
const TIMEOUT = { timeout: 60_000 };
const NAMES = {
  "x-text": "a value, with commas; and = signs",
  "x-bytes-bin": new Uint8Array([0, 255, 1, 254, 37]),
};

async function* listOf(...requests: Request[]): AsyncGenerator<Request, void, undefined> {
  yield* requests;
}

/** Requests that end only when the call does. */
async function* endless(
  signal: AbortSignal,
  ...requests: Request[]
): AsyncGenerator<Request, void, undefined> {
  yield* requests;
  if (!signal.aborted) await once(signal, "abort");
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await delay(5);
};

for (const [clientKind, serverKind] of PAIRS) {
  describe(`${clientKind.name} calls ${serverKind.name}`, () => {
    let server: PeerServer;
    let client: PeerClient;
    before(async () => {
      server = await serverKind.serve();
      client = clientKind.connect(server.port);
    });
    after(async () => {
      client.close();
      await server.close();
    });

    test("a unary call carries a message there and back", TIMEOUT, async () => {
      const { code, replies } = await client.unary({ text: "grüße", data: new Uint8Array([1, 2]) });
      assert.equal(code, 0);
      assert.equal(replies[0]?.text, "grüße");
      assert.deepEqual([...(replies[0]?.data ?? [])], [1, 2]);
    });

    test("a message of 3 MB passes, larger than any window", TIMEOUT, async () => {
      const data = new Uint8Array(3_000_000).fill(7);
      const { code, replies } = await client.unary({ data });
      assert.equal(code, 0);
      assert.equal(Buffer.compare(replies[0]?.data ?? new Uint8Array(), data), 0);
    });

    test("a server stream gives all its messages in order, and an empty one none", TIMEOUT, async () => {
      const { code, replies } = await client.expand({ text: "x", count: 100 });
      assert.equal(code, 0);
      assert.deepEqual(
        replies.map(({ count }) => count),
        Array.from({ length: 100 }, (_, i) => i),
      );
      assert.equal((await client.expand({ count: 0 })).replies.length, 0);
    });

    test("a client stream is answered once, an empty one too", TIMEOUT, async () => {
      const { code, replies } = await client.collect(listOf({ text: "a" }, { text: "b" }, { text: "c" }));
      assert.equal(code, 0);
      assert.equal(replies[0]?.text, "a,b,c");
      assert.equal((await client.collect(listOf())).replies[0]?.count, 0);
    });

    test("in a bidirectional stream each answer can decide the next request", TIMEOUT, async () => {
      const answers = new EventEmitter();
      async function* requests(): AsyncGenerator<Request, void, undefined> {
        for (const count of [0, 1, 2, 3, 4]) {
          const answered = once(answers, "one");
          yield { count };
          await answered;
        }
      }
      const { code, replies } = await client.converse(requests(), undefined, () => answers.emit("one"));
      assert.equal(code, 0);
      assert.deepEqual(
        replies.map(({ count }) => count),
        [0, 1, 2, 3, 4],
      );
    });

    test("text and binary metadata come back as headers and as trailers", TIMEOUT, async () => {
      for (const outcome of [
        await client.unary({ text: "m" }, { headers: NAMES }),
        await client.expand({ count: 1 }, { headers: NAMES }),
        await client.collect(listOf({ text: "m" }), { headers: NAMES }),
        await client.converse(listOf({ text: "m" }), { headers: NAMES }),
      ]) {
        assert.equal(outcome.code, 0);
        for (const [name, value] of Object.entries(NAMES)) {
          assert.equal(plain(outcome.headers.get(name)), plain(value));
          assert.equal(plain(outcome.trailers.get(name)), plain(value));
        }
      }
    });

    test(
      "every status arrives with its text, its details and its trailers, in every kind of call",
      TIMEOUT,
      async () => {
        const data = new Uint8Array([9, 8, 7]);
        for (let failCode = 1; failCode <= 16; failCode++) {
          const request = { failCode, text: `100 % of « ${failCode} »\nfailed`, data };
          for (const outcome of [
            await client.unary(request, { headers: NAMES }),
            await client.expand(request, { headers: NAMES }),
            await client.collect(listOf(request), { headers: NAMES }),
            await client.converse(listOf(request), { headers: NAMES }),
          ]) {
            assert.equal(outcome.code, failCode);
            assert.equal(outcome.message, request.text);
            assert.deepEqual(
              outcome.details.map((one) => [...one]),
              [[9, 8, 7]],
            );
            assert.equal(plain(outcome.trailers.get("x-bytes-bin")), plain(NAMES["x-bytes-bin"]));
          }
        }
      },
    );

    test("a stream that fails late gives its messages first", TIMEOUT, async () => {
      const { code, replies } = await client.expand({ count: 3, failCode: 9 });
      assert.equal(code, 9);
      assert.equal(replies.length, 3);
    });

    test("a deadline ends every kind of call in DEADLINE_EXCEEDED", TIMEOUT, async () => {
      const request = { delayMs: 5_000, count: 1 };
      const stop = new AbortController();
      const options = { timeoutMs: 100 };
      const outcomes = await Promise.all([
        client.unary(request, options),
        client.expand(request, options),
        client.collect(endless(stop.signal, request), options),
        client.converse(endless(stop.signal, request), options),
      ]);
      stop.abort();
      assert.deepEqual(
        outcomes.map(({ code }) => code),
        [4, 4, 4, 4],
      );
    });

    test("a cancelled call ends in CANCELLED, and the server hears of it", TIMEOUT, async () => {
      const before = server.cancelledCalls();
      const request = { delayMs: 10_000, count: 1 };
      const abort = new AbortController();
      const outcomes = [
        client.unary(request, { signal: abort.signal }),
        client.expand(request, { signal: abort.signal }),
        client.collect(endless(abort.signal, request), { signal: abort.signal }),
        client.converse(endless(abort.signal, request), { signal: abort.signal }),
      ];
      await delay(ARRIVAL_MS);
      abort.abort();
      assert.deepEqual(
        (await Promise.all(outcomes)).map(({ code }) => code),
        [1, 1, 1, 1],
      );
      await until(() => server.cancelledCalls() - before >= 4);
    });
  });
}
