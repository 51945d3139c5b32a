// Slow links: a connection lives while its peer takes bytes, although a ping waits behind them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { ManualClock } from "#base/clock.ts";
import { makeIssuerCertificate } from "#testing/private-issuer.ts";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { echoHandlers } from "./echo-service.ts";
import { MIB, PATH, TIMEOUT, until } from "./hostile-lab.ts";
import { GrpcServer } from "./server.ts";

/** Windows of two gigabytes, so that only sockets hold a sender back. */
const WIDE_STREAMS = Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff]);
const WIDE_CONNECTION = Buffer.from([0x7f, 0, 0, 0]);

interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** A certificate for the loopback; undefined for plain connections. */
function certificateFor(isTls: boolean, t: TestContext): Certificate | undefined {
  if (!isTls) return undefined;
  const { key, caFile } = makeIssuerCertificate("127.0.0.1", temporaryDirectory(t));
  return { key: readFileSync(key, "utf8"), cert: readFileSync(caFile, "utf8") };
}

/** Lets writes go on until the kernel takes no more. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const WAYS = [
  { how: "", isTls: false },
  { how: ", over TLS", isTls: true },
];

for (const { how, isTls } of WAYS) {
  test(
    `a reader that takes bytes slowly keeps its connection, and one that stops loses it${how}`,
    TIMEOUT,
    async (t) => {
      const limits = { keepaliveMs: 5_000, keepaliveTimeoutMs: 10_000 };
      const clock = new ManualClock();
      const tls = certificateFor(isTls, t);
      const server = new GrpcServer({ clock, limits, ...(tls === undefined ? {} : { tls }) });
      server.addService(EchoService, echoHandlers());
      const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
      t.after(() => server.close());
      const raw = await RawHttp2.connect(port, true, "127.0.0.1", isTls);
      await raw.send(FrameType.SETTINGS, 0, 0, WIDE_STREAMS);
      await raw.send(FrameType.WINDOW_UPDATE, 0, 0, WIDE_CONNECTION);
      raw.stopReading();
      // size = 2^31, chunk_bytes = 2,000,000
      const ask = Buffer.from([0, 0, 0, 0, 10, 0x08, 0x80, 0x80, 0x80, 0x80, 0x08, 0x10, 0x80, 0x89, 0x7a]);
      for (let id = 1; id < 160; id += 2) {
        await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}Download`));
        await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, ask);
      }
      await until(() => server.callCount() === 80);
      const seconds = async (count: number, bytes: number): Promise<void> => {
        for (let second = 0; second < count; second++) {
          if (bytes > 0) await raw.readSome(bytes);
          await settled();
          clock.advance(1_000);
        }
      };
      await seconds(40, 2 * MIB);
      assert.equal(server.connectionCount(), 1);
      await seconds(17, 0);
      await until(() => server.connectionCount() === 0);
      raw.close();
    },
  );
}

/** A server that greets, reads only when it is told to, and answers nothing. */
async function slowServer(
  t: TestContext,
  tls: Certificate | undefined,
): Promise<{ port: number; readSome: (bytes: number) => Promise<void> }> {
  const accepted = Promise.withResolvers<Socket>();
  let end = 0;
  const greet = (socket: Socket): void => {
    socket.on("error", () => undefined);
    socket.write(rawFrame(FrameType.SETTINGS, 0, 0, WIDE_STREAMS));
    socket.write(rawFrame(FrameType.WINDOW_UPDATE, 0, 0, WIDE_CONNECTION));
    // At once, so that a fast machine has read no more than it was told to.
    socket.on("data", () => {
      if (socket.bytesRead >= end) socket.pause();
    });
    socket.pause();
    accepted.resolve(socket);
  };
  const listener =
    tls === undefined ? createServer(greet) : createTlsServer({ ...tls, ALPNProtocols: ["h2"] }, greet);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    (await accepted.promise).destroy();
    listener.close();
  });
  const bound = listener.address();
  return {
    port: typeof bound === "object" ? (bound?.port ?? 0) : 0,
    readSome: async (bytes) => {
      const socket = await accepted.promise;
      end = socket.bytesRead + bytes;
      socket.resume();
      await until(() => socket.bytesRead >= end || socket.destroyed);
    },
  };
}

for (const { how, isTls } of WAYS) {
  test(
    `a client's requests go on over a slow link, and fail when the server takes no more${how}`,
    TIMEOUT,
    async (t) => {
      const tls = certificateFor(isTls, t);
      const { port, readSome } = await slowServer(t, tls);
      const clock = new ManualClock();
      const keepalive = { intervalMs: 20_000, timeoutMs: 20_000 };
      const channel = new GrpcChannel({
        addresses: [`127.0.0.1:${port}`],
        keepalive,
        clock,
        ...(tls === undefined ? {} : { tls: { ca: tls.cert } }),
      });
      t.after(() => channel.close());
      const client = createClient(EchoService, channel);
      let failed = 0;
      const data = new Uint8Array(6 * MIB);
      const calls = Array.from({ length: 12 }, () =>
        client.unary({ data }).catch(() => {
          failed++;
        }),
      );
      const looks = async (count: number, bytes: number): Promise<void> => {
        for (let look = 0; look < count; look++) {
          if (bytes > 0) await readSome(bytes);
          await settled();
          clock.advance(10_000);
        }
      };
      await looks(12, 4 * MIB);
      assert.equal(failed, 0);
      // On a busy machine the kernel may take the last bytes a few looks later.
      await looks(9, 0);
      await settled();
      assert.notEqual(failed, 0);
      await Promise.all(calls);
      assert.equal(failed, calls.length);
    },
  );
}

/** Asks for 2^31 bytes in messages of 2,000,000. */
const ASK = Buffer.from([0, 0, 0, 0, 10, 0x08, 0x80, 0x80, 0x80, 0x80, 0x08, 0x10, 0x80, 0x89, 0x7a]);

/** An empty request. */
const NOTHING = Buffer.alloc(5);
/** Of a single reply, which leaves in one write. */
const REPLY_BYTES = 250_000;

/** A server whose replies are given up after 20 s, and a reader that lets a second pass after each bytes that it reads. */
async function reader(t: TestContext, window: Buffer) {
  const limits = { sendStallMs: 20_000, keepaliveMs: 600_000 };
  const clock = new ManualClock();
  const server = new GrpcServer({ clock, limits });
  let replies = 0;
  const unary = (): { data: Uint8Array } => {
    replies++;
    return { data: new Uint8Array(REPLY_BYTES) };
  };
  server.addService(EchoService, { ...echoHandlers(), unary });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  const raw = await RawHttp2.connect(port);
  t.after(() => raw.close());
  await raw.send(FrameType.SETTINGS, 0, 0, window);
  await raw.send(FrameType.WINDOW_UPDATE, 0, 0, WIDE_CONNECTION);
  raw.stopReading();
  const ask = async (id: number, method = "Download", message = ASK): Promise<void> => {
    await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}${method}`));
    await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, message);
  };
  const seconds = async (count: number, bytes: number): Promise<void> => {
    for (let second = 0; second < count; second++) {
      if (bytes > 0) await raw.readSome(bytes);
      await settled();
      clock.advance(1_000);
    }
  };
  return { server, raw, ask, seconds, replies: () => replies };
}

test("many replies that share a slow link go on, and end when their reader stops", TIMEOUT, async (t) => {
  const { server, ask, seconds } = await reader(t, WIDE_STREAMS);
  for (let call = 0; call < 64; call++) await ask(2 * call + 1);
  await until(() => server.callCount() === 64);
  // Of 128 KiB each, a turn of all takes half a minute at this pace.
  await seconds(100, MIB / 4);
  assert.equal(server.callCount(), 64);
  await seconds(25, 0);
  await until(() => server.callCount() === 0);
});

test("single replies that share a slow link come whole, whatever came before", TIMEOUT, async (t) => {
  const { server, raw, ask, seconds, replies } = await reader(t, WIDE_STREAMS);
  const [calls, rounds] = [64, 6];
  for (let asked = 0; asked < rounds * calls; ) {
    for (let call = 0; call < calls; call++) await ask(2 * asked++ + 1, "Unary", NOTHING);
    await until(() => replies() === asked);
    if (asked < rounds * calls) await seconds(1, (calls - 1) * REPLY_BYTES);
  }
  // The last ones take a minute.
  while (server.callCount() > 0) await seconds(1, MIB / 5);
  const left = raw.readSome(calls * REPLY_BYTES);
  await until(() => raw.endedCount === rounds * calls);
  raw.close();
  await left;
});

test(
  "a reply whose own window stays shut is given up while the others on its link go on",
  TIMEOUT,
  async (t) => {
    const { server, raw, ask, seconds } = await reader(t, Buffer.from([0, 4, 0, 0, 0, 0]));
    for (const id of [1, 3]) await ask(id);
    await raw.send(FrameType.WINDOW_UPDATE, 0, 3, WIDE_CONNECTION);
    await until(() => server.callCount() === 2);
    await seconds(25, MIB / 4);
    assert.equal(server.callCount(), 1);
  },
);
