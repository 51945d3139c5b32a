// Unproven connections: idle ones that answer pings, and thousands of handshakes, refusals, frames and
// tokens.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { type Door, FrontCaller } from "#prove/front-caller.ts";
import { FrameFlag, FrameType, grpcHeaders, hpack, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import type { Struck } from "./orders.ts";
import {
  FILES,
  fromEach,
  META,
  NO_TOKEN,
  sessionTokenIn,
  type UnprovenKind,
  type UnprovenPlace,
} from "./unproven-place.ts";

/** With so many each, a fifth more connections than a server keeps. */
const IDLE_ADDRESSES = 6;
const IDLE_A_CONNECTION = 200;
/** Connections being opened from an address at a time. */
const OPENING = 20;
const FILLING_MS = 10;
const REFILLING_MS = 200;
/** Handshakes of one address that are counted: answers at once and per second, and how many are under way. */
const HANDSHAKES_TRIED = 800;
const HANDSHAKES_MAX = 300;
const HANDSHAKES_PER_SECOND = 22;
const HANDSHAKES_AT_ONCE = 10;
const HELLO_WITHIN_MS = 2_000;
const VOLLEY = 50;
/** A connection ends after twenty refusals; calls under way by then are answered as well. */
const REFUSALS_MAX = 200;
const ANSWERED_WITHIN_MS = 10_000;
const EMPTY_MESSAGE: Buffer = Buffer.alloc(5);
const FRAMES_A_VOLLEY = 200;
/**
 * Pings of the one counted connection: ten megabytes, so many at a time, for so long; and how long its end
 * may take.
 */
const PINGS_TRIED = 600_000;
const PINGS_A_VOLLEY = 2_000;
const PINGS_WITHIN_MS = 6_000;
const ENDED_WITHIN_MS = 5_000;
const PING_BYTES = 17;
/** Four times the bytes that a connection may send in frames that reach no call, at once and per second. */
const UNUSED_MAX_BYTES = 1_048_576;
const UNUSED_BYTES_PER_SECOND = 4_194_304;
const TOKENS_AT_ONCE = 50;
/** Far more than the provider may be asked about; a slow machine takes longer than a stroke for them. */
const TOKENS_TRIED = 400;
/** Uploads whose header never comes. */
const HEADERLESS = 40;
const ENDS_WITHIN_MS = 8_000;
const ENDS_WITHOUT_HEADER_MS = 20_000;
const NOTHING: Buffer = Buffer.alloc(0);

/** Keeps connections that only answer pings, by address and port. They stand once the server has greeted all. */
export async function keepIdle(
  place: UnprovenPlace,
  doors: readonly Door[],
  addresses: readonly string[],
  each: number,
): Promise<Struck> {
  let strokes = 0;
  const lane = async (from: string, door: Door, stands: () => void): Promise<void> => {
    const kept = new Set<RawHttp2>();
    let tries = 0;
    while (!place.isOver()) {
      const missing = Math.min(OPENING, each - kept.size);
      const opened = await Promise.all(
        Array.from({ length: missing }, () =>
          RawHttp2.connect(door.port, true, from, door.isTls).catch(() => undefined),
        ),
      );
      strokes += missing;
      for (const raw of opened) {
        raw?.answerPings();
        if (raw !== undefined) kept.add(raw);
      }
      for (const raw of kept) if (raw.isClosed) kept.delete(raw);
      tries += missing;
      if (tries >= each && [...kept].every(({ frames }) => frames.length > 0)) stands();
      await sleep(tries < each ? FILLING_MS : REFILLING_MS);
    }
    for (const raw of kept) raw.close();
  };
  const lanes = doors.flatMap((door) => addresses.map((from) => ({ door, from })));
  const standing = lanes.map(() => Promise.withResolvers<void>());
  place.countFrom(Promise.all(standing.map(({ promise }) => promise)));
  await Promise.all(lanes.map(({ door, from }, at) => lane(from, door, () => standing[at]?.resolve())));
  return { strokes };
}

const idle: UnprovenKind = (place) =>
  keepIdle(place, [place.files], place.addresses.slice(0, IDLE_ADDRESSES), IDLE_A_CONNECTION);
const idleOverTls: UnprovenKind = (place) =>
  keepIdle(
    place,
    [place.meta],
    place.addresses.slice(0, IDLE_ADDRESSES),
    place.isShort ? IDLE_A_CONNECTION / 4 : IDLE_A_CONNECTION,
  );

/**
 * Repeats the same beginning of a handshake: it costs the client a few bytes, and the server keys and
 * signatures. One address first, and counted.
 */
const handshakes: UnprovenKind = async (place) => {
  const hello = await clientHello();
  const startedMs = performance.now();
  let answered = 0;
  const one = async (): Promise<void> => {
    for (let count = 0; count < HANDSHAKES_TRIED / HANDSHAKES_AT_ONCE; count++)
      if (await greet(place.node, place.addresses[0] as string, hello)) answered++;
  };
  const counted = Promise.all(Array.from({ length: HANDSHAKES_AT_ONCE }, one));
  place.countFrom(counted);
  await counted;
  const seconds = (performance.now() - startedMs) / 1_000;
  const answeredMax = Math.round(HANDSHAKES_MAX + HANDSHAKES_PER_SECOND * seconds);
  let strokes = HANDSHAKES_TRIED;
  const lane = async (from: string, door: Door): Promise<void> => {
    for (; !place.isOver(); strokes++) await greet(door, from, hello);
  };
  const doors = [place.node, place.meta];
  await Promise.all(place.addresses.flatMap((from) => doors.map((door) => lane(from, door))));
  if (answered <= answeredMax) return { strokes };
  const complaint = `${answered} of ${HANDSHAKES_TRIED} handshakes of one address were answered, and ${answeredMax} may be`;
  return { strokes, complaint };
};

/** Sends a ClientHello, and returns whether it was answered. */
async function greet({ port }: Door, localAddress: string, hello: Buffer): Promise<boolean> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  const answer = Promise.withResolvers<boolean>();
  socket.on("error", () => undefined);
  socket.once("data", () => answer.resolve(true));
  socket.once("close", () => answer.resolve(false));
  const late = setTimeout(() => answer.resolve(false), HELLO_WITHIN_MS);
  socket.write(hello);
  try {
    return await answer.promise;
  } finally {
    clearTimeout(late);
    socket.destroy();
  }
}

/** Returns the first message of a TLS client. */
async function clientHello(): Promise<Buffer> {
  const heard = Promise.withResolvers<Buffer>();
  const server = createServer((socket: Socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (bytes: Buffer) => {
      heard.resolve(bytes);
      socket.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const client = connectTls({ port, host: "127.0.0.1", ALPNProtocols: ["h2"], rejectUnauthorized: false });
  client.on("error", () => undefined);
  try {
    return await heard.promise;
  } finally {
    client.destroy();
    server.close();
  }
}

/** Makes whole calls with an unknown token, as fast as the connection takes them. */
const refused: UnprovenKind = async (place) => {
  let strokes = 0;
  let mostAnswered = 0;
  const first = Promise.withResolvers<void>();
  let isFirstOver = false;
  const volleyOf =
    (headers: Buffer) =>
    (firstId: number): Buffer => {
      strokes += VOLLEY;
      return Buffer.concat(Array.from({ length: VOLLEY }, (_, at) => wholeCall(firstId + 2 * at, headers)));
    };
  const lane = async (from: string, at: number): Promise<void> => {
    const door = [place.files, place.node, place.meta][at % 3] as Door;
    const path = door === place.meta ? `${META}GetRoots` : `${FILES}GetAttr`;
    const headers = grpcHeaders(path, [["authorization", `Bearer ${NO_TOKEN}`]]);
    while (!place.isOver()) {
      const raw = await RawHttp2.connect(door.port, true, from, door.isTls).catch(() => undefined);
      if (raw === undefined) {
        await sleep(20);
        continue;
      }
      const isCounted = at === 0 && !isFirstOver;
      const answered = await callOn(raw, volleyOf(headers), (soFar) =>
        isCounted ? soFar <= REFUSALS_MAX : !place.isOver(),
      );
      if (isCounted) isFirstOver = true;
      mostAnswered = Math.max(mostAnswered, answered);
      raw.close();
      if (isCounted) first.resolve();
    }
  };
  place.countFrom(first.promise);
  await Promise.all(place.addresses.map(lane));
  if (mostAnswered <= REFUSALS_MAX) return { strokes };
  return {
    strokes,
    complaint: `one connection was answered ${mostAnswered} refusals before it was told to go`,
  };
};

const wholeCall = (id: number, headers: Buffer): Buffer =>
  Buffer.concat([
    rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headers),
    rawFrame(FrameType.DATA, FrameFlag.END_STREAM, id, EMPTY_MESSAGE),
  ]);

/**
 * Makes calls, a volley whenever the last one is answered, until the stroke ends or the connection does.
 * Returns how many were answered before the GOAWAY.
 */
async function callOn(
  raw: RawHttp2,
  volley: (firstId: number) => Buffer,
  goesOn: (answered: number) => boolean,
): Promise<number> {
  let [id, answered, sent, untilTold, isToldToGo] = [1, 0, 0, 0, false];
  const lateMs = performance.now() + ANSWERED_WITHIN_MS;
  while (!raw.isClosed && goesOn(answered) && performance.now() < lateMs) {
    if (sent - answered < 2 * VOLLEY) {
      await Promise.race([raw.write(volley(id)), sleep(1_000)]);
      id += 2 * VOLLEY;
      sent += VOLLEY;
    }
    // Yields, so that the attacker sees the answers and the end.
    await sleep(2);
    for (const { type } of raw.frames) {
      if (type === FrameType.GOAWAY) isToldToGo = true;
      if (type === FrameType.HEADERS) untilTold += isToldToGo ? 0 : 1;
      if (type === FrameType.HEADERS) answered++;
    }
    raw.frames.length = 0;
  }
  return untilTold;
}

/** Frames that belong to no call, on many connections at once. */
const frames: UnprovenKind = async (place) => {
  const headers = grpcHeaders(`${FILES}GetAttr`);
  const many = (frame: Buffer): Buffer => Buffer.concat(Array.from({ length: FRAMES_A_VOLLEY }, () => frame));
  const volleys: readonly ((turn: number) => Buffer)[] = [
    constant(many(rawFrame(FrameType.PING, 0, 0, Buffer.alloc(8)))),
    constant(many(rawFrame(FrameType.SETTINGS, 0, 0, NOTHING))),
    (turn) =>
      Buffer.concat([
        turn === 0 ? rawFrame(FrameType.HEADERS, 0, 1, headers) : NOTHING,
        many(rawFrame(FrameType.CONTINUATION, 0, 1, hpack([["x-more", "a".repeat(200)]]))),
      ]),
    (turn) =>
      Buffer.concat(
        Array.from({ length: FRAMES_A_VOLLEY }, (_, at) => {
          const id = ((turn * FRAMES_A_VOLLEY + at) * 2 + 1) % 2 ** 31;
          return Buffer.concat([
            rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headers),
            rawFrame(FrameType.RST_STREAM, 0, id, Buffer.from([0, 0, 0, 8])),
          ]);
        }),
      ),
  ];
  let strokes = 0;
  const counted = pings(place);
  place.countFrom(counted);
  const lane = async (from: string, at: number): Promise<void> => {
    const door = [place.files, place.node, place.meta][at % 3] as Door;
    const volley = volleys[at % volleys.length] as (turn: number) => Buffer;
    while (!place.isOver()) {
      const raw = await RawHttp2.connect(door.port, true, from, door.isTls).catch(() => undefined);
      if (raw !== undefined) strokes += await pour(raw, volley, () => !place.isOver());
      raw?.close();
      await sleep(5);
    }
  };
  await Promise.all(place.addresses.map(lane));
  const complaint = await counted;
  return { strokes, ...(complaint === undefined ? {} : { complaint }) };
};

/**
 * Sends pings on one connection until it is ended; returns a complaint if the server accepts far more than
 * its limit.
 */
async function pings({ files, addresses }: UnprovenPlace): Promise<string | undefined> {
  const raw = await RawHttp2.connect(files.port, true, addresses.at(-1));
  const ping = rawFrame(FrameType.PING, 0, 0, Buffer.alloc(8));
  const volley = Buffer.concat(Array.from({ length: PINGS_A_VOLLEY }, () => ping));
  const startedMs = performance.now();
  const isInTime = (): boolean => performance.now() < startedMs + PINGS_WITHIN_MS;
  let sent = 0;
  for (; !raw.isClosed && sent < PINGS_TRIED && isInTime(); sent += PINGS_A_VOLLEY) {
    await Promise.race([raw.write(volley), sleep(1_000)]);
    raw.frames.length = 0;
    await sleep(0);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  await Promise.race([raw.closed, sleep(ENDED_WITHIN_MS)]);
  const isLeftAlone = !raw.isClosed;
  raw.close();
  const isTooMuch = sent * PING_BYTES > UNUSED_MAX_BYTES + UNUSED_BYTES_PER_SECOND * seconds;
  return isLeftAlone && isTooMuch ? `${sent} pings of one connection did not end it` : undefined;
}

/** Writes volleys until the stroke or the connection ends; returns the number of frames. */
async function pour(raw: RawHttp2, volley: (turn: number) => Buffer, goesOn: () => boolean): Promise<number> {
  let sent = 0;
  for (let turn = 0; !raw.isClosed && goesOn(); turn++) {
    await Promise.race([raw.write(volley(turn)), sleep(1_000)]);
    raw.frames.length = 0;
    sent += FRAMES_A_VOLLEY;
    // Yields, so that the attacker sees the end.
    await sleep(1);
  }
  return sent;
}

function constant<T>(value: T): () => T {
  return () => value;
}

/** Sends tokens that only the provider can judge; each names its one address for the provider's count. */
const unknownTokens: UnprovenKind = (place) => {
  const tried = Promise.withResolvers<void>();
  place.countFrom(tried.promise);
  let all = 0;
  return fromEach({ ...place, addresses: place.addresses.slice(0, 1) }, [place.meta], async (caller) => {
    let sent = 0;
    const [from = ""] = place.addresses;
    const one = async (): Promise<void> => {
      while (!place.isOver() && !caller.isOver) {
        sent++;
        if (++all >= TOKENS_TRIED) tried.resolve();
        await caller.call(`${META}GetRoots`, NOTHING, { token: `unknown-${from}-${Math.random()}` });
        await sleep(1);
      }
    };
    await Promise.all(Array.from({ length: TOKENS_AT_ONCE }, one));
    return sent;
  });
};

/**
 * Sends uploads without a header, in a session that ends: they must end with it, and otherwise by their own
 * timeout.
 */
const headerless: UnprovenKind = async (place) => {
  const complaint =
    (await headerlessUploads(place, true)) ??
    (place.isShort ? undefined : await headerlessUploads(place, false));
  return { strokes: HEADERLESS, ...(complaint === undefined ? {} : { complaint }) };
};

async function headerlessUploads(place: UnprovenPlace, endsSession: boolean): Promise<string | undefined> {
  const caller = await FrontCaller.connect(place.files, place.addresses.at(-1) as string);
  try {
    const signedIn = await caller.call(`${FILES}RegisterClient`, NOTHING, {
      token: `mock-jwt.headerless${Math.floor(Math.random() * 1e9)}@example.com`,
    });
    const token = sessionTokenIn(signedIn.body);
    const calls = Array.from({ length: HEADERLESS }, () =>
      caller.open(`${FILES}UploadFile`, { token, withinMs: 600_000 }),
    );
    await sleep(200);
    const begun = calls.filter((call) => !call.isOver).length;
    if (begun === 0) throw new Error("no upload was begun");
    if (endsSession) await caller.call(`${FILES}EndSession`, NOTHING, { token });
    const lateMs = performance.now() + (endsSession ? ENDS_WITHIN_MS : ENDS_WITHOUT_HEADER_MS);
    while (performance.now() < lateMs && calls.some((call) => !call.isOver)) await sleep(50);
    const left = calls.filter((call) => !call.isOver).length;
    const why = endsSession ? "whose session has ended" : "whose header never came";
    return left === 0 ? undefined : `${left} of ${HEADERLESS} uploads ${why} hold their places`;
  } finally {
    caller.close();
  }
}

/** Every attack by connections, by its name. */
export const CONNECTION_KINDS: Readonly<Record<string, UnprovenKind>> = {
  "idle connections": idle,
  "idle connections over TLS": idleOverTls,
  "uploads without header": headerless,
  "unknown tokens": unknownTokens,
  handshakes,
  refusals: refused,
  "frames of no call": frames,
};
