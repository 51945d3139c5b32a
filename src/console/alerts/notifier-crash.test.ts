// Kills at any moment: alerts arrive in order, with duplicates only at kills (decision D11, failure A-10).
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { WebhookReceiver } from "./receivers.fixture.ts";

const CHILD = fileURLToPath(new URL("./notifier-crash.fixture.ts", import.meta.url));
const ALERTS = 40;
const KILLS = 3;

async function start(folder: string, port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [CHILD, folder, `${port}`, `${ALERTS}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (child.stdout === null) throw new TypeError("no standard output");
  await once(child.stdout, "data");
  return child;
}

test(`${ALERTS} alerts over ${KILLS} kills: none lost, in order, at most one twice for each kill`, {
  timeout: 110_000,
}, async () => {
  const folder = scratchFolder("grove-crash-");
  const receiver = new WebhookReceiver();
  const port = await receiver.listen();
  // Every seventh call is refused for now, so that kills also meet messages between two tries.
  receiver.answer = () => (receiver.calls.length % 7 === 0 ? 503 : 200);
  const taken = (): string[] =>
    receiver.calls
      .filter((_, at) => (at + 1) % 7 !== 0)
      .flatMap(({ payload }) => payload.alerts.map(({ status, labels }) => `${status} ${labels["node_id"]}`));
  let child = await start(folder, port);
  try {
    for (let kill = 1; kill <= KILLS; kill++) {
      const before = receiver.calls.length;
      const after = 1 + Math.floor(Math.random() * 9);
      while (receiver.calls.length < before + after && new Set(taken()).size < ALERTS) {
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      child.kill("SIGKILL");
      await once(child, "exit");
      child = await start(folder, port);
    }
    while (new Set(taken()).size < ALERTS) await new Promise((resolve) => setTimeout(resolve, 10));
    const all = taken();
    const first = [...new Set(all)];
    assert.ok(all.every((line) => line.startsWith("firing")));
    assert.deepEqual(first, first.toSorted(), "in order");
    assert.ok(all.length <= ALERTS + KILLS, `${all.length - ALERTS} came twice`);
  } finally {
    child.kill("SIGKILL");
    await receiver.close();
  }
});
