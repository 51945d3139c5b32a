// A notifier on a real folder with a manual clock: rounds every 5 s, and waits for real sockets and disks.
import { setTimeout as sleep } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import type { Condition } from "./condition.ts";
import type { NotificationSettings, ReceiverSettings } from "./notification-settings.ts";
import { Notifier } from "./notifier.ts";

/** Settings without delays, so that tests need not wait. */
export function settingsFor(
  receivers: readonly ReceiverSettings[],
  more: Partial<NotificationSettings> = {},
): NotificationSettings {
  return {
    receivers,
    quotaUserReceiver: undefined,
    consoleUrl: "https://console.example.net/",
    groupBy: ["alertname"],
    groupMs: 0,
    repeatMs: 4 * 3_600_000,
    ...more,
  };
}

/** A webhook on this machine. */
export function webhookFor(
  port: number,
  more: Partial<ReceiverSettings & { kind: "webhook" }> = {},
): ReceiverSettings {
  return {
    kind: "webhook",
    name: "ops",
    minSeverity: "warning",
    url: new URL(`http://127.0.0.1:${port}/hook`),
    signingSecret: undefined,
    bearerToken: undefined,
    ca: undefined,
    ...more,
  };
}

/** A notifier and its clock. */
export interface NotifierUnderTest {
  readonly notifier: Notifier;
  readonly clock: ManualClock;
  /** Lets seconds pass, with the same conditions in every round. */
  run(seconds: number, conditions: readonly Condition[]): Promise<void>;
  /** Lets time pass, a second at a time, until `holds` is true; fails after ten real seconds. */
  until(holds: () => boolean, conditions?: readonly Condition[]): Promise<void>;
}

/** Opens a notifier in a folder. */
export async function openNotifier(
  dataFolder: string,
  settings: NotificationSettings | undefined,
  options: { clock?: ManualClock; log?: Logger } = {},
): Promise<NotifierUnderTest> {
  const clock = options.clock ?? new ManualClock();
  const log = options.log ?? silentLogger;
  const notifier = await Notifier.open({ dataFolder, clock, settings, log, random: systemRandom });
  let passedMs = 0;
  const second = async (conditions: readonly Condition[]): Promise<void> => {
    if (passedMs % POLL_INTERVAL_MS === 0) {
      notifier.observe(conditions, { wallMs: clock.wallMs(), steadyMs: clock.steadyMs() });
    }
    passedMs += 1_000;
    clock.advance(1_000);
    await sleep(0);
  };
  return {
    notifier,
    clock,
    async run(seconds, conditions) {
      for (let passed = 0; passed < seconds; passed++) await second(conditions);
    },
    async until(holds, conditions = []) {
      const deadlineMs = performance.now() + 10_000;
      while (!holds()) {
        if (performance.now() > deadlineMs) throw new Error("it never came");
        await second(conditions);
        await sleep(2);
      }
    },
  };
}
