// Tests of refused actions: another host key, a readable key file, no node, no disk (E-01, E-06, E-07).
import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type SshServer, type SshServers, withoutOwnBootId } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { ActionConsole, custom, enrol } from "./action-console.ts";
import { openActionSite } from "./action-site.ts";
import { Endings, grove } from "./processes.ts";

const skip = withoutOwnBootId();
const endings = new Endings();
const DISK_BYTES = 16_777_216;

let servers: SshServers;
let n1: SshServer;
let n2: SshServer;
let store: string;
let admin: ActionConsole;

before(async () => {
  if (skip !== false) return;
  const site = await openActionSite(endings);
  ({ servers } = site);
  ({ store } = site.consoleRequest);
  n1 = await servers.start();
  n2 = await servers.start();
  await enrol(store, "n1", n1);
  await enrol(store, "n2", n2);
  admin = await ActionConsole.start(endings, {
    ...site.consoleRequest,
    diskBytes: DISK_BYTES,
  });
});

after(() => endings.end());

const touch = (name: string): object => custom(["n1"], `touch ${name}`);
const fingerprint = (text: string): string[] => text.match(/SHA256:[A-Za-z0-9+/]{43}/g) ?? [];

test("a changed host key: nothing is sent, both fingerprints are shown, an alert is raised; enrolled again it works (E-01, D20)", {
  skip,
}, async () => {
  const pinned = n1.hostKey;
  await admin.execute(custom(["n1"], "true"));
  await n1.stop({ cut: true });
  n1.changeHostKey();
  await n1.start();
  // The first who sees it reads a log: the alert waits for no action.
  const tail = await admin.ask("/api/logs/tail?node=n1&service=fileserver");
  assert.equal(tail.status, 503, tail.text);
  assert.equal(fingerprint(tail.text).length, 2, tail.text);
  const alert = await until(async () => {
    const { json } = await admin.ask("/api/alerts?type=host_key_changed");
    return (json as { alerts: { severity: string; node_id: string; message: string }[] }).alerts[0];
  }, "the alert");
  assert.deepEqual([alert.severity, alert.node_id], ["critical", "n1"]);
  const record = await admin.execute(touch("sent"));
  const [target] = record.targets;
  assert.deepEqual(
    [record.state, target?.state, target?.reason, record.exit_code],
    ["failed", "unreachable", "HOST_KEY_CHANGED", null],
  );
  const shown = fingerprint(target?.message ?? "");
  assert.equal(new Set(shown).size, 2, target?.message ?? "");
  assert.equal(existsSync(join(n1.home, "sent")), false);
  assert.ok(shown.includes(fingerprint(alert.message)[0] ?? ""), alert.message);
  const again = await grove([
    "node",
    "add",
    "n1",
    `${n1.user}@${n1.host}:${n1.port}`,
    "-meta",
    store,
    "-host_key",
    pinned,
  ]);
  assert.match(again.stderr, /-replace/);
  await enrol(store, "n1", n1, { flags: ["-replace"] });
  assert.equal((await admin.execute(touch("sent"))).state, "succeeded");
});

test("a key file that others may read is refused in words, and mended by chmod while the console runs (E-07)", {
  skip,
}, async () => {
  chmodSync(servers.keyFile, 0o644);
  const record = await admin.execute(touch("loose"));
  chmodSync(servers.keyFile, 0o600);
  assert.deepEqual([record.targets[0]?.state, record.targets[0]?.reason], ["unreachable", "KEY_FILE_UNSAFE"]);
  assert.match(record.targets[0]?.message ?? "", /chmod 600/);
  assert.equal(existsSync(join(n1.home, "loose")), false);
  assert.equal((await admin.execute(custom(["n1"], "true"))).state, "succeeded");
});

test("a node that is not there is unreachable, with ssh's own reason, and the others have their turn (E-05)", {
  skip,
}, async () => {
  await n2.stop({ cut: true });
  const record = await admin.execute(custom(["n1", "n2"], "echo here"));
  await n2.start();
  assert.deepEqual(
    [record.state, ...record.targets.map(({ state }) => state)],
    ["partly_failed", "succeeded", "unreachable"],
  );
  assert.equal(record.targets[1]?.reason, "CONNECT_FAILED");
  assert.match(record.targets[1]?.message ?? "", /Connection refused/);
});

test("with a full disk no action begins, and the refusal says why; with room again they do (E-06)", {
  skip,
}, async () => {
  const free = admin.fillDisk();
  const refused = await admin.refused(touch("unrecorded"));
  assert.deepEqual([refused.status, refused.code], [503, "ACTIONS_UNAVAILABLE"]);
  assert.match(refused.detail ?? "", /cannot be written; nothing was run/);
  assert.equal((await admin.refused(touch("unrecorded"), "/api/actions/run")).status, 503);
  free();
  assert.equal(existsSync(join(n1.home, "unrecorded")), false);
  const record = await until(async () => {
    const { status, json } = await admin.ask("/api/actions/execute", custom(["n1"], "true"));
    return status === 200 ? (json as ActionRecord) : undefined;
  }, "an action");
  assert.equal(record.state, "succeeded");
});

test("a disk that fills while an action runs does not end it: its record is true, and is written once there is room (E-06)", {
  skip,
}, async () => {
  const id = await admin.begin(
    custom(["n1"], "echo begun; while ! [ -e go ]; do sleep 0.1; done; rm go; seq 1 200000; echo over"),
  );
  await until(async () => (await admin.output(id)).includes("begun"), "its output");
  const free = admin.fillDisk();
  writeFileSync(join(n1.home, "go"), "");
  const record = await admin.ended(id);
  assert.deepEqual([record.state, record.exit_code], ["succeeded", 0]);
  assert.match(record.stdout, /over\n$/);
  assert.equal(record.targets[0]?.truncated, true);
  assert.equal((await admin.refused(touch("unrecorded"))).status, 503);
  free();
  await until(() => {
    const text = readFileSync(join(admin.data, "command_history.json"), "utf8");
    const kept = (JSON.parse(text) as { records: ActionRecord[] }).records.find((each) => each.id === id);
    return kept?.state === "succeeded" ? true : undefined;
  }, "the record on the disk");
  assert.equal((await admin.execute(custom(["n2"], "true"))).state, "succeeded");
});
