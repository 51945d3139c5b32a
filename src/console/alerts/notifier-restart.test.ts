// What a restart of the notifier keeps: queue, sent alerts and mutes; and what it removes (decision D11).
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { type Logger, silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { Condition } from "./condition.ts";
import { NotificationQueue } from "./notification-queue.ts";
import { diskCondition, nodeCondition } from "./notification-service.fixture.ts";
import { openNotifier, settingsFor, webhookFor } from "./notifier.fixture.ts";
import { WebhookReceiver } from "./receivers.fixture.ts";

let folder = "";
let receiver = new WebhookReceiver();
let port = 0;
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  folder = scratchFolder("grove-notices-");
  receiver = new WebhookReceiver();
  port = await receiver.listen();
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await receiver.close();
});

const full: Condition[] = [diskCondition("n1", 90)];
const open: typeof openNotifier = async (...args) => {
  const opened = await openNotifier(...args);
  closing.push(() => opened.notifier.close());
  return opened;
};

test("a restart delivers what waited, in order, and tells nothing again that was told (D11)", async () => {
  receiver.answer = () => 503;
  const first = await open(folder, settingsFor([webhookFor(port)]));
  await first.until(() => first.notifier.view().waiting.length === 1, full);
  await first.until(() => first.notifier.view().waiting.length === 2, [...full, diskCondition("n2", 99)]);
  await first.notifier.close();
  receiver.answer = () => 200;
  receiver.calls.length = 0;
  const both = [...full, diskCondition("n2", 99)];
  const second = await open(folder, settingsFor([webhookFor(port)]), { clock: first.clock });
  await second.until(() => second.notifier.view().counts.delivered === 2, both);
  await second.run(600, both);
  assert.equal(receiver.calls.length, 2);
  assert.deepEqual(
    receiver.calls[0]?.payload.alerts.map(({ labels }) => labels["node_id"]),
    ["n1"],
  );
  assert.deepEqual(
    receiver.calls[1]?.payload.alerts.map(({ labels }) => labels["node_id"]),
    ["n2", "n1"],
  );
});

test("an acknowledgement and a maintenance window outlive a restart (D11, T14)", async () => {
  const first = await open(folder, settingsFor([webhookFor(port)]));
  await first.until(() => receiver.calls.length === 1, full);
  first.notifier.acked("storage_warning:n1");
  const until = first.clock.wallMs() + 600_000;
  first.notifier.openMaintenance({ nodeIds: ["n2"], untilWallMs: until, reason: "restart" });
  await first.notifier.close();
  const second = await open(folder, settingsFor([webhookFor(port)]), { clock: first.clock });
  assert.equal(second.notifier.maintenanceUntil("n2"), until);
  assert.equal(second.notifier.view().alerts[0]?.acked, true);
  await second.run(60, [...full, nodeCondition("node_offline", "n2", "critical")]);
  assert.equal(receiver.calls.length, 1);
});

test("an action's window that a killed console left open ends once its node has answered for 60 s, not at the action's limit (D7, D11)", async () => {
  const first = await open(folder, settingsFor([webhookFor(port)]));
  const until = first.clock.wallMs() + 5 * 3_600_000;
  first.notifier.openMaintenance({ nodeIds: ["n2"], untilWallMs: until, reason: "apt" });
  await first.notifier.close();
  const second = await open(folder, settingsFor([webhookFor(port)]), { clock: first.clock });
  await second.run(70, [nodeCondition("node_offline", "n2", "clear")]);
  assert.equal(second.notifier.maintenanceUntil("n2"), undefined);
  await second.until(() => receiver.calls.length === 1, [nodeCondition("node_offline", "n2", "critical")]);
});

test("what waits for a receiver that is no longer there goes; without any settings it waits for them (D11)", async () => {
  const lines: string[] = [];
  const take = (event: string): void => void lines.push(event);
  const log: Logger = { debug: take, info: take, warn: take, error: take, child: () => log };
  receiver.answer = () => 503;
  const hooks = [webhookFor(port), webhookFor(port, { name: "gone" })];
  const first = await open(folder, settingsFor(hooks));
  await first.until(() => first.notifier.view().waiting.length === 2, full);
  await first.notifier.close();
  const { clock } = first;
  const none = await open(folder, undefined, { clock });
  assert.equal(none.notifier.view().waiting.length, 2);
  await none.notifier.close();
  receiver.answer = () => 200;
  receiver.calls.length = 0;
  const again = await open(folder, settingsFor([webhookFor(port)]), { clock, log });
  assert.deepEqual(
    again.notifier.view().waiting.map((each) => each.receiver),
    ["ops"],
  );
  assert.deepEqual(lines, ["notice_without_receiver"]);
  await again.until(() => again.notifier.view().counts.delivered === 1, full);
  assert.equal(receiver.calls.length, 1);
});

test("a message that was on the disk before the state that tells of it was is made again, not told twice (D11)", async () => {
  const first = await open(folder, settingsFor([webhookFor(port)]));
  await first.until(() => first.notifier.view().counts.delivered === 1, full);
  await first.notifier.close();
  const queue = await NotificationQueue.open({ folder: join(folder, "notice_queue"), log: silentLogger });
  queue.countFrom(1);
  await queue.add([
    {
      receiver: "ops",
      createdWallMs: first.clock.wallMs(),
      notice: { group: { alertname: "storage_warning" }, status: "firing", alerts: [], truncated: 0 },
    },
  ]);
  receiver.calls.length = 0;
  const again = await open(folder, settingsFor([webhookFor(port)]), { clock: first.clock });
  assert.deepEqual(again.notifier.view().waiting, []);
  await again.run(60, full);
  assert.equal(receiver.calls.length, 0);
});

test("a queue whose state was lost is delivered, not thrown away (D11, D24)", async () => {
  receiver.answer = () => 503;
  const first = await open(folder, settingsFor([webhookFor(port)]));
  await first.until(() => first.notifier.view().waiting.length === 1, full);
  await first.notifier.close();
  await rm(join(folder, "notice_state.json"));
  receiver.answer = () => 200;
  const again = await open(folder, settingsFor([webhookFor(port)]), { clock: first.clock });
  await again.until(() => again.notifier.view().counts.delivered === 1);
  assert.equal(again.notifier.view().waiting.length, 0);
});
