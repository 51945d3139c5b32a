// The pure rules that `npm run mutants` mutates, their tests, and the equivalent mutants.

/** Tests by rule file; fast ones, since each mutant runs them. */
export const TARGETS: Readonly<Record<string, readonly string[]>> = {
  "src/quota/headroom.ts": ["src/quota/headroom.test.ts"],
  "src/quota/reserve.ts": ["src/quota/reserve.test.ts"],
  "src/base/refusal-texts.ts": ["src/base/refusal-texts.test.ts"],
  "src/quota/ledger.ts": ["src/quota/ledger.test.ts", "src/quota/inode-claims.test.ts"],
  "src/security/policy/decide.ts": ["src/security/policy/decide.test.ts"],
  "src/security/sessions/address.ts": ["src/security/sessions/address.test.ts"],
  "src/security/sessions/age-clock.ts": ["src/security/sessions/age-clock.test.ts"],
  "src/security/sessions/session-table.ts": [
    "src/security/sessions/session-table.test.ts",
    "src/security/sessions/session-model.test.ts",
  ],
  "src/console/alerts/alert-kinds.ts": [
    "src/console/alerts/alert-state-machine.test.ts",
    "src/console/alerts/hidden-facts.test.ts",
  ],
  "src/console/alerts/alert-visibility.ts": [
    "src/console/alerts/alert-texts.test.ts",
    "src/console/alerts/hidden-facts.test.ts",
  ],
  "src/console/alerts/alert-state-machine.ts": [
    "src/console/alerts/alert-state-machine.test.ts",
    "src/console/alerts/hidden-facts.test.ts",
  ],
  "src/console/alerts/alert-list.ts": [
    "src/console/alerts/alert-list.test.ts",
    "src/console/alerts/hidden-facts.test.ts",
  ],
  "src/console/alerts/resolved-alerts.ts": ["src/console/alerts/resolved-alerts.test.ts"],
  "src/console/alerts/node-rules.ts": ["src/console/alerts/rules.test.ts"],
  "src/console/alerts/quota-rule.ts": ["src/console/alerts/rules.test.ts"],
  "src/console/alerts/restart-rule.ts": ["src/console/alerts/rules.test.ts"],
  "src/console/alerts/security-rule.ts": [
    "src/console/alerts/rules.test.ts",
    "src/console/alerts/hidden-facts.test.ts",
  ],
  "src/console/alerts/maintenance-windows.ts": ["src/console/alerts/maintenance-windows.test.ts"],
  "src/console/alerts/notification-state.ts": ["src/console/alerts/notification-state.test.ts"],
  "src/console/alerts/tracked-alert.ts": [
    "src/console/alerts/notification-service.test.ts",
    "src/console/alerts/notification-service-restart.test.ts",
    "src/console/alerts/notification-walk.test.ts",
  ],
  "src/console/alerts/notification-routing.ts": ["src/console/alerts/notification-routing.test.ts"],
  "src/console/alerts/safe-pattern.ts": ["src/console/alerts/safe-pattern.test.ts"],
  "src/storage/chunks/chunk-names.ts": ["src/storage/chunks/chunk-names.test.ts"],
  "src/storage/chunks/chunk-pins.ts": ["src/storage/chunks/chunk-pins.test.ts"],
  "src/storage/metadata/free-name.ts": ["src/storage/metadata/free-name.test.ts"],
  "src/storage/contract/inode.ts": ["src/storage/contract/inode.test.ts"],
  "src/storage/chunks/list-checksum.ts": ["src/storage/chunks/content-checksums.test.ts"],
  "src/storage/chunks/content-checksums.ts": ["src/storage/chunks/content-checksums.test.ts"],
  "src/storage/metadata/page-token.ts": ["src/storage/metadata/page-token.test.ts"],
  "src/storage/scrub/pacer.ts": ["src/storage/scrub/pacer.test.ts"],
  "src/storage/chunks/fair-slots.ts": ["src/storage/chunks/fair-slots.test.ts"],
  "src/storage/chunks/upload-budget.ts": ["src/storage/chunks/upload-budget.test.ts"],
  "src/storage/chunks/backup-layout.ts": ["src/storage/chunks/backup-layout.test.ts"],
  "src/base/fair-queue.ts": ["src/base/fair-queue.test.ts"],
  "src/base/crc32-combine.ts": ["src/base/crc32-combine.test.ts"],
  "src/base/names.ts": ["src/base/names.test.ts"],
};

/** Mutants without an observable difference. */
interface Equivalent {
  readonly reason: string;
  /** By file: the changes, as `npm run mutants` prints them after the line. */
  readonly mutants: Readonly<Record<string, readonly string[]>>;
}

export const EQUIVALENT: readonly Equivalent[] = [
  {
    reason: "where the two are equal, both ways give the same",
    mutants: {
      "src/quota/headroom.ts": [
        "return quotaBytes < usedBytes ? 0n : quotaBytes - usedBytes; → return quotaBytes <= usedBytes ? 0n : quotaBytes - usedBytes;",
      ],
      "src/quota/reserve.ts": [
        "return disk.freeBytes > takenBytes ? disk.freeBytes - takenBytes : 0n; → return disk.freeBytes >= takenBytes ? disk.freeBytes - takenBytes : 0n;",
      ],
      "src/quota/ledger.ts": [
        "const writtenBytes = diskBytes > bytes ? diskBytes : bytes; → const writtenBytes = diskBytes >= bytes ? diskBytes : bytes;",
        "const written = BigInt(bytes) < this.#promisedBytes ? BigInt(bytes) : this.#promisedBytes; → const written = BigInt(bytes) <= this.#promisedBytes ? BigInt(bytes) : this.#promisedBytes;",
        "if (bytes <= 0n) return; → if (bytes < 0n) return;",
        "const moved = bytes < this.#reservedBytes ? bytes : this.#reservedBytes; → const moved = bytes <= this.#reservedBytes ? bytes : this.#reservedBytes;",
      ],
      "src/console/alerts/maintenance-windows.ts": [
        "if (nodes.has(nodeId) && untilWallMs > (latest ?? 0)) latest = untilWallMs; → if (nodes.has(nodeId) && untilWallMs >= (latest ?? 0)) latest = untilWallMs;",
      ],
      "src/security/sessions/session-table.ts": [
        "if (latest === undefined || entry.lastUsedWallMs > latest) latest = entry.lastUsedWallMs; → if (latest === undefined || entry.lastUsedWallMs >= latest) latest = entry.lastUsedWallMs;",
      ],
    },
  },
  {
    reason: "one byte is no whole number of gibibytes either",
    mutants: {
      "src/base/refusal-texts.ts": [
        "return reserveBytes > 0n && reserveBytes % GIB === 0n → return reserveBytes > 1n && reserveBytes % GIB === 0n",
      ],
    },
  },
  {
    reason: "a machine that begins empty has nothing whose age is counted from then",
    mutants: {
      "src/console/alerts/alert-state-machine.ts": [
        "constructor(state: AlertMachineState = { alerts: [], muted: [] }, at: Moment = { wallMs: 0, steadyMs: 0 }) { → constructor(state: AlertMachineState = { alerts: [], muted: [] }, at: Moment = { wallMs: 1, steadyMs: 0 }) {",
        "constructor(state: AlertMachineState = { alerts: [], muted: [] }, at: Moment = { wallMs: 0, steadyMs: 0 }) { → constructor(state: AlertMachineState = { alerts: [], muted: [] }, at: Moment = { wallMs: 0, steadyMs: 1 }) {",
      ],
    },
  },
  {
    reason: "no moment is within a millisecond of 1970",
    mutants: {
      "src/console/alerts/maintenance-windows.ts": [
        "if (nodes.has(nodeId) && untilWallMs > (latest ?? 0)) latest = untilWallMs; → if (nodes.has(nodeId) && untilWallMs > (latest ?? 1)) latest = untilWallMs;",
      ],
      "src/security/sessions/session-table.ts": [
        "this.#lastActive.set(username, Math.max(entry.lastUsedWallMs, this.#lastActive.get(username) ?? 0)); → this.#lastActive.set(username, Math.max(entry.lastUsedWallMs, this.#lastActive.get(username) ?? 1));",
      ],
    },
  },
  {
    reason: "it is forgotten only to give its memory back, which no answer tells",
    mutants: {
      "src/console/alerts/alert-state-machine.ts": [
        "this.#lastSteadyMs.delete(key); → ;",
        "if (count === 0) this.#userAlerts.delete(nodeId); → if (false) this.#userAlerts.delete(nodeId);",
      ],
      "src/console/alerts/quota-rule.ts": [
        "if (near?.size === 0) this.#near.delete(nodeId); → if (false) this.#near.delete(nodeId);",
        "if (near?.size === 0) this.#near.delete(nodeId); → if (near?.size === 0) ;",
      ],
      "src/security/sessions/session-table.ts": [
        "if (left.length === 0) this.#byUser.delete(username); → if (false) this.#byUser.delete(username);",
      ],
    },
  },
  {
    reason: "whoever has none is below every limit that lets anybody in",
    mutants: {
      "src/console/alerts/alert-state-machine.ts": [
        '(this.#userAlerts.get(nodeId ?? "") ?? 0) < USER_ALERTS_PER_NODE_MAX → (this.#userAlerts.get(nodeId ?? "") ?? 1) < USER_ALERTS_PER_NODE_MAX',
      ],
      "src/security/sessions/session-table.ts": [
        "const own = this.#byUser.get(username)?.length ?? 0; → const own = this.#byUser.get(username)?.length ?? 1;",
      ],
    },
  },
  {
    reason:
      "what has not the form of a token is the token of no session: the quick answer is the one that it gets anyway",
    mutants: {
      "src/security/sessions/session-table.ts": [
        "if (!TOKEN_FORM.test(token)) throw unknownSession(); → if (false) throw unknownSession();",
      ],
    },
  },
  {
    reason: "a sweep that came too early has only ended what was over",
    mutants: {
      "src/security/sessions/session-table.ts": [
        "if (openAfterwards() > this.#limits.global) this.sweep(); → if (openAfterwards() >= this.#limits.global) this.sweep();",
      ],
    },
  },
  {
    reason: "the quick way and the long one find the same",
    mutants: {
      "src/console/alerts/quota-rule.ts": [
        "if (Number(usedBytes) < Number(quotaBytes) * FAR_SHARE) return; → if (Number(usedBytes) <= Number(quotaBytes) * FAR_SHARE) return;",
        "if (Number(usedBytes) < Number(quotaBytes) * FAR_SHARE) return; → if (false) return;",
      ],
      "src/base/crc32-combine.ts": [
        "if (known !== undefined) return known; → if (false) return known;",
        "if (secondLength === 0) return first; → if (false) return first;",
        "if (first === 0) return second; → if (false) return second;",
        "if (difference === 0) return whole; → if (false) return whole;",
      ],
      "src/base/names.ts": [
        "if (path.length * 3 > PATH_MAX_BYTES && Buffer.byteLength(path) > PATH_MAX_BYTES) { → if (path.length * 3 >= PATH_MAX_BYTES && Buffer.byteLength(path) > PATH_MAX_BYTES) {",
      ],
      "src/storage/chunks/chunk-pins.ts": [
        "if (positions[position] === position) return chunkIds[position]; → if (false) return chunkIds[position];",
      ],
      "src/storage/metadata/free-name.ts": [
        "let taken = free === 2 ? 1 : free / 2; → let taken = free !== 2 ? 1 : free / 2;",
      ],
      "src/storage/contract/inode.ts": [
        "if (id < 2 ** 31) return id.toString(36); → if (id <= 2 ** 31) return id.toString(36);",
      ],
    },
  },
  {
    reason: "the default is never taken: the value is always there",
    mutants: {
      "src/base/crc32-combine.ts": [
        "const last = powers[n - 1] ?? 0; → const last = powers[n - 1] ?? 1;",
        "if (rest % 2 === 1) operator = multiply(POWERS[n] ?? 0, operator); → if (rest % 2 === 1) operator = multiply(POWERS[n] ?? 1, operator);",
      ],
      "src/base/names.ts": [
        'const code = (letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0"); → const code = (letter.codePointAt(0) ?? 1).toString(16).toUpperCase().padStart(4, "0");',
      ],
      "src/storage/chunks/chunk-pins.ts": [
        "const count = (this.#counts.get(id) ?? 0) - 1; → const count = (this.#counts.get(id) ?? 1) - 1;",
      ],
      "src/console/alerts/alert-state-machine.ts": [
        "this.#raises.set(alert.key, Math.max(alert.raisedCount, this.#raises.get(alert.key) ?? 0)); → this.#raises.set(alert.key, Math.max(alert.raisedCount, this.#raises.get(alert.key) ?? 1));",
      ],
    },
  },
  {
    reason: "the two queues have the same rules: it does not matter which is called which",
    mutants: {
      "src/console/alerts/resolved-alerts.ts": [
        "const queue = isPublic(alert) ? this.#queues.shown : this.#queues.hidden; → const queue = !(isPublic(alert)) ? this.#queues.shown : this.#queues.hidden;",
      ],
    },
  },
  {
    reason:
      "it is set before it is looked at: steps are linked, there are ten failures when there is something to tell, an alert begins before it ends",
    mutants: {
      "src/console/alerts/security-rule.ts": ["#hasNews = false; → #hasNews = true;"],
      "src/console/alerts/tracked-alert.ts": [
        "const nothing = { told: undefined, isAcked: false, startsAtMs: 0, endsAtMs: 0 }; → const nothing = { told: undefined, isAcked: false, startsAtMs: 1, endsAtMs: 0 };",
        "const nothing = { told: undefined, isAcked: false, startsAtMs: 0, endsAtMs: 0 }; → const nothing = { told: undefined, isAcked: false, startsAtMs: 0, endsAtMs: 1 };",
      ],
    },
  },
  {
    reason: "what is remembered of lengths saves time, and forgotten it saves memory: no answer tells",
    mutants: {
      "src/base/crc32-combine.ts": [
        "if (operators.size >= REMEMBERED_LENGTHS) operators.clear(); → if (!(operators.size >= REMEMBERED_LENGTHS)) operators.clear();",
        "if (operators.size >= REMEMBERED_LENGTHS) operators.clear(); → if (false) operators.clear();",
        "if (operators.size >= REMEMBERED_LENGTHS) operators.clear(); → if (operators.size > REMEMBERED_LENGTHS) operators.clear();",
        "if (operators.size >= REMEMBERED_LENGTHS) operators.clear(); → if (operators.size >= REMEMBERED_LENGTHS) ;",
        "operators.set(length, operator); → ;",
      ],
    },
  },
  {
    reason: "one power more than any length needs",
    mutants: {
      "src/base/crc32-combine.ts": ["for (let n = 1; n < 56; n++) { → for (let n = 1; n <= 56; n++) {"],
    },
  },
  {
    reason: "the checksum of nothing takes any length before it, and messages are begun before they end",
    mutants: {
      "src/storage/chunks/content-checksums.ts": [
        "#messageCrc = 0; → #messageCrc = 1;",
        "#segmentLength = 0; → #segmentLength = 1;",
      ],
    },
  },
  {
    reason: "two levels that are equal in rank are one level",
    mutants: {
      "src/console/alerts/alert-state-machine.ts": [
        "const severity = RANKS[level] > RANKS[open.severity] ? level : open.severity; → const severity = RANKS[level] >= RANKS[open.severity] ? level : open.severity;",
        "const base = RANKS[severity] > RANKS[open.severity] ? unacked : open; → const base = RANKS[severity] >= RANKS[open.severity] ? unacked : open;",
      ],
    },
  },
];
