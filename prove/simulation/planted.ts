// Planted bugs of a cluster, for the simulation to find.
import type { PlantedBug } from "#prove/rig.ts";

/** The bugs that the simulation must find. */
export const simulationBugs: readonly PlantedBug[] = [
  {
    name: "late-share-overwrites",
    is: "a late message about a share is applied over a newer one",
    rigs: ["simulation"],
    goal: 8,
    edits: [
      {
        file: "src/metaserver/directory/store-commands.ts",
        from: "granted = excluded.granted\n     WHERE excluded.version > grants.version`",
        to: "granted = excluded.granted`",
      },
      {
        file: "src/metaserver/directory/store-commands.ts",
        from: "  if (change.version < root.version) return false;\n",
        to: "",
      },
    ],
  },
  {
    name: "lease-by-wall-clock",
    is: "the MetaServer tells leases by its wall clock",
    rigs: ["simulation"],
    goal: 9,
    edits: [
      {
        file: "src/metaserver/directory/sqlite-store.ts",
        from: "      isLive: (node) => (leases.get(node.fs_id) ?? Number.NEGATIVE_INFINITY) > now.steadyMs,",
        to: "      isLive: (node) => Number(node.last_seen_ms ?? 0) + NODE_LEASE_MS > now.wallMs,",
      },
    ],
  },
  {
    name: "lease-too-long",
    is: "a heartbeat lets a lease run for longer than nodes are told",
    rigs: ["simulation"],
    edits: [
      {
        file: "src/metaserver/directory/sqlite-store.ts",
        from: "      renew: (fsId) => leases.set(fsId, now.steadyMs + NODE_LEASE_MS),",
        to: "      renew: (fsId) => leases.set(fsId, now.steadyMs + 2 * NODE_LEASE_MS),",
      },
    ],
  },
  {
    name: "epoch-not-compared",
    is: "a heartbeat with the epoch of an earlier registration renews the lease, and nobody is fenced",
    rigs: ["simulation"],
    edits: [
      {
        file: "src/metaserver/directory/node-row.ts",
        from: "  if (BigInt(epoch) >= node.epoch) return;",
        to: "  if (BigInt(epoch) >= 0n) return;",
      },
    ],
  },
  {
    name: "late-registration-takes-over",
    is: "a registration that comes late, of a process that is gone, takes the node from the next one: it was so until the simulation found it",
    rigs: ["simulation"],
    goal: 9,
    edits: [
      {
        file: "src/metaserver/directory/node-row.ts",
        from: "  if (knownEpoch === undefined || known.instance_id === instanceId) return undefined;",
        to: "  if (knownEpoch === undefined || knownEpoch >= 0) return undefined;",
      },
    ],
  },
  {
    name: "unknown-node-does-not-register",
    is: "a node that the MetaServer does not know any more goes on with heartbeats and never registers again",
    rigs: ["simulation"],
    goal: 24,
    edits: [
      {
        file: "src/fileserver/control/meta-link.ts",
        from: "    if (!answer.known || answer.sendFull) await this.#register();",
        to: "    if (answer.sendFull) await this.#register();",
      },
    ],
  },
  {
    name: "link-waits-for-a-dead-connection",
    is: "a node's link to the MetaServer has no keepalive: it was so until the simulation found it",
    rigs: ["simulation"],
    goal: 24,
    edits: [
      {
        file: "src/fileserver/process/file-server.ts",
        from: "    keepalive: LINK_KEEPALIVE,\n",
        to: "",
      },
    ],
  },
  {
    name: "client-does-not-register-again",
    is: "a client whose session is gone fails instead of opening another",
    rigs: ["simulation"],
    edits: [
      {
        file: "src/client/connection/cluster.ts",
        from: "      if (SESSION_CODES.includes(failure.code) && session !== undefined && progress.renewals < 2) {",
        to: "      if (SESSION_CODES.includes(failure.code) && session !== undefined && progress.renewals < 0) {",
      },
    ],
  },
  {
    name: "sessions-by-wall-clock",
    is: "the age of a session is told by the wall clock",
    rigs: ["simulation"],
    goal: 9,
    edits: [
      {
        file: "src/security/sessions/session-table.ts",
        from: "    this.#ageClock = new AgeClock(deps.clock);",
        to: "    this.#ageClock = { nowMs: () => deps.clock.wallMs() } as unknown as AgeClock;",
      },
    ],
  },
  {
    name: "drain-not-awaited",
    is: "a node that stops closes its store without waiting for the calls that run",
    rigs: ["simulation"],
    goal: 4,
    edits: [
      {
        file: "src/fileserver/process/file-server.ts",
        from: "    closers.defer(() => drain(graceMs));",
        to: "    closers.defer(() => void drain(graceMs));",
      },
    ],
  },
  {
    name: "retry-without-backoff",
    is: "a client tries again at once, and so does its channel",
    rigs: ["simulation"],
    goal: 4,
    edits: [
      {
        file: "src/client/connection/cluster.ts",
        from: "    const waitMs = Math.min(leftMs, this.#waitMs(progress.attempts));",
        to: "    const waitMs = Math.min(leftMs, 0 * this.#waitMs(progress.attempts));",
      },
      {
        file: "src/wire/grpc/client.ts",
        from: "    const delayMs = baseMs * (1 + jitter * (this.#random() * 2 - 1));",
        to: "    const delayMs = 0 * baseMs * (1 + jitter * (this.#random() * 2 - 1));",
      },
    ],
  },
  {
    name: "switch-leaves-the-root",
    is: "a move switches, and the store keeps the root's place at the source",
    rigs: ["simulation"],
    goal: 4,
    edits: [
      {
        file: "src/metaserver/directory/root-move-commands.ts",
        from: "    move.target,\n    move.owner,\n    move.source,\n",
        to: "    move.source,\n    move.owner,\n    move.source,\n",
      },
    ],
  },
];
