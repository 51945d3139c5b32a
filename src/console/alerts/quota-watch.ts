// The rule about quotas: conditions for users near the edge only, so that 100,000 users cost no more than a look each (T1, spec 3.1 rule 3).
import { toJson64 } from "#base/json64.ts";
import { ALERT_THRESHOLDS, METRICS_USERS_LISTED_MAX, QUOTA_ALERT_WARNING_PERCENT } from "#base/limits.ts";
import { quotaPercent } from "#base/quota-share.ts";
import { alertKey } from "./alert-kinds.ts";
import type { Condition } from "./condition.ts";
import type { NodeName } from "./node-rules.ts";

/** What a node tells of its users. */
export interface UserReadings {
  /** Bytes that each user occupies. */
  readonly perUserStorage: ReadonlyMap<string, bigint>;
  readonly perUserQuota: ReadonlyMap<string, bigint>;
  readonly perUserDetail: ReadonlyMap<string, { readonly trashBytes: bigint | null }>;
  /** The users at 95 % of their quota or above, all of them whichever the maps list; null of a node that does not tell. */
  readonly nearQuota: {
    readonly storage: ReadonlyMap<string, bigint>;
    readonly limit: ReadonlyMap<string, bigint>;
  } | null;
  /** True when the node has more users than its maps list. */
  readonly usersTruncated: boolean | null;
  /** True when the node tells of no single user. */
  readonly usersWithheld: boolean;
}

const WARNING = QUOTA_ALERT_WARNING_PERCENT;
const CRITICAL = ALERT_THRESHOLDS.quotaPercent.critical;
const [WARNING_PARTS, CRITICAL_PARTS] = [BigInt(WARNING), BigInt(CRITICAL)];
/** Below this share no exact look is needed. */
const FAR_SHARE = (WARNING - 1) / 100;

/** Where a user's usage stands: warning above 95 %, critical from 100 %, unchanged at exactly 95 %. Exact to the byte. */
export function quotaLevel(usedBytes: bigint, quotaBytes: bigint): "clear" | "hold" | "warning" | "critical" {
  if (usedBytes * 100n >= quotaBytes * CRITICAL_PARTS) return "critical";
  const [used, edge] = [usedBytes * 100n, quotaBytes * WARNING_PARTS];
  return used > edge ? "warning" : used === edge ? "hold" : "clear";
}

/** The node where the metadata store says that a user's root is; undefined when it does not say. */
export type HomeOf = (username: string) => string | undefined;

/** Remembers who was near the edge, so that who no longer is can be told. */
export class QuotaWatch {
  readonly #homeOf: HomeOf;
  /** Users at 95 % or above at the last look, by node. */
  readonly #near = new Map<string, Set<string>>();
  /** The node that a near user is counted on: the home, and where that is not known the first of those that claim the user (M-05). */
  readonly #nodeOf = new Map<string, string>();

  /** Users whose alert was open or muted when the console stopped count as near: they are told of when they no longer are. */
  constructor(
    known: Iterable<{ readonly username: string; readonly nodeId: string }>,
    homeOf: HomeOf = () => undefined,
  ) {
    this.#homeOf = homeOf;
    for (const { username, nodeId } of known) this.#claim(nodeId, username);
  }

  /** The conditions of those users of a node who are near the edge, or were at the last look. */
  conditions(node: NodeName, readings: UserReadings): Condition[] {
    const found = this.#letGo(node);
    if (readings.usersWithheld) return found;
    const seen = new Set<string>();
    const { storage, limit, hasAll } = lookedAt(readings);
    // Not entry by entry: each would be an object, and almost nobody is near.
    storage.forEach((usedBytes, username) => {
      const quotaBytes = limit.get(username);
      if (quotaBytes === undefined || quotaBytes === 0n) return;
      this.#takeOver(node.id, username);
      if (Number(usedBytes) < Number(quotaBytes) * FAR_SHARE) return;
      const level = quotaLevel(usedBytes, quotaBytes);
      if (level === "clear" || !this.#claim(node.id, username)) return;
      seen.add(username);
      found.push(condition(node, username, level, usedBytes, quotaBytes, readings));
    });
    for (const username of this.#near.get(node.id) ?? []) {
      if (seen.has(username)) continue;
      const usedBytes = storage.get(username) ?? readings.perUserStorage.get(username);
      const quotaBytes = limit.get(username) ?? readings.perUserQuota.get(username);
      if (usedBytes !== undefined && quotaBytes !== undefined && quotaBytes > 0n) {
        found.push(condition(node, username, "clear", usedBytes, quotaBytes, readings));
      } else if (usedBytes === undefined && hasAll) {
        // Nobody by that name is near any more, or has a root there.
        found.push({ ...about(node, username), level: "clear" });
      } else continue;
      this.#release(node.id, username);
    }
    return found;
  }

  /** Forgets a node that is gone. */
  forget(nodeId: string): void {
    for (const username of this.#near.get(nodeId) ?? []) this.#release(nodeId, username);
  }

  /** Users whose home is another node do not count here any more, whatever this one says of them. */
  #letGo(node: NodeName): Condition[] {
    const strangers = [...(this.#near.get(node.id) ?? [])].filter((name) => !this.#maySpeak(node.id, name));
    for (const username of strangers) this.#release(node.id, username);
    return strangers.map((username) => ({ ...about(node, username), level: "clear" }));
  }

  /** A near user who is counted elsewhere is counted at home from now on. */
  #takeOver(nodeId: string, username: string): void {
    const claimed = this.#nodeOf.get(username);
    if (claimed === undefined || claimed === nodeId || this.#homeOf(username) !== nodeId) return;
    this.#release(claimed, username);
    this.#claim(nodeId, username);
  }

  #maySpeak(nodeId: string, username: string): boolean {
    const home = this.#homeOf(username);
    return home === undefined || home === nodeId;
  }

  #claim(nodeId: string, username: string): boolean {
    if (!this.#maySpeak(nodeId, username)) return false;
    const claimed = this.#nodeOf.get(username);
    if (claimed !== undefined) return claimed === nodeId;
    this.#nodeOf.set(username, nodeId);
    const near = this.#near.get(nodeId);
    if (near === undefined) this.#near.set(nodeId, new Set([username]));
    else near.add(username);
    return true;
  }

  #release(nodeId: string, username: string): void {
    this.#nodeOf.delete(username);
    const near = this.#near.get(nodeId);
    near?.delete(username);
    if (near?.size === 0) this.#near.delete(nodeId);
  }
}

/** Who is looked at: those whom the node calls near, else all whom it lists; and whether whoever is not there is surely not near. */
function lookedAt({ nearQuota, perUserStorage, perUserQuota, usersTruncated }: UserReadings): {
  readonly storage: ReadonlyMap<string, bigint>;
  readonly limit: ReadonlyMap<string, bigint>;
  readonly hasAll: boolean;
} {
  if (nearQuota === null)
    return { storage: perUserStorage, limit: perUserQuota, hasAll: usersTruncated === false };
  return { ...nearQuota, hasAll: nearQuota.storage.size < METRICS_USERS_LISTED_MAX };
}

function about(node: NodeName, username: string): Omit<Condition, "level"> {
  return {
    key: alertKey("quota_exceeded", username),
    type: "quota_exceeded",
    nodeId: node.id,
    nodeName: node.name,
    username,
  };
}

function condition(
  node: NodeName,
  username: string,
  level: Condition["level"],
  usedBytes: bigint,
  quotaBytes: bigint,
  { perUserDetail }: UserReadings,
): Condition {
  const trashBytes = perUserDetail.get(username)?.trashBytes ?? null;
  return {
    ...about(node, username),
    level,
    value: quotaPercent(usedBytes, quotaBytes),
    threshold: level === "critical" ? CRITICAL : WARNING,
    detail: {
      used_bytes: toJson64(usedBytes),
      quota_bytes: toJson64(quotaBytes),
      ...(trashBytes === null ? {} : { trash_bytes: toJson64(trashBytes) }),
    },
  };
}
