// Resets go out between frames, since Node 26.10 corrupts its heap otherwise, and without END_STREAM before.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { outsideReading, resetStream } from "./reset.ts";

const TIMEOUT = { timeout: 60_000 };

const connected = async (
  t: TestContext,
  onStream: (stream: ServerHttp2Stream) => void,
): Promise<ClientHttp2Session> => {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => undefined);
    onStream(stream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.after(async () => {
    session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return session;
};

test("what resets streams runs after all ticks and promises of the turn", TIMEOUT, async () => {
  const seen: string[] = [];
  await new Promise<void>((resolve) => {
    outsideReading(() => {
      seen.push("reset");
      resolve();
    });
    process.nextTick(() => {
      seen.push("tick");
      void Promise.resolve().then(() => {
        seen.push("promise");
        process.nextTick(() => seen.push("tick of the promise"));
      });
    });
    seen.push("caller");
  });
  assert.deepEqual(seen, ["caller", "tick", "promise", "tick of the promise", "reset"]);
});

test("a stream that is reset while its answer is read lives until the turn ends", TIMEOUT, async (t) => {
  const session = await connected(t, (stream) => stream.respond({ ":status": 200 }, { endStream: true }));
  const stream = session.request({ ":method": "POST" });
  stream.on("error", () => undefined);
  const closed = new Promise((resolve) => stream.once("close", resolve));
  stream.write(Buffer.alloc(300_000));
  const [atOnce, afterTicks] = await new Promise<[boolean, boolean]>((resolve) => {
    stream.once("response", () => {
      resetStream(stream);
      resetStream(stream);
      const now = stream.destroyed;
      process.nextTick(() => Promise.resolve().then(() => resolve([now, stream.destroyed])));
    });
  });
  assert.deepEqual([atOnce, afterTicks], [false, false]);
  await closed;
  assert.equal(stream.rstCode, constants.NGHTTP2_CANCEL);
});

test("the peer of a stream that is reset sees CANCEL, and no end of the request", TIMEOUT, async (t) => {
  const closed = Promise.withResolvers<[number | undefined, boolean]>();
  const session = await connected(t, (stream) => {
    let hasEnded = false;
    stream.on("data", () => undefined);
    stream.on("end", () => {
      hasEnded = !stream.aborted;
    });
    stream.on("close", () => closed.resolve([stream.rstCode, hasEnded]));
  });
  const stream = session.request({ ":method": "POST" });
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.write("part of it", resolve));
  resetStream(stream);
  assert.deepEqual(await closed.promise, [constants.NGHTTP2_CANCEL, false]);
});
