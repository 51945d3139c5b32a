// The attacks on a door: by HTTP/1.1 and HTTP/2, by XML, ranges, conditions and slow clients.
import { setTimeout as sleep } from "node:timers/promises";
import { FrameFlag, FrameType, type RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import {
  askBy,
  type DoorKind,
  type DoorPlace,
  dripInto,
  floodBy,
  framesBy,
  headersOf,
  headOf,
  idAt,
  many,
  openSocket,
  VOLLEY,
} from "./door-place.ts";
import { stallHandshakes } from "./stalled-handshakes.ts";

const NOTHING: Buffer = Buffer.alloc(0);
const CANCEL = Buffer.from([0, 0, 0, 8]);
const XML_MAX_BYTES = 65_536;
const idle = (): Promise<void> => Promise.resolve();

const withBody = (place: DoorPlace, line: string, body: string): string =>
  headOf(place, line, [["Content-Length", String(body.length)]]) + body;

const slowHeaders: DoorKind = (place) =>
  dripInto(place, 150, {
    head: `GET /dav/ HTTP/1.1\r\nHost: 127.0.0.1:${place.port}\r\n`,
    drop: "X-A: b\r\n",
  });

const slowBodies: DoorKind = (place) =>
  dripInto(place, 60, { head: headOf(place, "PUT /dav/slow", [["Content-Length", "1000000"]]), drop: "a" });

/** Asks for a gigabyte on some connections, few enough that the kernel's buffers do not hide it, and takes nothing. */
const slowReaders: DoorKind = async (place) => {
  const sockets = Array.from({ length: 8 }, () => openSocket(place));
  for (const socket of sockets) {
    socket.pause();
    socket.write(headOf(place, `GET /dav${place.bigFile}`));
  }
  while (!place.isOver()) await sleep(20);
  for (const socket of sockets) socket.destroy();
  return { strokes: sockets.length };
};

/** A body in chunks that never ends. */
const endlessXml: DoorKind = (place) => {
  const piece = "<a>".repeat(1_000);
  const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`;
  const head = headOf(place, "PROPFIND /dav/", [
    ["Depth", "1"],
    ["Transfer-Encoding", "chunked"],
  ]);
  return floodBy(place, (at) => (at === 0 ? head : chunk));
};

const deepXml: DoorKind = (place) =>
  askBy(place, withBody(place, "PROPFIND /dav/", "<a>".repeat(XML_MAX_BYTES / 3)));

const entities: DoorKind = (place) => {
  const lines = Array.from({ length: 12 }, (_, at) => `<!ENTITY e${at + 1} "${`&e${at};`.repeat(10)}">`);
  const body = `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 "ha">${lines.join("")}]><a>&e12;</a>`;
  return askBy(place, withBody(place, "PROPPATCH /dav/small", body));
};

const manyProperties: DoorKind = (place) => {
  const names = Array.from({ length: 5_000 }, (_, at) => `<x${at}/>`).join("");
  const body = `<D:propfind xmlns:D="DAV:"><D:prop>${names}</D:prop></D:propfind>`;
  return askBy(place, withBody(place, "PROPFIND /dav/", body));
};

const manyRanges: DoorKind = (place) => {
  const ranges = Array.from({ length: 1_500 }, (_, at) => `${at * 2_000_000}-${at * 2_000_000 + 1}`);
  return askBy(place, headOf(place, `GET /dav${place.bigFile}`, [["Range", `bytes=${ranges.join()}`]]));
};

const longConditions: DoorKind = (place) => {
  const lists = Array.from({ length: 300 }, (_, at) => `</dav/n${at}> (Not <urn:x:${at}> ["e"])`).join(" ");
  return askBy(place, headOf(place, "PUT /dav/small", [["If", lists.slice(0, 8_000)]]));
};

const headerFlood: DoorKind = (place) =>
  floodBy(place, (at) =>
    at === 0 ? `GET /dav/ HTTP/1.1\r\nHost: 127.0.0.1:${place.port}\r\n` : `X-${at}: ${"a".repeat(900)}\r\n`,
  );

const oddMethods: DoorKind = (place) => {
  const methods = ["SEARCH", "M-SEARCH", "SUBSCRIBE", "LINK", "PURGE", "REPORT", "TRACE", "BREW"];
  const volley = methods.map((method) => headOf(place, `${method} /dav/`)).join("");
  return floodBy(place, () => volley);
};

/** Many requests at once on one connection, whose answers are read late. */
const pipelined: DoorKind = (place) => {
  const volley = headOf(place, "PROPFIND /dav/", [["Depth", "1"]]).repeat(VOLLEY);
  return floodBy(place, () => volley);
};

const wrongPasswords: DoorKind = (place) => {
  const head = (at: number): string => {
    const pair = Buffer.from(`guess${at}@example.com:gap_${at}`).toString("base64");
    return headOf(place, "PROPFIND /dav/", [["Authorization", `Basic ${pair}`]], false);
  };
  return floodBy(place, (at) => Array.from({ length: 20 }, (_, one) => head(at * 20 + one)).join(""));
};

/** A body of chunks of one byte, each with words behind its length. */
const tinyChunks: DoorKind = (place) => {
  const chunks = `1;${"x".repeat(60)}\r\na\r\n`.repeat(VOLLEY);
  const head = headOf(place, "PUT /dav/tiny", [["Transfer-Encoding", "chunked"]]);
  return floodBy(place, (at) => (at === 0 ? head : chunks));
};

const manyConnections: DoorKind = async (place) => {
  let strokes = 0;
  while (!place.isOver()) {
    const sockets = Array.from({ length: 250 }, () => openSocket(place));
    strokes += sockets.length;
    await sleep(20);
    for (const socket of sockets) socket.destroy();
  }
  return { strokes };
};

const rapidReset: DoorKind = (place) => {
  const headers = headersOf(place, "PROPFIND", "/dav/", [["depth", "1"]]);
  return framesBy(place, idle, (turn) =>
    many((at) => {
      const id = idAt(turn, at);
      const flags = FrameFlag.END_HEADERS | FrameFlag.END_STREAM;
      const asked = rawFrame(FrameType.HEADERS, flags, id, headers);
      return Buffer.concat([asked, rawFrame(FrameType.RST_STREAM, 0, id, CANCEL)]);
    }),
  );
};

/** Streams that are begun and left. */
const openBodies: DoorKind = (place) => {
  const headers = headersOf(place, "PUT", "/dav/open");
  return framesBy(place, idle, (turn) =>
    many((at) => rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, idAt(turn, at), headers)),
  );
};

const anyMethod: DoorKind = (place) =>
  framesBy(place, idle, (turn) =>
    many((at) => {
      const method = ["constructor", "__proto__", "toString", "get", "A".repeat(200)][at % 5] ?? "";
      const flags = FrameFlag.END_HEADERS | FrameFlag.END_STREAM;
      return rawFrame(FrameType.HEADERS, flags, idAt(turn, at), headersOf(place, method, "/dav/"));
    }),
  );

const headerBomb: DoorKind = (place) => {
  const more = Array.from({ length: 80 }, (_, at) => [`x-${at}`, "b".repeat(180)] as const);
  const bomb = headersOf(place, "GET", "/dav/", more);
  const flags = FrameFlag.END_HEADERS | FrameFlag.END_STREAM;
  return framesBy(place, idle, (turn) =>
    many((at) => rawFrame(FrameType.HEADERS, flags, idAt(turn, at), bomb)),
  );
};

const continuation: DoorKind = (place) => {
  const begin = (raw: RawHttp2): Promise<void> =>
    raw.send(FrameType.HEADERS, 0, 1, headersOf(place, "GET", "/dav/"));
  const more = headersOf(place, "GET", "/dav/");
  return framesBy(place, begin, () => many(() => rawFrame(FrameType.CONTINUATION, 0, 1, more)));
};

const framesOf =
  (type: number, id: number, payload: Buffer): DoorKind =>
  (place) => {
    const volley = many(() => rawFrame(type, 0, id, payload));
    const begin = (raw: RawHttp2): Promise<void> =>
      raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, headersOf(place, "PUT", "/dav/frames"));
    return framesBy(place, begin, () => volley);
  };

/** Every kind by its name. */
export const DOOR_ATTACKS: Readonly<Record<string, DoorKind>> = {
  "slow headers": slowHeaders,
  "slow bodies": slowBodies,
  "slow readers": slowReaders,
  "endless XML": endlessXml,
  "deep XML": deepXml,
  entities,
  "thousands of properties": manyProperties,
  "many ranges": manyRanges,
  "long conditions": longConditions,
  "header flood": headerFlood,
  "methods of no one": oddMethods,
  "pipelined listings": pipelined,
  "wrong passwords": wrongPasswords,
  "tiny chunks": tinyChunks,
  "thousands of connections": manyConnections,
  "TLS handshake stall": stallHandshakes,
  "rapid reset": rapidReset,
  "bodies without an end": openBodies,
  "methods of any word": anyMethod,
  "header bomb": headerBomb,
  "CONTINUATION flood": continuation,
  "SETTINGS flood": framesOf(FrameType.SETTINGS, 0, NOTHING),
  "PING flood": framesOf(FrameType.PING, 0, Buffer.alloc(8)),
  "empty DATA flood": framesOf(FrameType.DATA, 1, NOTHING),
};
