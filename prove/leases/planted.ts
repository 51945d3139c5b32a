// Planted bugs of leases.
import type { PlantedBug } from "#prove/rig.ts";

const HOLDER = "src/storage/shared/lease-holder.ts";
const WATCH = "src/storage/shared/lease-watch.ts";
const HELD = "src/storage/engine/held-roots.ts";

/** What the rig must find. */
export const leaseBugs: readonly PlantedBug[] = [
  {
    name: "lease-forgets-sleep",
    is: "a machine's sleep does not count against its lease",
    rigs: ["leases"],
    edits: [
      {
        file: HOLDER,
        from: "return Math.max(steadyMs - this.#renewedAt.steadyMs, bootMs - this.#renewedAt.bootMs);",
        to: "void bootMs;\n    return steadyMs - this.#renewedAt.steadyMs;",
      },
    ],
  },
  {
    name: "taken-over-too-soon",
    is: "roots are taken from a process before its lease has ended",
    rigs: ["leases"],
    edits: [{ file: WATCH, from: "?? askedAtMs) >= leaseMs,", to: "?? askedAtMs) >= leaseMs / 2," }],
  },
  {
    name: "served-before-it-is-fetched",
    is: "a root that was taken over is served before what serving needs has come",
    rigs: ["leases"],
    edits: [
      {
        file: HELD,
        from: "    await this.#deps.taking(roots);\n",
        to: "    void this.#deps.taking(roots).catch(() => undefined);\n",
      },
    ],
  },
];
