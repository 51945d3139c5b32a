// What attacks of unproven callers work with: ports, addresses, and loops that end with the stroke.
import { setTimeout as sleep } from "node:timers/promises";
import { type Door, FrontCaller } from "#prove/front-caller.ts";
import type { StrokeTime, Struck } from "./orders.ts";

/** Ports and addresses of an attack. */
export interface UnprovenPlace extends StrokeTime {
  /** A FileServer without TLS. */
  readonly files: Door;
  /** A FileServer of the cluster, over TLS. */
  readonly node: Door;
  /** The MetaServer, over TLS. */
  readonly meta: Door;
  /** The attackers' addresses, none of them an honest client's. */
  readonly addresses: readonly string[];
  /** True in the short form. */
  readonly isShort: boolean;
}

/** One attack on resources that all callers share. */
export type UnprovenKind = (place: UnprovenPlace) => Promise<Struck>;

/** Methods of FileServer and MetaServer, and those that need no proof. */
export const FILES = "/grove.v1.FileServer/";
export const META = "/grove.v1.MetaServer/";
export const HEALTH = "/grpc.health.v1.Health/";
export const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/** A token that no server has issued. */
export const NO_TOKEN = "nobody.has.given.this";

/** The name of the attack that is several others at once. */
export const SIEGE = "siege";

/** The session's token in a RegisterClientResponse, whose first field it is. */
export const sessionTokenIn = (body: Buffer): string => body.subarray(2, 2 + (body[1] ?? 0)).toString();

/** Pause after a refused or ended connection. */
const AGAIN_MS = 20;

/** Addresses of as many networks of 24 bits as there are, up to eight, none of them 127.0.0.0/24. */
export const addressesOf = (count: number): string[] =>
  Array.from({ length: count }, (_, at) => `127.66.${at % 8}.${10 + Math.floor(at / 8)}`);

/**
 * Has each address repeat an action on connections of its own, at each port in turn. The stroke's time counts
 * once each has done it once, or has said that it is set up.
 */
export async function fromEach(
  place: UnprovenPlace,
  doors: readonly Door[],
  visit: (caller: FrontCaller, door: Door, stands: () => void) => Promise<number>,
): Promise<Struck> {
  let strokes = 0;
  const lane = async (from: string, at: number, stands: () => void): Promise<void> => {
    for (let turn = at; !place.isOver(); turn++) {
      const door = doors[turn % doors.length] as Door;
      const caller = await FrontCaller.connect(door, from).catch(() => undefined);
      const struck = caller === undefined ? 1 : await visit(caller, door, stands);
      strokes += struck;
      caller?.close();
      stands();
      await sleep(AGAIN_MS);
    }
  };
  const lanes = place.addresses.map((from) => ({ from, standing: Promise.withResolvers<void>() }));
  place.countFrom(Promise.all(lanes.map(({ standing }) => standing.promise)));
  await Promise.all(lanes.map(({ from, standing }, at) => lane(from, at, standing.resolve)));
  return { strokes };
}

/** Waits for the end of the stroke, or of something else. */
export async function untilOver(place: UnprovenPlace, gone: Promise<void>): Promise<void> {
  const end = new AbortController();
  void gone.then(() => end.abort());
  while (!place.isOver() && !end.signal.aborted) await sleep(20);
}
