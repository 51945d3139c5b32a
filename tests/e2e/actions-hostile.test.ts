// Tests that hostile branches, targets, services, nodes, lines and names are all refused (E-02, T15).
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { type SshServer, withoutSshServer } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import { ActionConsole, type Answer, enrol, type LiveMessage } from "./action-console.ts";
import { openActionSite } from "./action-site.ts";
import { Endings } from "./processes.ts";

const skip = withoutSshServer();
const endings = new Endings();
/** 20,000 in the long form. */
const PAYLOADS = Number(process.env["GROVE_HOSTILE_PAYLOADS"] ?? "500");
const AT_ONCE = 20;

let n1: SshServer;
let admin: ActionConsole;
let folder: string;

before(async () => {
  if (skip !== false) return;
  const site = await openActionSite(endings);
  ({ folder } = site);
  n1 = await site.servers.start();
  // Any program that runs as root leaves the marker.
  n1.addProgram("sudo", `touch '${join(folder, "marker")}'`);
  await enrol(site.consoleRequest.store, "n1", n1);
  admin = await ActionConsole.start(endings, {
    ...site.consoleRequest,
    flags: ["-rate_operator", "100000", "-rate_visitor", "100000"],
  });
});

after(() => endings.end());

/** Texts that would make a file if a shell, git, make or journalctl took them for more than a name. */
function payloads(count: number): string[] {
  const marker = join(folder, "marker");
  const act = `touch ${marker}`;
  const whole = fc.constantFrom(
    `; ${act} ;`,
    `$(${act})`,
    `\`${act}\``,
    `| ${act}`,
    `&& ${act}`,
    `\n${act}\n`,
    `'; ${act}; '`,
    `"; ${act}; "`,
    `--upload-pack=${act}`,
    `--output=${marker}`,
    `-oProxyCommand=${act}`,
    `--exec=${act}`,
    `ext::sh -c ${act}`,
    `SHELL=${act}`,
    `--eval=$(shell ${act})`,
    `main:${marker}`,
    "../../../../etc/shadow",
    "a..b",
    "refs/heads/x.lock",
    "%00",
    "\0",
    "\r\nX: y",
    "ＡＤＭＩＮ",
    "admin\u200B",
    "n1 n2",
    "*",
    "~root",
    "${IFS}",
    "$HOME",
    "__proto__",
    "constructor",
    "1e3",
    "0x10",
    "-1",
    " 10",
    "10;",
    "NaN",
    "99999999999999999999",
  );
  const unit = fc.constantFrom(
    ..."abz09-._/=:;|&$`'\"\\ \n\t\r*?~<>(){}[]!#%@,+".split(""),
    "\0",
    "\u001B",
    "é",
    "\uD800",
    "\uFEFF",
  );
  const random = fc.string({ unit, minLength: 1, maxLength: 40 });
  const mixed = fc.tuple(random, whole, random).map((parts) => parts.join(""));
  const long = whole.map((text) => text.repeat(Math.ceil(9_000 / text.length)));
  const any = fc.oneof(
    { weight: 4, arbitrary: whole },
    { weight: 4, arbitrary: random },
    { weight: 6, arbitrary: mixed },
    { weight: 1, arbitrary: long },
  );
  return fc.sample(any, { numRuns: count, seed: 20_261_121 });
}

const base = { nodes: ["n1"] };
/** Each place that takes a text; the answer must be a refusal, or something harmless as it stands. */
const PLACES: readonly ((text: string) => Promise<Answer>)[] = [
  ...[
    (branch: string) => ({ ...base, action: "pull", branch }),
    (make_target: string) => ({ ...base, action: "build", make_target }),
    (target_service: string) => ({ ...base, action: "restart", target_service }),
    (TargetService: string) => ({ ...base, action: "restart", TargetService, RestartMode: "binary" }),
    (restart_mode: string) => ({ ...base, action: "restart", target_service: "fileserver", restart_mode }),
    (AptMode: string) => ({ ...base, action: "apt", AptMode }),
    (service: string) => ({ ...base, action: "logs", service }),
    (lines: string) => ({ ...base, action: "logs", service: "fileserver", lines }),
    (timeout_seconds: string) => ({ ...base, action: "custom", command: "true", timeout_seconds }),
    (node: string) => ({ action: "build", nodes: [node] }),
    (nodes: string) => ({ action: "build", nodes }),
    (action: string) => ({ ...base, action }),
    (key: string) => ({ ...base, action: "pull", branch: "--", idempotency_key: key }),
    (mode: string) => ({ ...base, action: "pull", branch: "--", strategy: { mode } }),
    (name: string) => ({ ...base, action: "pull", branch: "--", [name]: name }),
  ].map((request) => (text: string) => admin.ask("/api/actions/execute", request(text))),
  (text) => admin.ask(`/api/logs/tail?node=${encoded(text)}&service=fileserver`),
  (text) => admin.ask(`/api/logs/tail?node=n1&service=${encoded(text)}`),
  (text) => admin.ask(`/api/logs/tail?node=n1&service=fileserver&lines=${encoded(text)}x`),
  (text) => admin.ask(`/api/actions/${encoded(text)}`),
  (text) => admin.ask(`/api/actions/${encoded(text)}/output?node=${encoded(text)}`),
  (text) => admin.ask(`/api/actions/${encoded(text)}/cancel`, {}),
  (text) => admin.ask("/api/actions/execute", text),
];

const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

test(`${PAYLOADS} hostile texts, each in one of ${PLACES.length} places: a refusal each, and nothing else happens (E-02)`, {
  skip,
  timeout: 600_000,
}, async (t) => {
  const sessions = (): number => n1.log.split("Accepted publickey").length;
  const before = sessions();
  const statuses = new Map<number, number>();
  const taken: string[] = [];
  const texts = payloads(PAYLOADS);
  const work = texts.map((text, at) => ({ text, at }));
  const worker = async (): Promise<void> => {
    for (let item = work.pop(); item !== undefined; item = work.pop()) {
      const place = PLACES[item.at % PLACES.length];
      const answer = await place?.(item.text);
      const status = answer?.status ?? 0;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status >= 500) assert.fail(`${status} for ${JSON.stringify(item)}: ${answer?.text}`);
      if (status < 300) taken.push(item.text);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  t.diagnostic(
    `${[...statuses].map(([status, count]) => `${status}: ${count}`).join(", ")}; sessions on the node: ${sessions() - before}`,
  );
  // The few that are proper names were carried out as such.
  for (const text of taken) assert.match(text, /^[A-Za-z0-9][A-Za-z0-9._/-]*$/, JSON.stringify(text));
  const records = await admin.history();
  for (const { action, targets } of records) {
    assert.ok(["pull", "build"].includes(action), action);
    for (const { argv } of targets) assert.match(argv.at(-1) ?? "", /^[A-Za-z0-9][A-Za-z0-9._/-]*$/);
  }
  assert.ok(sessions() - before <= 1, "one connection at most, for those that were carried out");
  assertNoMarker();
});

test(`${PAYLOADS / 5} hostile subscriptions to output and logs get an error message each, and no program (D8)`, {
  skip,
}, async () => {
  // Longer messages close the socket.
  const texts = payloads(PAYLOADS / 5).filter((text) => text.length < 1_000);
  for (let at = 0; at < texts.length; at += 8) {
    const some = texts.slice(at, at + 8);
    const heard: LiveMessage[] = [];
    const socket = admin.follow({ action_id: "none" }, (message) => heard.push(message));
    await until(() => heard.some(({ type }) => type === "error"), "the first answer");
    for (const text of some) {
      socket.send(JSON.stringify({ type: "subscribe", node: "n1", service: text }));
      socket.send(JSON.stringify({ type: "subscribe", action_id: text }));
    }
    await until(
      () => (heard.filter(({ type }) => type === "error").length >= 1 + 2 * some.length ? true : undefined),
      "all answers",
    );
    assert.deepEqual(
      heard.filter(({ type }) => type === "log.lines" || type === "action.output"),
      [],
    );
    socket.terminate();
  }
  assertNoMarker();
});

/** Asserts that no text, and no half of one, has made its file. */
function assertNoMarker(): void {
  assert.equal(existsSync(join(folder, "marker")), false);
  assert.deepEqual(readdirSync(folder).toSorted(), ["admin", "meta"]);
  assert.deepEqual(
    readdirSync(n1.home).filter((name) => name !== ".grove-actions"),
    [],
  );
}
