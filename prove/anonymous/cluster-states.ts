// Draws pairs of cluster states that differ only in users: one machine part for both, a users' part for each.

import { nodeReading } from "#console/cluster/cluster-state.fixture.ts";
import type { NodeReading, SecurityEvent, UserDetail } from "#console/cluster/cluster-state.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";

/** What a node reports of itself, the same in both states; undefined for a poll without an answer. */
export type MachinePart = (Pick<NodeReading, MachineField> & { readonly faults: Faults }) | undefined;

/** Faults of the machine or its service. The number of files and bytes concerned is a matter of users. */
export interface Faults {
  readonly isDamaged: boolean;
  readonly isDrifting: boolean;
  /** Fields about the machine that are not valid. */
  readonly invalidFields: readonly string[];
}

/** What a node reports of its users, in one of the states. */
export type UsersPart = Pick<NodeReading, UsersField>;

type UsersField =
  | "usersAssignedCount"
  | "activeUsers"
  | "trashBytes"
  | "stagingBytes"
  | "quotaDriftBytes"
  | "driftedCounters"
  | "damagedFileCount"
  | "damageFoundTotal"
  | "refusedTotal"
  | "securityEventsTotal"
  | "usersTruncated"
  | "usersWithheld"
  | "perUserStorage"
  | "perUserQuota"
  | "perUserDetail"
  | "invalidFields";
type MachineField = Exclude<keyof NodeReading, UsersField>;

const GIB = 2n ** 30n;
const NAMES = ["alice", "bob", "carol", "dave", "erin", "mallory", "n1", "critical", "total"];
const DOMAINS = ["example.com", "people.example", "xn--bcher-kva.example"];

/** Changes of one node's machine over time. */
export class Machine {
  readonly #random: SeededRandom;
  #writeOps = 1_000n;
  #errors = 0n;
  #usedPercent = 40;
  #bootId = 1;
  #uptimeS = 3_600;
  /** Seconds until it answers again. */
  #silentS = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** Returns the node's report after so many more seconds. */
  next(seconds: number): MachinePart {
    const random = this.#random;
    if (random.chance(0.08)) this.#silentS = random.between(5, 90);
    this.#silentS -= seconds;
    if (this.#silentS > 0) return undefined;
    if (random.chance(0.03)) {
      this.#bootId++;
      this.#uptimeS = 0;
    }
    this.#uptimeS += seconds;
    this.#writeOps += BigInt(random.below(500));
    if (random.chance(0.2)) this.#errors += BigInt(random.below(60));
    this.#usedPercent = Math.min(99, Math.max(1, this.#usedPercent + random.between(-6, 7)));
    const used = (1_000n * GIB * BigInt(this.#usedPercent)) / 100n;
    const faults: Faults = {
      isDamaged: random.chance(0.1),
      isDrifting: random.chance(0.1),
      invalidFields: random.chance(0.05) ? ["load_avg_1m", "chunk_count"].slice(random.below(2)) : [],
    };
    const reading = nodeReading({
      diskUsedBytes: used,
      diskFreeBytes: 1_000n * GIB - used,
      diskUsagePercent: this.#usedPercent,
      cpuTempCelsius: random.chance(0.1) ? null : random.between(30, 99),
      cpuUsagePercent: random.below(101),
      activeConnections: random.below(50),
      writeOpsTotal: this.#writeOps,
      bytesWrittenTotal: this.#writeOps * 4_096n,
      errorsTotal: this.#errors,
      bootId: `6f9e3c3e-0000-4000-8000-00000000000${this.#bootId % 10}`,
      uptimeSeconds: this.#uptimeS,
      certDaysLeft: random.pick([80, 80, 80, 13, 2, null]),
      clockSkewMs: random.pick([3, 3, 3, 9_000]),
      storageFailed: random.chance(0.03),
      authMock: random.chance(0.25),
    });
    return { ...reading, faults };
  }
}

/** Draws some users, or none, in any state. */
export function someUsers(random: SeededRandom, faults: Faults): UsersPart {
  const storage = new Map<string, bigint>();
  const quota = new Map<string, bigint>();
  const detail = new Map<string, UserDetail>();
  const isWithheld = random.chance(0.05);
  const count = isWithheld || random.chance(0.1) ? 0 : random.below(8);
  for (let at = 0; at < count; at++) {
    const name = `${random.pick(NAMES)}${random.below(4)}@${random.pick(DOMAINS)}`;
    const quotaBytes = BigInt(random.between(1, 64)) * GIB;
    const usedBytes = (quotaBytes * BigInt(random.pick([0, 10, 50, 94, 95, 96, 99, 100, 130]))) / 100n;
    storage.set(name, usedBytes);
    quota.set(name, quotaBytes);
    detail.set(name, {
      liveBytes: usedBytes,
      trashBytes: 0n,
      stagingBytes: 0n,
      fileCount: random.below(1_000),
      inodeCount: random.below(2_000),
      inodeLimit: 10_000_000,
      inodeLimitExplicit: random.chance(0.5),
      lastActiveUnix: random.chance(0.2) ? null : 1_789_990_000 + random.below(10_000),
      quotaExplicit: random.chance(0.5),
      trashExpiresUnix: random.chance(0.5) ? 1_790_000_000 : null,
    });
  }
  return {
    usersAssignedCount: random.chance(0.05) ? null : count,
    activeUsers: random.below(count + 1),
    trashBytes: BigInt(random.below(1_000_000)),
    stagingBytes: BigInt(random.below(1_000_000)),
    driftedCounters: faults.isDrifting ? random.between(1, 5) : 0,
    // Counters of files and inodes may be off without a byte.
    quotaDriftBytes: faults.isDrifting ? BigInt(random.pick([-1, 0, 1]) * random.between(1, 500)) : 0n,
    damagedFileCount: faults.isDamaged ? random.between(1, 5) : 0,
    damageFoundTotal: random.below(5),
    refusedTotal: BigInt(random.below(1_000)),
    securityEventsTotal: random.chance(0.5) ? null : random.below(100),
    usersTruncated: random.chance(0.05),
    usersWithheld: isWithheld,
    perUserStorage: storage,
    perUserQuota: quota,
    perUserDetail: detail,
    invalidFields: [...faults.invalidFields, ...(random.chance(0.05) ? ["per_user_storage"] : [])],
  };
}

/** Security events that concern users or their tokens. */
export function someEvents(random: SeededRandom, wallMs: number): SecurityEvent[] {
  if (!random.chance(0.2)) return [];
  const type = random.pick(["ip_mismatch", "mock_token", "admin_hash_failed"] as const);
  return [
    {
      id: `01J${random.below(1e9).toString().padStart(23, "0")}`,
      ts: Math.floor(wallMs / 1_000),
      type,
      fatal: type === "mock_token",
      username: type === "ip_mismatch" ? `${random.pick(NAMES)}1@${random.pick(DOMAINS)}` : undefined,
      ipBound: "192.0.2.1",
      ipSeen: `198.51.100.${random.below(256)}`,
      count: random.between(1, 9),
    },
  ];
}
