// A process for crash tests: a notifier on fast time, with one more full disk every few seconds.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ManualClock, systemClock } from "#base/clock.ts";
import { NOTIFICATION_TRY_TIMEOUT_MS } from "./notification-sender.ts";
import { diskCondition } from "./notification-service.fixture.ts";
import { openNotifier, settingsFor, webhookFor } from "./notifier.fixture.ts";

/** A try lasts as long as the network takes; fast time would repeat it on a slow machine. */
class FastClock extends ManualClock {
  override after(delayMs: number, callback: () => void): () => void {
    return delayMs === NOTIFICATION_TRY_TIMEOUT_MS
      ? systemClock.after(delayMs, callback)
      : super.after(delayMs, callback);
  }
}

const [folder = "", port = "", count = ""] = process.argv.slice(2);
const progress = join(folder, "progress");

function read(): number {
  try {
    return Number(readFileSync(progress, "utf8"));
  } catch {
    return 0;
  }
}

let full = read();
const { run } = await openNotifier(
  folder,
  settingsFor([webhookFor(Number(port))], { groupBy: ["node_id"] }),
  {
    clock: new FastClock(1_790_000_000_000 + full * 10_000),
  },
);
const conditions = () =>
  Array.from({ length: full }, (_, at) => diskCondition(`n${String(at).padStart(4, "0")}`, 90));
await run(31, conditions());
process.stdout.write("up\n");
for (;;) {
  if (full < Number(count)) {
    full++;
    writeFileSync(progress, `${full}`);
  }
  await run(10, conditions());
  await sleep(1);
}
