// Tests a reboot whose beginning was not heard, against a real sshd.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { SshServer, SshServers } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { SshConnections } from "./ssh-command.ts";
import { sshOfFile } from "./ssh-site.fixture.ts";
import { runOnTarget } from "./target-run.ts";

let servers: SshServers;
let server: SshServer;
let connections: SshConnections;
const skip = sshOfFile((site) => {
  ({ servers, server, connections } = site);
});

test("a reboot whose first word was lost with the connection is judged by the boot id that it found, not told as done (D7)", {
  skip,
}, async () => {
  const bootIdFile = join(servers.folder, "lost_boot_id");
  writeFileSync(bootIdFile, "first\n");
  const actionId = ulid(systemClock, systemRandom);
  const begun = join(server.home, ".grove-actions", `${actionId}.n1`);
  let spawned = 0;
  const deaf: Pick<SshConnections, "open" | "close"> = {
    close: async () => undefined,
    async open(to, signal) {
      const opened = await connections.open(to, signal);
      if ("reason" in opened) return opened;
      const spawn = (command: string): ReturnType<typeof opened.spawn> => {
        if (++spawned > 1) return opened.spawn(command);
        const child = opened.spawn(`${command} >/dev/null 2>&1`);
        // Cut once it runs there.
        void until(() => existsSync(begun)).then(() => child.kill("SIGKILL"));
        return child;
      };
      return { ...opened, spawn };
    },
  };
  const { host, port, user, hostKey } = server;
  const result = await runOnTarget(
    { connections: deaf as SshConnections, clock: systemClock, secrets: () => [], bootIdFile },
    { id: "n1", host, port, user, hostKey },
    [{ argv: ["sh", "-c", `(sleep 1; echo second >${bootIdFile}) >/dev/null 2>&1 &`] }],
    {
      actionId,
      timeoutMs: 60_000,
      onOutput: () => undefined,
      expectsReboot: { isHealthy: async () => true },
    },
  );
  assert.ok(spawned > 2);
  assert.deepEqual([result.state, result.bootIdBefore, result.bootIdAfter], ["succeeded", "first", "second"]);
});
