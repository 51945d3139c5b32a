// What attacks on a door work with: its ports, a person of the attacker's own, sockets and floods.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hpack, RawHttp2 } from "#testing/raw-http2.ts";
import type { StrokeTime, Struck } from "./orders.ts";

/** Ports and credentials of an attack. */
export interface DoorPlace extends StrokeTime {
  /** HTTP/1.1, plain. */
  readonly port: number;
  /** HTTP/1.1 and HTTP/2 over TLS. */
  readonly tlsPort: number;
  /** The attacker's address, which is not the honest client's. */
  readonly from: string;
  /** Authorization header of a user who is the attacker's own. */
  readonly authorization: string;
  /** A file of a gigabyte in that user's root. */
  readonly bigFile: string;
}

export type DoorKind = (place: DoorPlace) => Promise<Struck>;

type Headers = readonly (readonly [string, string])[];

/** Requests and frames that are written at a time. */
export const VOLLEY = 100;
const WRITE_MAX_MS = 1_000;
const AGAIN_MS = 5;

/** The head of a request of HTTP/1.1 by the attacker's user, or by others. */
export function headOf(place: DoorPlace, line: string, headers: Headers = [], isSignedIn = true): string {
  const all: Headers = [
    ["Host", `127.0.0.1:${place.port}`],
    ...(isSignedIn ? [["Authorization", place.authorization] as const] : []),
    ...headers,
  ];
  return `${line} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

/** The headers of a request of HTTP/2. */
export const headersOf = (place: DoorPlace, method: string, path: string, more: Headers = []): Buffer =>
  hpack([
    [":method", method],
    [":scheme", "https"],
    [":path", path],
    [":authority", `127.0.0.1:${place.tlsPort}`],
    ["authorization", place.authorization],
    ...more,
  ]);

/** A connection from the attacker's address; its errors are no one's. */
export function openSocket({ port, from }: DoorPlace): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress: from });
  socket.on("error", () => undefined);
  return socket;
}

/** Writes what `turn` makes on one connection after the other, each until it is closed. */
export async function floodBy(place: DoorPlace, turn: (at: number) => string): Promise<Struck> {
  let strokes = 0;
  while (!place.isOver()) {
    const socket = openSocket(place);
    socket.resume();
    await once(socket, "connect").catch(() => undefined);
    for (let at = 0; socket.writable && !place.isOver(); at++) {
      if (!socket.write(turn(at), "latin1")) await drained(socket);
      strokes++;
      // Yields, so that the attacker sees the end of the connection.
      await sleep(0);
    }
    socket.destroy();
    await sleep(AGAIN_MS);
  }
  return { strokes };
}

/** Sends one request on each of many connections at once, reads the answers, and begins again. */
export async function askBy(place: DoorPlace, request: string, lanes = 8): Promise<Struck> {
  let strokes = 0;
  const lane = async (): Promise<void> => {
    while (!place.isOver()) {
      const socket = openSocket(place);
      const ended = once(socket, "close").catch(() => undefined);
      socket.once("data", () => socket.end());
      socket.resume();
      socket.write(request, "latin1");
      await Promise.race([ended, sleep(WRITE_MAX_MS)]);
      socket.destroy();
      strokes++;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { strokes };
}

/** Holds many connections that each begin with a head, and drips a few bytes into each. */
export async function dripInto(
  place: DoorPlace,
  count: number,
  { head, drop }: { readonly head: string; readonly drop: string },
): Promise<Struck> {
  const sockets = Array.from({ length: count }, () => openSocket(place));
  for (const socket of sockets) {
    socket.resume();
    socket.write(head, "latin1");
  }
  let strokes = count;
  while (!place.isOver()) {
    for (const socket of sockets) if (socket.writable) socket.write(drop);
    strokes += count;
    await sleep(50);
  }
  for (const socket of sockets) socket.destroy();
  return { strokes };
}

/** Writes volleys of frames over TLS, on a new connection whenever the last one is closed. */
export async function framesBy(
  place: DoorPlace,
  begin: (raw: RawHttp2) => Promise<void>,
  volley: (turn: number) => Buffer,
): Promise<Struck> {
  let strokes = 0;
  while (!place.isOver()) {
    const raw = await RawHttp2.connect(place.tlsPort, true, place.from, true).catch(() => undefined);
    if (raw !== undefined) {
      await begin(raw);
      for (let turn = 0; !raw.isClosed && !place.isOver(); turn++) {
        await Promise.race([raw.write(volley(turn)), sleep(WRITE_MAX_MS)]);
        strokes += VOLLEY;
        await sleep(0);
      }
      raw.close();
    }
    await sleep(AGAIN_MS);
  }
  return { strokes };
}

/** So many pieces in one. */
export const many = (make: (at: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: VOLLEY }, (_, at) => make(at)));

/** Stream ids by turn: 1, 3, 5, … */
export const idAt = (turn: number, at: number): number => ((turn * VOLLEY + at) * 2 + 1) % 2 ** 31;

function drained(socket: Socket): Promise<unknown> {
  const either = [once(socket, "drain"), once(socket, "close"), sleep(WRITE_MAX_MS)];
  return Promise.race(either).catch(() => undefined);
}
