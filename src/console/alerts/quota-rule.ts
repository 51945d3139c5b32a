// The rule for quotas: conditions only near the limit, so that 100,000 users are cheap (T1, spec 3.1 rule 3).
import { toJson64 } from "#base/json64.ts";
import { ALERT_THRESHOLDS, METRICS_USERS_LISTED_MAX, QUOTA_ALERT_WARNING_PERCENT } from "#base/limits.ts";
import { quotaPercent } from "#base/usage-level.ts";
import { alertKey } from "./alert-kinds.ts";
import type { Condition } from "./condition.ts";
import type { NodeName } from "./node-rules.ts";

/** A node's data about its users. */
export interface UserReadings {
  /** Bytes that each user occupies. */
  readonly perUserStorage: ReadonlyMap<string, bigint>;
  readonly perUserQuota: ReadonlyMap<string, bigint>;
  readonly perUserDetail: ReadonlyMap<string, { readonly trashBytes: bigint | null }>;
  /** All users at 95 % of their quota or above, beyond the maps' limit; null from nodes without the list. */
  readonly nearQuota: {
    readonly storage: ReadonlyMap<string, bigint>;
    readonly limit: ReadonlyMap<string, bigint>;
  } | null;
  /** True when the node has more users than its maps list. */
  readonly usersTruncated: boolean | null;
  /** True when the node lists no users. */
  readonly usersWithheld: boolean;
}

const WARNING = QUOTA_ALERT_WARNING_PERCENT;
const CRITICAL = ALERT_THRESHOLDS.quotaPercent.critical;
const [WARNING_PARTS, CRITICAL_PARTS] = [BigInt(WARNING), BigInt(CRITICAL)];
/** Below this share no exact comparison is needed. */
const FAR_SHARE = (WARNING - 1) / 100;

/** A user's level: warning above 95 %, critical from 100 %, unchanged at 95 %. Exact to the byte. */
export function quotaLevel(usedBytes: bigint, quotaBytes: bigint): "clear" | "hold" | "warning" | "critical" {
  if (usedBytes * 100n >= quotaBytes * CRITICAL_PARTS) return "critical";
  const [used, edge] = [usedBytes * 100n, quotaBytes * WARNING_PARTS];
  return used > edge ? "warning" : used === edge ? "hold" : "clear";
}

/** The home node of a user's root by the metadata store; undefined when unknown. */
export type HomeOf = (username: string) => string | undefined;

/** Remembers users near their limit, to report when they no longer are. */
export class QuotaRule {
  readonly #homeOf: HomeOf;
  /** Users at 95 % or above in the last evaluation, by node. */
  readonly #near = new Map<string, Set<string>>();
  /** The node that counts a near user: the home, or while that is unknown the first to report it (M-05). */
  readonly #nodeOf = new Map<string, string>();
  /** Near users whose node has been their home: where another is by now, their root has moved there. */
  readonly #atHome = new Set<string>();

  /** Users with an open or muted alert from before a restart count as near, so that its end is reported. */
  constructor(
    known: Iterable<{ readonly username: string; readonly nodeId: string }>,
    homeOf: HomeOf = () => undefined,
  ) {
    this.#homeOf = homeOf;
    for (const { username, nodeId } of known) this.#claim(nodeId, username);
  }

  /** The conditions of a node's users who are near their limit, or were in the last evaluation. */
  conditions(node: NodeName, readings: UserReadings): Condition[] {
    const found = this.#letGo(node);
    if (readings.usersWithheld) return found;
    const seen = new Set<string>();
    const { storage, limit, hasAll } = lookedAt(readings);
    // Not entry by entry: each would be an object, and few users are near.
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
        // No user of that name is near, or the user's root is gone.
        found.push({ ...about(node, username), level: "clear" });
      } else continue;
      this.#release(node.id, username);
    }
    return found;
  }

  /** Forgets a removed node. */
  forget(nodeId: string): void {
    for (const username of this.#near.get(nodeId) ?? []) this.#release(nodeId, username);
  }

  /**
   * Drops users whose home is another node, whatever this one reports of them. Of those whose root has moved
   * the new home's next answer tells.
   */
  #letGo(node: NodeName): Condition[] {
    const strangers = [...(this.#near.get(node.id) ?? [])].filter((name) => !this.#maySpeak(node.id, name));
    const moved = new Set(strangers.filter((name) => this.#atHome.has(name)));
    for (const username of strangers) this.#release(node.id, username);
    for (const username of moved) this.#claim(this.#homeOf(username) ?? node.id, username);
    return strangers
      .filter((username) => !moved.has(username))
      .map((username) => ({ ...about(node, username), level: "clear" }));
  }

  /** Moves a near user who is counted elsewhere to the home node. */
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
    if (claimed !== undefined && claimed !== nodeId) return false;
    if (this.#homeOf(username) === nodeId) this.#atHome.add(username);
    if (claimed === nodeId) return true;
    this.#nodeOf.set(username, nodeId);
    const near = this.#near.get(nodeId);
    if (near === undefined) this.#near.set(nodeId, new Set([username]));
    else near.add(username);
    return true;
  }

  #release(nodeId: string, username: string): void {
    this.#nodeOf.delete(username);
    this.#atHome.delete(username);
    const near = this.#near.get(nodeId);
    near?.delete(username);
    if (near?.size === 0) this.#near.delete(nodeId);
  }
}

/**
 * Selects the users to compare: the node's near users, else all listed ones; `hasAll` means that users not
 * listed are not near.
 */
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
