// Reports the losses of a node's restore from what the console saw before the node's last restart.

import { shellWord } from "#base/shell-word.ts";
import { alertKey } from "#console/alerts/alert-kinds.ts";
import type { Occurrence } from "#console/alerts/condition.ts";
import type { NodeName } from "#console/alerts/node-rules.ts";
import type { ClusterState, NodeReading } from "#console/cluster/cluster-state.ts";
import type { LostLines } from "#security/audit/lost-lines.ts";
import type { RestoreLine } from "#security/audit/restore-line.ts";
import type { ConsoleOptions } from "./console-options.ts";
import { metaFlag } from "./meta-flag.ts";

/** Time limit for reading a log to its end before a break in it is reported. */
export const AUDIT_SUSPECT_MS = 600_000;
/** Users that an alert about a restored node names, for each kind of loss. */
const RESTORE_USERS_NAMED = 20;

/** A restore in a node's log. */
export interface FoundRestore {
  readonly node: NodeName;
  readonly line: RestoreLine;
  readonly lost: LostLines;
}

/** Remembered runs of each node. */
const RUNS_MAX = 3;

type Users = Pick<NodeReading, "perUserStorage" | "perUserQuota" | "perUserDetail" | "usersWithheld">;

/** An ended run of a node, with its users at its end. Both moments by the node's clock. */
interface Run {
  readonly startedUnix: number;
  /** Start of the next one. */
  readonly endedUnix: number;
  readonly users: Users;
}

/** Remembers each node's users before its last start, and before earlier starts shortly before that one. */
export class RestoredNodes {
  readonly #last = new Map<string, NodeReading>();
  /** Oldest first. */
  readonly #runs = new Map<string, readonly Run[]>();
  readonly #store: ConsoleOptions["store"];
  readonly #end: () => void;

  constructor(cluster: Pick<ClusterState, "onPoll">, store: ConsoleOptions["store"]) {
    this.#store = store;
    this.#end = cluster.onPoll(({ node, reading }) => {
      if (reading === undefined) return;
      const last = this.#last.get(node.id);
      if (last !== undefined && last.lastRestartUnix !== reading.lastRestartUnix) {
        const { perUserStorage, perUserQuota, perUserDetail, usersWithheld } = last;
        const users = { perUserStorage, perUserQuota, perUserDetail, usersWithheld };
        const startedUnix = last.lastRestartUnix ?? 0;
        const endedUnix = reading.lastRestartUnix ?? startedUnix;
        this.#runs.set(node.id, withRun(this.#runs.get(node.id) ?? [], { startedUnix, endedUnix, users }));
      }
      this.#last.set(node.id, reading);
    }, "first");
  }

  /** The alert about a restore: gone roots and older ones. */
  occurrenceOf({ node, line, lost }: FoundRestore): Occurrence {
    // A run that began after the restore is of the restored state.
    const began = ({ startedUnix }: Run): boolean => !((startedUnix + 1) * 1_000 > line.atMs);
    const before = this.#runs.get(node.id)?.findLast(began)?.users;
    const now = this.#last.get(node.id);
    const isKnown = before !== undefined && now !== undefined && !before.usersWithheld && !now.usersWithheld;
    const gone = isKnown
      ? [...before.perUserStorage.keys()].filter((user) => !now.perUserStorage.has(user))
      : [];
    const isGone = new Set(gone);
    const differs = (a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): string[] =>
      [...a].flatMap(([user, what]) => (!isGone.has(user) && b.get(user) !== what ? [user] : []));
    // Byte counts miss folders and replaced files.
    const older = isKnown
      ? [...differs(before.perUserStorage, now.perUserStorage), ...differs(inodesOf(before), inodesOf(now))]
      : [];
    const quotas = isKnown ? differs(before.perUserQuota, now.perUserQuota) : [];
    const withTold = (some: readonly string[], told: ReadonlySet<string>): string[] => [
      ...new Set([...some, ...[...told].filter((user) => !isGone.has(user))]),
    ];
    return {
      key: alertKey("node_restored", node.id),
      type: "node_restored",
      level: gone.length > 0 ? "critical" : "warning",
      nodeId: node.id,
      nodeName: node.name,
      detail: {
        backup: line.backup,
        taken_at: Math.floor(line.takenAtMs / 1_000),
        up_to: line.upTo,
        lost_lines: lost.count,
        ...listed("gone", gone),
        ...commandFor(gone, this.#store),
        ...listed("older", withTold(older, lost.changed)),
        ...listed("quotas", withTold(quotas, lost.quotas)),
        ...(isKnown ? {} : { is_partial: 1 }),
      },
    };
  }

  /** Forgets everything. */
  close(): void {
    this.#end();
  }
}

/** The runs that an unfinished check may need: of frequent restarts the first and the newest. */
function withRun(runs: readonly Run[], run: Run): readonly Run[] {
  const recent = runs.filter(({ endedUnix }) => run.endedUnix - endedUnix <= AUDIT_SUSPECT_MS / 1_000);
  return [...recent.slice(0, 1), ...recent.slice(1).slice(-(RUNS_MAX - 2)), run];
}

function inodesOf({ perUserDetail }: Users): ReadonlyMap<string, number | null> {
  return new Map(
    [...perUserDetail].map(([user, { inodeCount, fileCount }]) => [user, inodeCount ?? fileCount]),
  );
}

/** The number of users, and the first of them by name. */
function listed(name: string, users: readonly string[]): Readonly<Record<string, string | number>> {
  if (users.length === 0) return {};
  const named = users.toSorted().slice(0, RESTORE_USERS_NAMED);
  return { [name]: named.join(", "), [`${name}_count`]: users.length };
}

/**
 * The command that gives up the named roots. Names come from nodes: each is one quoted word, and never an
 * option.
 */
function commandFor(gone: readonly string[], store: ConsoleOptions["store"]): { readonly command?: string } {
  const named = gone.toSorted().slice(0, RESTORE_USERS_NAMED);
  const words = named.filter((user) => !user.startsWith("-")).map(shellWord);
  return words.length === 0 ? {} : { command: `grove node lost-root ${words.join(" ")} ${metaFlag(store)}` };
}
