// Planted bugs for the rig of secrets.
import type { PlantedBug } from "#prove/rig.ts";

/** Each leaves a secret somewhere. */
export const canaryBugs: readonly PlantedBug[] = [
  {
    name: "token-in-a-log-line",
    is: "a line of the log says which token a session was opened with",
    rigs: ["canaries"],
    edits: [
      {
        file: "src/fileserver/operations/session-operations.ts",
        from: 'log.info("session_opened", { user: identity.username, session: session.id, address: session.address });',
        to: "process.stderr.write(`session_opened ${identity.username} ${created.token}\\n`);",
      },
    ],
  },
  {
    name: "session-kept-by-its-token",
    is: "the audit log names sessions by their tokens",
    rigs: ["canaries"],
    edits: [
      {
        file: "src/fileserver/operations/session-operations.ts",
        from: "      detail: { session: session.id, address: session.address, device: request.deviceName },",
        to: "      detail: { session: created.token, address: session.address, device: request.deviceName },",
      },
    ],
  },
  {
    name: "core-dumps-on",
    is: "the launcher leaves core dumps as it finds them",
    rigs: ["canaries"],
    edits: [{ file: "grove", from: "ulimit -c 0 2>/dev/null || :", to: ":" }],
  },
];
