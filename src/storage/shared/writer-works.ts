// What waits for the writer of the shared engine, and how much of it makes one group.

/** Commands that one commit of the shared engine takes. */
const SHARED_GROUP_COMMANDS = 512;

/** A command, or a question about what is known, that waits for its turn. */
export interface Work {
  /** Runs within the group; returns the answer. */
  readonly run: () => unknown;
  /** The root that it changes; undefined for none. */
  readonly root: () => number | undefined;
  /** True when it changes the cache alone, so that no commit stands for it. */
  readonly isHere: boolean;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
  /** How often rows were fetched for it since all were forgotten. */
  fetches: number;
  /** True once its group was too much for the database, or for the cache. */
  isAlone: boolean;
}

/** What a work has come to, told once its group is durable. */
export interface Settled {
  readonly work: Work;
  readonly settle: () => void;
}

/** Takes the next group from the queue: the first ones, or one that must be alone. */
export function takeGroup(queue: Work[]): Work[] {
  const next = queue.slice(0, SHARED_GROUP_COMMANDS).findIndex(({ isAlone }) => isAlone);
  return queue.splice(0, next < 0 ? SHARED_GROUP_COMMANDS : Math.max(1, next));
}
