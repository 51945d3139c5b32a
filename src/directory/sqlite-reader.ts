// The metadata store's file as another process reads it while the MetaServer has it open; lives inside the worker (D19).
import { statSync } from "node:fs";
import { GroveError } from "#base/errors.ts";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { LocatedRoot, NodeRecord, RootPlace } from "./directory.ts";
import type { Plan } from "./sql-plan.ts";
import { SqlSession } from "./sql-session.ts";
import { requireKnownSchema } from "./sqlite-schema.ts";
import type { Now } from "./sqlite-store.ts";
import * as commands from "./store-commands.ts";

interface OpenFile {
  readonly session: SqlSession;
  /** Device and number of the file, which change when the store was lost and made again. */
  readonly place: string;
}

/** Reads a store that another process writes; a file that was replaced is opened again. */
export class SqliteReader {
  readonly #path: string;
  #file: OpenFile | undefined;

  /** Throws STORE_UNAVAILABLE when there is no store yet, BAD_ARGUMENT for a file of another schema or program. */
  constructor(path: string) {
    this.#path = path;
    this.#open();
  }

  clusterId(now: Now): string | undefined {
    return this.#read(now, commands.clusterId);
  }

  findRoot(now: Now, owner: string): LocatedRoot | undefined {
    return this.#read(now, (moment) => commands.findRoot(moment, owner));
  }

  listRoots(now: Now, afterOwner?: string): RootPlace[] {
    return this.#read(now, (moment) => commands.listRoots(moment, afterOwner));
  }

  nodes(now: Now): NodeRecord[] {
    return this.#read(now, commands.nodes);
  }

  close(): void {
    this.#file?.session.close();
    this.#file = undefined;
  }

  #read<Result>(now: Now, plan: (moment: commands.Moment) => Plan<Result>): Result {
    try {
      return this.#open().follow(plan(readersMoment(now)));
    } catch (error) {
      // Whatever is wrong with the connection, the next one may be better: the file is not ours to give up.
      this.close();
      throw error;
    }
  }

  #open(): SqlSession {
    const place = placeOf(this.#path);
    if (this.#file?.place === place) return this.#file.session;
    this.close();
    const session = new SqlSession(this.#path, "read-only");
    try {
      requireKnownSchema(session.database);
    } catch (error) {
      session.close();
      throw error;
    }
    this.#file = { session, place };
    return session;
  }
}

function placeOf(path: string): string {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch (cause) {
    throw new GroveError(
      "STORE_UNAVAILABLE",
      `there is no metadata store at ${path}: is the MetaServer's -meta another one?`,
      {
        cause,
      },
    );
  }
}

/** Leases as far as the file tells: the writer counts them on its steady clock, and writes the wall's time of each sign of life. */
function readersMoment(now: Now): commands.Moment {
  const refuse = (): never => {
    throw new TypeError("a reader changes nothing");
  };
  return {
    wallMs: now.wallMs,
    isLive: (node) => now.wallMs - Number(node.last_seen_ms) < NODE_LEASE_MS,
    renew: refuse,
    placementWaitMs: refuse,
    holdPlacement: refuse,
  };
}
