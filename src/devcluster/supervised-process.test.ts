// Tests of supervision, with small real processes in place of Grove's.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { BoundedLog, lastLines } from "./bounded-log.ts";
import {
  type ProcessEvents,
  type ProcessPlan,
  SUPERVISION_TIMES,
  SupervisedProcess,
} from "./supervised-process.ts";

const TIMEOUT = { timeout: 60_000 };
const TIMES = { ...SUPERVISION_TIMES, restartFirstMs: 10, restartMaxMs: 40, startMs: 10_000, stopMs: 300 };

interface Supervised {
  readonly process: SupervisedProcess;
  readonly events: string[];
  readonly folder: string;
}

/** A script that serves and exits on SIGHUP with the given code. */
const endsWhenTold = (code: number): string =>
  `globalThis.process.on("SIGHUP", () => globalThis.process.exit(${code})); ready()`;
const tellToEnd = ({ pid }: SupervisedProcess): boolean => globalThis.process.kill(pid ?? 0, "SIGHUP");

/** Starts a script under supervision: `ready()` marks it as serving, `starts` is the number of its start. */
async function keep(t: TestContext, script: string): Promise<Supervised> {
  const folder = scratchFolder("supervised-");
  const ready = join(folder, "ready");
  const program = `
    const fs = require("node:fs");
    fs.appendFileSync("starts", "x");
    const starts = fs.statSync("starts").size;
    const ready = () => fs.writeFileSync(${JSON.stringify(ready)}, String(process.pid));
    setInterval(() => {}, 1000);
    process.chdir(".");
    ${script}`;
  const events: string[] = [];
  const plan: ProcessPlan = {
    name: "it",
    args: ["--eval", program.replaceAll('"starts"', JSON.stringify(join(folder, "starts")))],
    env: {},
    logPath: join(folder, "logs", "it.log"),
    isServing: async () => (await readFile(ready, "utf8").catch(() => "")) === String(kept.process.pid),
  };
  const told: ProcessEvents = {
    onDied: (_name, how) => void events.push(how),
    onRestarted: () => void events.push("serves"),
  };
  const kept = { process: new SupervisedProcess(plan, told, TIMES), events, folder };
  t.after(() => kept.process.stop());
  return kept;
}

test(
  "a process that dies is started again and again, and each time it is told how it died",
  TIMEOUT,
  async (t) => {
    const { process, events } = await keep(t, endsWhenTold(7));
    await process.start();
    const first = process.pid;
    for (const seen of [2, 4]) {
      tellToEnd(process);
      await until(() => events.length === seen);
    }
    assert.deepEqual(events, ["exit code 7", "serves", "exit code 7", "serves"]);
    assert.notEqual(process.pid, first);
    globalThis.process.kill(process.pid ?? 0, "SIGKILL");
    await until(() => events.length === 6);
    assert.deepEqual(events.slice(4), ["SIGKILL", "serves"]);
  },
);

test(
  "a process that fails at first is tried a few times, then given up with the end of its log",
  TIMEOUT,
  async (t) => {
    const lucky = await keep(t, "if (starts < 3) globalThis.process.exit(1); else ready()");
    await lucky.process.start();
    const hopeless = await keep(t, `console.error("because of the disk"); globalThis.process.exit(3)`);
    await assert.rejects(
      hopeless.process.start(),
      /it does not start \(exit code 3\).*\n(?:.*\n)*because of the disk/,
    );
    assert.equal(hopeless.process.pid, null);
  },
);

test(
  "a process that runs without coming to serve is given up with the reason of the last question",
  TIMEOUT,
  async (t) => {
    const { process, folder } = await keep(t, "");
    const refused = {
      ...process.plan,
      isServing: () => Promise.reject(new Error("certificate has expired")),
    };
    const events: ProcessEvents = { onDied: () => undefined, onRestarted: () => undefined };
    const deaf = new SupervisedProcess(refused, events, { ...TIMES, startMs: 1_500 });
    t.after(() => deaf.stop());
    await assert.rejects(deaf.start(), /did not serve within 1\.5 s; asked last: certificate has expired\)/);
    assert.equal(deaf.pid, null);
    assert.equal((await stat(join(folder, "starts"))).size, 1);
  },
);

test("a process that ignores SIGTERM is ended, and is not started again", TIMEOUT, async (t) => {
  const { process, events, folder } = await keep(t, `globalThis.process.on("SIGTERM", () => {}); ready()`);
  await process.start();
  const { pid } = process;
  await process.stop();
  assert.throws(() => globalThis.process.kill(pid ?? 0, 0));
  await sleep(100);
  assert.deepEqual(events, []);
  assert.equal((await stat(join(folder, "starts"))).size, 1);
});

test("a stop between death and restart leaves nothing running", TIMEOUT, async (t) => {
  const { process, events } = await keep(t, endsWhenTold(0));
  await process.start();
  tellToEnd(process);
  await until(() => events.includes("exit code 0"));
  await process.stop();
  assert.equal(process.pid, null);
});

test("what a process prints goes to its log, which is the owner's alone", TIMEOUT, async (t) => {
  const { process, folder } = await keep(t, `console.log("out"); console.error("err"); ready()`);
  await process.start();
  await process.stop();
  const path = join(folder, "logs", "it.log");
  assert.deepEqual((await readFile(path, "utf8")).trim().split("\n").toSorted(), ["err", "out"]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test("output that comes after the end of its process is in its log as well", TIMEOUT, async (t) => {
  const late = `require("node:child_process").spawn("sh", ["-c", "sleep 0.2; echo late"], { stdio: "inherit" })`;
  const { process, folder } = await keep(
    t,
    `process.on("SIGTERM", () => { ${late}; process.exit(); }); ready()`,
  );
  await process.start();
  await process.stop();
  assert.equal(await readFile(join(folder, "logs", "it.log"), "utf8"), "late\n");
});

test("a log never grows beyond its bound, and the file before it is kept", TIMEOUT, async () => {
  const path = join(scratchFolder("supervised-"), "x.log");
  await writeFile(path, "0123");
  const log = new BoundedLog(path, 10);
  for (const text of ["456789", "ABCDE", "FGHIJ", "K"]) log.write(text);
  await new Promise<void>((resolve) => log.end(resolve));
  assert.equal(await readFile(`${path}.1`, "utf8"), "ABCDEFGHIJ");
  assert.equal(await readFile(path, "utf8"), "K");
  assert.equal(await lastLines(path, 3), "K");
  assert.equal(await lastLines(`${path}.2`, 3), "");
});

test("a log that cannot be written loses lines and stops nobody", TIMEOUT, async () => {
  const folder = scratchFolder("supervised-");
  const log = new BoundedLog(folder, 10);
  log.write("lost");
  await new Promise<void>((resolve) => log.end(resolve));
  assert.equal(log.errored, null);
});
