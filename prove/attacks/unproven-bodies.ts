// Unproven calls whose bodies cost the server: bodies that unpack to much, that come slowly, that never come.
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { type Door, type FrontCaller, framed, type OpenCall } from "#prove/front-caller.ts";
import type { Struck } from "./orders.ts";
import {
  FILES,
  fromEach,
  HEALTH,
  META,
  NO_TOKEN,
  REFLECTION,
  type UnprovenKind,
  type UnprovenPlace,
  untilOver,
} from "./unproven-place.ts";

const MIB = 1_048_576;
/** As large as a message may be, so that its size alone does not refuse it. */
const BOMB_BYTES = 8 * MIB - 16;
/** A field that no message has: two bytes each, so four million of them. */
const UNKNOWN: Buffer = Buffer.alloc(BOMB_BYTES, Buffer.from([0x78, 0]));
/** An empty message in a repeated field. */
const emptyOnes = (field: number): Buffer => Buffer.alloc(BOMB_BYTES, Buffer.from([(field << 3) | 2, 0]));

interface Bomb {
  readonly path: string;
  readonly body: Buffer;
  readonly packed: Buffer;
}

const bomb = (path: string, body: Buffer): Bomb => ({ path, body, packed: gzipSync(body) });
const ROOTS = bomb(`${META}RegisterFileServer`, emptyOnes(7));
const NAMES = bomb(`${META}JoinNode`, emptyOnes(4));
const TRASH_IDS = bomb(`${FILES}PurgeTrash`, emptyOnes(2));
const PACKED_UNKNOWN: Buffer = gzipSync(UNKNOWN);
const unknown = (path: string): Bomb => ({ path, body: UNKNOWN, packed: PACKED_UNKNOWN });

const UNKNOWN_TO_FILES: readonly Bomb[] = ["EndSession", "RegisterClient", "GetAttr"]
  .map((method) => unknown(FILES + method))
  .concat(unknown(`${HEALTH}Check`));
const UNKNOWN_TO_META: readonly Bomb[] = ["GetRoots", "JoinNode", "Heartbeat"]
  .map((method) => unknown(META + method))
  .concat(unknown(`${HEALTH}Check`));

const BOMB_WITHIN_MS = 3_000;
/** Pause between two bombs of one address: a caller with a slow line of its own sends no more whole ones. */
const BETWEEN_MS = 40;
const LANES = 8;
const SHORT_LANES = 3;
const WATCHERS = 12;
const HEADERS_ONLY_CONNECTIONS = 24;
const CALLS_A_CONNECTION = 100;
const DAWDLERS = 3;
const DAWDLING_CALLS = 40;
const CAME_BYTES: number = 5 * MIB;
/** Time in which most of each body is to come; in the short form what comes later is left to whole runs. */
const CAME_WITHIN_MS = 6_000;
const SHORT_CAME_WITHIN_MS = 2_000;
const DRIP: Buffer = Buffer.alloc(512);
const DRIP_EVERY_MS = 250;
const EMPTY: Buffer = Buffer.alloc(0);

const few = (place: UnprovenPlace, count: number): UnprovenPlace => ({
  ...place,
  addresses: place.addresses.slice(0, count),
});
const isMeta = (place: UnprovenPlace, door: Door): boolean => door.port === place.meta.port;

/** Sends bombs one after the other from each of some addresses, each when the last one was answered. */
const bombsOf =
  (toFiles: readonly Bomb[], toMeta: readonly Bomb[], isPacked: boolean): UnprovenKind =>
  (place) =>
    fromEach(
      few(place, place.isShort ? SHORT_LANES : LANES),
      [place.files, place.meta, place.node],
      async (caller, door) => {
        let sent = 0;
        for (const { path, body, packed } of isMeta(place, door) ? toMeta : toFiles) {
          if (caller.isOver) break;
          const options = { token: NO_TOKEN, isPacked, withinMs: BOMB_WITHIN_MS };
          await caller.call(path, isPacked ? packed : body, options);
          sent++;
          await sleep(BETWEEN_MS);
        }
        return sent;
      },
    );

/** Opens streams that stay open, each of which keeps its request in memory. */
const heldOf =
  (path: string): UnprovenKind =>
  (place) =>
    fromEach(
      few(place, place.isShort ? SHORT_LANES : LANES),
      [place.files, place.meta, place.node],
      async (caller, _door, stands) => {
        for (let count = 0; count < WATCHERS && !caller.isOver; count++) {
          const call = caller.open(path, { isPacked: true });
          void call.write(framed(PACKED_UNKNOWN, true));
          if (path !== REFLECTION) call.end();
          await sleep(BETWEEN_MS);
        }
        for (let count = 0; count < CALLS_A_CONNECTION - WATCHERS && !caller.isOver; count++) {
          const call = caller.open(path);
          void call.write(framed(EMPTY));
          if (path !== REFLECTION) call.end();
        }
        stands();
        await untilOver(place, caller.gone);
        return CALLS_A_CONNECTION;
      },
    );

/** Sends headers of calls whose bodies never come, on so many connections at each port. */
const withoutBodies: UnprovenKind = (place) => {
  const addresses = Array.from(
    { length: HEADERS_ONLY_CONNECTIONS },
    (_, at) => place.addresses[at % place.addresses.length] as string,
  );
  const at = (door: Door): Promise<Struck> =>
    fromEach({ ...place, addresses }, [door], async (caller, _door, stands) => {
      const paths = isMeta(place, door)
        ? [`${META}GetRoots`, `${META}JoinNode`, `${META}Heartbeat`, `${HEALTH}Check`]
        : [`${FILES}GetAttr`, `${FILES}RegisterClient`, `${FILES}UploadFile`, `${HEALTH}Check`];
      for (let count = 0; count < CALLS_A_CONNECTION && !caller.isOver; count++)
        caller.open(paths[count % paths.length] as string, count % 2 === 0 ? {} : { token: NO_TOKEN });
      stands();
      await untilOver(place, caller.gone);
      return CALLS_A_CONNECTION;
    });
  return together(
    [place.files, place.meta, place.node].map((door) => () => at(door)),
    place,
  );
};

/** Sends most of a large body at once, and the rest in small pieces. */
const dawdling: UnprovenKind = (place) => {
  const most = framed(Buffer.alloc(CAME_BYTES), false, 8 * MIB - 16);
  return fromEach(
    few(place, DAWDLERS),
    [place.files, place.node, place.files],
    async (caller, _door, stands) => {
      const calls = Array.from({ length: DAWDLING_CALLS }, () =>
        caller.open(`${FILES}WriteFile`, { token: NO_TOKEN, withinMs: 600_000 }),
      );
      // The server may take as much of it as it wants.
      const withinMs = place.isShort ? SHORT_CAME_WITHIN_MS : CAME_WITHIN_MS;
      await Promise.race([Promise.all(calls.map((call) => call.write(most))), sleep(withinMs)]);
      stands();
      await drip(place, caller, calls);
      return DAWDLING_CALLS;
    },
  );
};

async function drip(place: UnprovenPlace, caller: FrontCaller, calls: readonly OpenCall[]): Promise<void> {
  while (!place.isOver() && !caller.isOver && calls.some((call) => !call.isOver)) {
    for (const call of calls) void call.write(DRIP);
    await sleep(DRIP_EVERY_MS);
  }
}

/** Every attack by bodies, by its name. */
export const BODY_KINDS: Readonly<Record<string, UnprovenKind>> = {
  "unknown fields": bombsOf(UNKNOWN_TO_FILES, UNKNOWN_TO_META, false),
  "packed unknown fields": bombsOf(UNKNOWN_TO_FILES, UNKNOWN_TO_META, true),
  "empty sub-messages": bombsOf([TRASH_IDS], [ROOTS, NAMES], false),
  "packed empty sub-messages": bombsOf([TRASH_IDS], [ROOTS, NAMES], true),
  "health watchers": heldOf(`${HEALTH}Watch`),
  "reflection requests": heldOf(REFLECTION),
  "calls without bodies": withoutBodies,
  "bodies that dawdle": dawdling,
};

/** Runs several attacks at once and adds their strokes. */
export async function together(kinds: readonly UnprovenKind[], place: UnprovenPlace): Promise<Struck> {
  const struck = await Promise.all(kinds.map((kind) => kind(place)));
  const complaint = struck.find((each) => each.complaint !== undefined)?.complaint;
  return {
    strokes: struck.reduce((sum, { strokes }) => sum + strokes, 0),
    ...(complaint === undefined ? {} : { complaint }),
  };
}
