// Planted bugs of the session table.
import type { PlantedBug } from "#prove/rig.ts";

const TABLE = "src/security/sessions/session-table.ts";

/** What the sessions rig must find. */
export const sessionBugs: readonly PlantedBug[] = [
  {
    name: "evicts-newest-session",
    is: "the sixth session of a user ends the newest one instead of the oldest",
    rigs: ["sessions"],
    edits: [
      {
        file: TABLE,
        from: "const oldest = evicts ? this.#byUser.get(username)?.[0] : undefined;",
        to: "const oldest = evicts ? this.#byUser.get(username)?.at(-1) : undefined;",
      },
    ],
  },
  {
    name: "idle-by-wall-clock",
    is: "idle time is measured on the wall clock",
    rigs: ["sessions"],
    edits: [
      {
        file: TABLE,
        from: "  check(token: string | undefined, address: string): Session {\n",
        to: '  check(token: string | undefined, address: string): Session {\n    const known = token === undefined ? undefined : this.#byHash.get(hashOf(token));\n    if (known !== undefined && this.#clock.wallMs() - known.lastUsedWallMs >= this.#limits.idleTimeoutMs) this.#remove(known, "SESSION_IDLE");\n',
      },
    ],
  },
  {
    name: "sleep-does-not-age",
    is: "sessions do not age while the machine sleeps",
    rigs: ["sessions"],
    edits: [
      {
        file: "src/security/sessions/age-clock.ts",
        from: "    return steadyMs + this.#asleepMs;",
        to: "    return steadyMs;",
      },
    ],
  },
  {
    name: "table-takes-one-too-many",
    is: "the table of sessions takes one session more than its limit",
    rigs: ["sessions"],
    edits: [
      {
        file: TABLE,
        from: "    if (openAfterwards() > this.#limits.global) {\n",
        to: "    if (this.#byHash.size > this.#limits.global) {\n",
      },
    ],
  },
];
