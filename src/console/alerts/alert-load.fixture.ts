// A process that raises and resolves alerts without end and prints each event's id; a test kills it.
import { writeSync } from "node:fs";
import { type Clock, systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { AlertStore, momentOf } from "./alert-store.ts";
import { gradeOf } from "./node-rules.ts";

/** Writes without delay, so that the test sees more writes. */
const clock: Clock = {
  ...systemClock,
  after: (_delayMs, callback) => {
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  },
};
const store = await AlertStore.open({ folder: process.argv[2] ?? "", clock, log: silentLogger });
store.onEvent(({ alert }) => writeSync(1, `${alert.id}\n`));
for (let i = 0; i < 2_000; i++) {
  const node = `n${i % 7}`;
  const about = { key: `storage_warning:${node}`, type: "storage_warning", nodeId: node } as const;
  const grade = gradeOf(i % 3 === 0 ? 70 : 90, { warning: 80, critical: 95 });
  const saved = store.take(store.machine.apply([{ ...about, ...grade }], momentOf(systemClock)));
  if (i % 2 === 0) await saved;
}
await store.close();
