// Floods by one client, connection after connection, and the types that attacks by frames share.
import { setTimeout as sleep } from "node:timers/promises";
import { grpcHeaders, RawHttp2 } from "#testing/raw-http2.ts";
import type { StrokeTime, Struck } from "./orders.ts";

/** What an attack works with. */
export interface AttackPlace extends StrokeTime {
  /** gRPC, plain. */
  readonly port: number;
  /** gRPC over TLS, on a server of its own. */
  readonly tlsPort: number;
  readonly consolePort: number;
  /** The attacker's address, which is not the honest client's. */
  readonly from: string;
  /** A session of the attacker, bound to that address. */
  readonly token: string;
  /** A file of many bytes in the attacker's root. */
  readonly bigFile: string;
}

export type Kind = (place: AttackPlace) => Promise<Struck>;

const SERVICE = "/grove.v1.FileServer/";
/** Frames written at a time. */
export const VOLLEY = 200;

export const open = (place: AttackPlace, greet = true): Promise<RawHttp2> =>
  RawHttp2.connect(place.port, greet, place.from);

export const headersFor = (
  place: AttackPlace,
  method: string,
  more: readonly (readonly [string, string])[] = [],
): Buffer => grpcHeaders(SERVICE + method, [["authorization", `Bearer ${place.token}`], ...more]);

/** Writes volleys, on a new connection whenever the last one is closed. */
export async function flood(
  place: AttackPlace,
  begin: (raw: RawHttp2) => Promise<void>,
  volley: (turn: number) => Buffer,
): Promise<Struck> {
  let strokes = 0;
  while (!place.isOver()) {
    const raw = await open(place);
    await begin(raw);
    for (let turn = 0; !raw.isClosed && !place.isOver(); turn++) {
      await Promise.race([raw.write(volley(turn)), sleep(1_000)]);
      strokes += VOLLEY;
      // Yields, so that the attacker sees the end of the connection.
      await sleep(0);
    }
    raw.close();
  }
  return { strokes };
}

export const times = (count: number, make: (at: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));

/** Stream ids by turn: 1, 3, 5, … */
export const streamId = (turn: number, at: number): number => ((turn * VOLLEY + at) * 2 + 1) % 2 ** 31;
