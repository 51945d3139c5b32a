// Tests of live output over dropping sockets: any bytes, endless, long lines, no secrets (D7, D8).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type SshServer, withoutSshServer } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import { ActionConsole, custom, enrol, isRunning, type LiveMessage } from "./action-console.ts";
import { openActionSite } from "./action-site.ts";
import { Endings } from "./processes.ts";

const skip = withoutSshServer();
const endings = new Endings();
/** 8 MB as a rule; 100,000,000 in the long form. */
const OUTPUT_BYTES = Number(process.env["GROVE_ACTION_OUTPUT_BYTES"] ?? "8000000");
const DROP_MS = 200;
const TOKEN = "metrics-token-of-this-test";

let n1: SshServer;
let admin: ActionConsole;
let data: string;

before(async () => {
  if (skip !== false) return;
  const { servers, consoleRequest } = await openActionSite(endings);
  n1 = await servers.start();
  await enrol(consoleRequest.store, "n1", n1);
  ({ data } = consoleRequest);
  const env = { SVC_METRICS_TOKEN: TOKEN };
  admin = await ActionConsole.start(endings, { ...consoleRequest, env });
});

after(() => endings.end());

/** Takes the numbers 1, 2, 3, … a line each, in pieces of any length. */
class Counter {
  count = 0;
  bytes = 0;
  #rest = "";

  push(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    this.bytes += Buffer.byteLength(text);
    for (const line of lines) {
      if (line !== String(this.count + 1)) assert.fail(`after ${this.count} comes ${line.slice(0, 50)}`);
      this.count++;
    }
  }
}

/** A stand-in for a page: follows an action by socket, and fetches the parts that a socket missed. */
class Page {
  readonly counter = new Counter();
  last = 0;
  drops = 0;
  pages = 0;
  readonly #id: string;

  constructor(id: string) {
    this.#id = id;
  }

  /** True when the action was over. */
  async visit(ms: number): Promise<boolean> {
    let [isMissing, isOver] = [false, false];
    const socket = admin.follow(
      { action_id: this.#id, after_seq: this.last },
      ({ type, seq, data: said }) => {
        if (type === "action.done") isOver = true;
        if (type !== "action.output" || seq <= this.last || isMissing) return;
        if (said["after_seq"] === this.last) this.#take(seq, said["data"] as string);
        else isMissing = true;
      },
    );
    await sleep(ms);
    socket.terminate();
    this.drops++;
    if (isMissing) await this.catchUp();
    return isOver;
  }

  async catchUp(): Promise<boolean> {
    this.pages++;
    const answer = await admin.ask(`/api/actions/${this.#id}/output?after_seq=${this.last}`);
    const page = answer.json as { entries: { seq: number; data: string }[]; complete: boolean };
    for (const { seq, data: text } of page.entries) this.#take(seq, text);
    return page.complete;
  }

  #take(seq: number, text: string): void {
    this.last = seq;
    this.counter.push(text);
  }
}

test(`a page whose socket drops every ${DROP_MS} ms has every byte of ${OUTPUT_BYTES} once and in order, and the console stays small (D8)`, {
  skip,
  timeout: 600_000,
}, async (t) => {
  const id = await admin.begin(
    custom(["n1"], `seq 1 100000000 | head -c ${OUTPUT_BYTES}`, { timeout_seconds: 600 }),
  );
  const page = new Page(id);
  while (!(await page.visit(DROP_MS)));
  while (!(await page.catchUp()));
  assert.equal(page.counter.bytes, OUTPUT_BYTES);
  assert.ok(page.drops > 2);
  const peak =
    Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${admin.pid}/status`, "utf8"))?.[1]) / 1_024;
  t.diagnostic(
    `${page.drops} drops, ${page.pages} pages, ${page.counter.count} lines, console at most ${peak.toFixed(0)} MiB`,
  );
  const record = await admin.record(id);
  assert.deepEqual(
    [record.state, record.targets[0]?.truncated, Buffer.byteLength(record.stdout)],
    ["succeeded", true, 65_536],
  );
});

test("bytes that are no text, NUL and escape sequences come as they are or as U+FFFD, and break nothing (spec 4.7)", {
  skip,
}, async () => {
  const heard: LiveMessage[] = [];
  const id = await admin.begin(
    custom(
      ["n1"],
      String.raw`sleep 0.5; printf 'a\377\376b\000c\033[31mred\033[0m \303'; sleep 0.3; printf '\251\r\n\036no word\n{"v":1}\n'; printf '\360\237' >&2`,
    ),
  );
  const socket = admin.follow({ action_id: id }, (message) => heard.push(message));
  const record = await admin.ended(id);
  const text = 'a\uFFFD\uFFFDb\0c\u001B[31mred\u001B[0m é\r\n\u001Eno word\n{"v":1}\n';
  assert.deepEqual([record.state, record.stdout, record.stderr], ["succeeded", text, "\uFFFD"]);
  await until(() => heard.some(({ type }) => type === "action.done"), "all of it");
  socket.terminate();
  const live = heard.filter(
    ({ type, data: said }) => type === "action.output" && said["stream"] === "stdout",
  );
  assert.equal(live.map(({ data: said }) => said["data"]).join(""), text);
  assert.equal(await admin.output(id, { stream: "stdout" }), text);
});

test("a line of ten megabytes without an end is output like any other", { skip }, async () => {
  const id = (await admin.execute(custom(["n1"], "head -c 10000000 /dev/zero | tr '\\0' x"))).id;
  const text = await admin.output(id);
  assert.equal(text.length, 10_000_000);
  assert.match(text.slice(0, 1_000), /^x+$/);
});

test("output without end is kept up to its budget, and its time limit ends it and what it left (D7)", {
  skip,
}, async () => {
  const id = await admin.begin(custom(["n1"], `yes grove-${process.pid}`, { timeout_seconds: 3 }));
  const record = await admin.ended(id);
  assert.deepEqual([record.state, record.targets[0]?.truncated], ["timed_out", true]);
  assert.equal(isRunning(`yes grove-${process.pid}`), false);
  assert.equal((await admin.execute(custom(["n1"], "true"))).state, "succeeded");
});

test("a configured secret is in no output, no record, no file and no log, however it came in (D7, C-13)", {
  skip,
}, async () => {
  const record = await admin.execute(
    custom(
      ["n1"],
      `printf '${TOKEN.slice(0, 9)}'; sleep 0.2; echo '${TOKEN.slice(9)}'; echo ${TOKEN} >&2; env; cat /proc/$$/cmdline | tr '\\0' ' '`,
    ),
  );
  assert.equal(record.state, "succeeded");
  assert.match(record.stdout, /^\[redacted\]$/m);
  assert.equal(record.stderr, "[redacted]\n");
  const shown = JSON.stringify([
    record,
    await admin.record(record.id),
    await admin.history(),
    await admin.output(record.id),
    await admin.audit(),
  ]);
  assert.equal(
    shown.includes(TOKEN),
    false,
    shown.slice(Math.max(0, shown.indexOf(TOKEN) - 200), shown.indexOf(TOKEN) + 100),
  );
  assert.equal(readFileSync(join(data, "command_history.json"), "utf8").includes(TOKEN), false);
  assert.equal(admin.log.includes(TOKEN), false);
  assert.doesNotMatch(record.stdout, /SVC_|SSH_|ADMIN_/);
});

test("a node whose sshd is killed in the middle: the action is found again when it is back, with its true exit code (E-05)", {
  skip,
}, async () => {
  const id = await admin.begin(custom(["n1"], "echo begun; sleep 3; exit 7", { timeout_seconds: 60 }));
  await until(async () => (await admin.output(id)).includes("begun"), "its output");
  await n1.stop({ cut: true });
  await sleep(500);
  assert.equal((await admin.record(id)).state, "running");
  await n1.start();
  const [target] = (await admin.ended(id)).targets;
  assert.deepEqual(
    [target?.state, target?.exit_code, target?.reason, target?.truncated],
    ["failed", 7, "CONNECTION_LOST", true],
  );
});
