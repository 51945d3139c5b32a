// Tests that a process killed at any moment leaves the old or the new state, and nothing else.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { CrashManifest, startLoad } from "./crash-manifest.fixture.ts";
import { assertSound } from "./store.fixture.ts";

const hasStrace = spawnSync("strace", ["-V"]).status === 0;
const needsStrace = hasStrace ? {} : { skip: "strace is not installed" };
const KILLS = 8;
/** Calls that change the disk; the process is killed on entry to the K-th call of one kind. */
const CALLS: readonly (readonly [string, readonly number[]])[] = [
  ["pwrite64", [1, 9, 30, 75]],
  ["fdatasync,fsync", [1, 4, 9, 16, 25]],
  ["unlink", [1, 3]],
  ["pwritev", [1, 2]],
];

test("random kills under load lose nothing acknowledged and leave nothing that start-up keeps (L1)", async (context) => {
  const directory = temporaryDirectory(context);
  const manifest = new CrashManifest();
  for (let kill = 0; kill < KILLS; kill++) {
    const { child, exited } = startLoad(directory, manifest, { mode: "load", firstNumber: kill * 10_000 });
    const opened = new Promise<void>((resolve) => child.stdout?.once("data", () => resolve()));
    await Promise.race([opened, exited]);
    // On a machine of any speed, a change is acknowledged before every other kill.
    const before = manifest.acknowledged;
    if (kill % 2 === 1) await until(() => manifest.acknowledged > before);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 250));
    child.kill("SIGKILL");
    await exited;
    assertSound(directory);
    await manifest.verify(directory);
    assertSound(directory);
  }
  assert.ok(manifest.acknowledged >= KILLS / 2, `${manifest.acknowledged} acknowledged`);
});

for (const [calls, places] of CALLS) {
  test(
    `a kill at chosen calls of ${calls} leaves the old or the new state (L1 exact)`,
    needsStrace,
    async (context) => {
      let killed = 0;
      for (const place of places) {
        const directory = temporaryDirectory(context);
        const manifest = new CrashManifest();
        const inject = `inject=${calls}:signal=SIGKILL:when=${place}`;
        const strace = ["-o", "/dev/null", "-e", `trace=${calls}`, "-e", inject];
        await startLoad(directory, manifest, { mode: "once", firstNumber: place, strace }).exited;
        if (manifest.lines.at(-1)?.file !== "failure") killed++;
        if (manifest.lines.length === 0) continue;
        assertSound(directory);
        await manifest.verify(directory);
        assertSound(directory);
      }
      assert.ok(killed > 0, "no place was reached");
    },
  );
}
