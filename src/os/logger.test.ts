// Log lines in the file: shape, level, and absence of secrets.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { promisify } from "node:util";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { LOG_TEXT_MAX_LENGTH } from "./log-text.ts";
import { createLogger, switchLevelOnSignal } from "./logger.ts";
import { redactSecrets } from "./redact.ts";

let folder = "";
before(async () => {
  folder = scratchFolder("os-logger-");
});

async function lines(path: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(path, "utf8");
  return text
    .trim()
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("an event is one JSON line with level, RFC 3339 UTC time, its name and its fields (D24)", async () => {
  const path = join(folder, "logs", "fileserver.log");
  const logger = createLogger({ destination: { file: path }, fields: { role: "fileserver" } });
  logger
    .child({ peer: "10.0.0.1" })
    .warn("upload_refused", { bytes: 2n ** 60n, small: 3n, ok: false, none: null, time: 1, role: "read" });
  await logger.close();
  const [line, ...rest] = await lines(path);
  assert.equal(rest.length, 0);
  assert.match(String(line?.["time"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(
    { ...line, time: undefined },
    {
      level: "warn",
      time: undefined,
      role: "fileserver",
      peer: "10.0.0.1",
      bytes: "1152921504606846976",
      small: 3,
      ok: false,
      none: null,
      time_: 1,
      role_: "read",
      event: "upload_refused",
    },
  );
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test("a level holds for children too, and SIGUSR2 switches debug on and off", async () => {
  // Node's test runner writes a report on this signal; the logger takes it over here.
  process.removeAllListeners("SIGUSR2");
  const path = join(folder, "level.log");
  const logger = createLogger({ destination: { file: path }, level: "warn" });
  const child = logger.child({});
  const stopListening = switchLevelOnSignal(logger);
  child.info("quiet");
  process.emit("SIGUSR2", "SIGUSR2");
  child.debug("loud");
  process.emit("SIGUSR2", "SIGUSR2");
  child.info("quiet again");
  child.error("always");
  stopListening();
  await logger.close();
  logger.error("after the end");
  assert.deepEqual(
    (await lines(path)).map((line) => line["event"]),
    ["log_level_changed", "loud", "always"],
  );
});

test("a logger on standard error writes its lines there and ends, also when asked twice", {
  timeout: 60_000,
}, async () => {
  const program = `
    const { createLogger } = await import(${JSON.stringify(new URL("logger.ts", import.meta.url).href)});
    const logger = createLogger({ destination: "stderr" });
    for (let at = 0; at < 100; at++) logger.info("event", { at });
    await Promise.all([logger.close(), logger.close()]);
    process.stdout.write("ended");`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    "--input-type=module",
    "-e",
    program,
  ]);
  assert.equal(stdout, "ended");
  assert.equal(stderr.trim().split("\n").length, 100);
});

test("lines that wait when a process ends are written all the same", { timeout: 60_000 }, async () => {
  const path = join(folder, "exit.log");
  const program = `
    const { createLogger } = await import(${JSON.stringify(new URL("logger.ts", import.meta.url).href)});
    const logger = createLogger({ destination: { file: ${JSON.stringify(path)} } });
    for (let at = 0; at < 100; at++) logger.info("event", { at });
    process.exit();`;
  await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  assert.equal((await lines(path)).length, 100);
});

const HEX = "0123456789abcdef".repeat(4);
const JWT = "eyJhbGciOiJSUzI1NiJ9.eyJlbWFpbCI6ImFAYi5jIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ";
const SECRETS: Record<string, readonly string[]> = {
  "session token": [`sst_${"A-_9".repeat(10)}abc`],
  "mock token": ["mock-jwt.alice@example.com", "MOCK-JWT.eyJlbWFpbCI6ImEifQ"],
  "ID token": [JWT, "ewogImFsZyI6ICJub25lIn0.ewogImVtYWlsIjogMX0."],
  "64 hex": [HEX, HEX.toUpperCase()],
  argon2: ["$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2g"],
};
const FRAMES: readonly ((secret: string) => string)[] = [
  (secret) => secret,
  (secret) => `Bearer ${secret}`,
  (secret) => `authorization: Bearer ${secret}`,
  (secret) => `{"Authorization":["Bearer ${secret}"]}`,
  (secret) => `cookie: a=b; svc_admin_token=${secret}; c=d`,
  (secret) => `x-admin-password-hash: ${secret}`,
  (secret) => `GET https://idp.example/tokeninfo?id_token=${secret}&x=1 failed`,
  (secret) => `POST /callback?code=${secret}&state=${secret}`,
  (secret) => `token ${secret}, and "${secret}" (${secret})`,
  (secret) => `postgres://grove:${secret}@db.example/grove`,
];

for (const [kind, secrets] of Object.entries(SECRETS)) {
  test(`no ${kind} reaches the log, whatever stands around it (C-13)`, async () => {
    const path = join(folder, `${kind}.log`);
    const logger = createLogger({ destination: { file: path } });
    for (const secret of secrets) {
      for (const frame of FRAMES) {
        logger.info(frame(secret), { detail: frame(secret), session_token: secret, passwordHash: secret });
        logger.child({ error: frame(secret) }).error("failed");
      }
      // A cut through a secret must not leave half of it either.
      for (let cut = -70; cut <= 10; cut += 5) {
        logger.info("long", { text: `${"x ".repeat((LOG_TEXT_MAX_LENGTH + cut) / 2)}${secret}` });
      }
    }
    await logger.close();
    const text = await readFile(path, "utf8");
    for (const secret of secrets) {
      assert.ok(!text.includes(secret));
      assert.ok(!text.includes(secret.slice(4, 24)), `part of ${secret}`);
    }
  });
}

test("what is no secret stays readable", () => {
  for (const text of [
    "upload of /docs/eyewitness.report.txt failed: ENOSPC",
    "session 0123456789abcdef of alice@example.com from 10.0.0.1",
    "hash 01234567 of a token", // the first 8 hex may be logged
    "exit code=1",
    "listening on https://node1.cluster.local:50051",
  ]) {
    assert.equal(redactSecrets(text), text);
  }
});
