// Tests which files of actions a node keeps, against a real sshd.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { SshServer } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import { REMOTE_HEARD_FILES, REMOTE_UNHEARD_DAYS } from "./remote-script.ts";
import type { SshConnections } from "./ssh-command.ts";
import { sshOfFile } from "./ssh-site.fixture.ts";
import { runOnTarget } from "./target-run.ts";

let server: SshServer;
let connections: SshConnections;
const skip = sshOfFile((site) => {
  ({ server, connections } = site);
});

/** Runs an action that does nothing. */
async function act(): Promise<void> {
  const { host, port, user, hostKey } = server;
  const deps = { connections, clock: systemClock, secrets: () => [] };
  const target = { id: "n1", host, port, user, hostKey };
  const { state } = await runOnTarget(deps, target, [{ argv: ["true"] }], {
    actionId: ulid(systemClock, systemRandom),
    timeoutMs: 60_000,
    onOutput: () => undefined,
  });
  assert.equal(state, "succeeded");
}

test("of actions whose end was heard a node keeps few files", { skip }, async () => {
  for (let i = 0; i < REMOTE_HEARD_FILES + 5; i++) await act();
  const folder = join(server.home, ".grove-actions");
  const names = (): string[] => readdirSync(folder);
  await until(() => names().every((name) => readFileSync(join(folder, name), "utf8") === "heard\n"));
  assert.ok(names().length <= REMOTE_HEARD_FILES);
});

test("files of actions that no console has asked for in a week go too, but for those of shells that run", {
  skip,
}, async () => {
  const folder = join(server.home, ".grove-actions");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  const started = readFileSync(`/proc/${process.pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ")[19];
  const put = (name: string, text: string, days: number): void => {
    const path = join(folder, name);
    writeFileSync(path, text);
    const seconds = systemClock.wallMs() / 1_000 - days * 86_400;
    utimesSync(path, seconds, seconds);
  };
  const old = REMOTE_UNHEARD_DAYS + 2;
  for (let i = 0; i < REMOTE_HEARD_FILES; i++) put(`unheard${i}.n1`, `1 2 ${bootId}\nend - 0\n`, old);
  put("never.n1", "0 0 never\n", old);
  put("cancelled.n1", "1 2 another-boot\n", old);
  put("cancelled.n1.end", "", old);
  put("young.n1", `1 2 ${bootId}\nend - 0\n`, 1);
  put("running.n1", `${process.pid} ${started} ${bootId}\n`, old);
  await act();
  // Those of actions have names in capitals.
  const left = (): string[] => readdirSync(folder).filter((name) => /^[a-z]/.test(name));
  await until(() => left().length <= 2);
  assert.deepEqual(left().toSorted(), ["running.n1", "young.n1"]);
});
