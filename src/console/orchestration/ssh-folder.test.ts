// Tests the folder of sockets and pinned keys in a console that runs for weeks: its loss ends no later connection.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { withoutSshServer } from "#testing/ssh-server.ts";
import { SshConnections } from "./ssh-command.ts";

const { TMPDIR: usual } = process.env;
const folder = scratchFolder("ssh-tmp-");
const temporary = join(folder, "tmp");
const keyFile = join(folder, "key");
const connections = new SshConnections({ clock: systemClock, log: silentLogger, keyFile });
/** Nothing listens there, so that only ssh itself is needed. */
const target = {
  id: "n1",
  host: "127.0.0.1",
  port: 1,
  user: "svc",
  hostKey: `ssh-ed25519 ${Buffer.concat([
    Buffer.from("0000000b7373682d6564323535313900000020", "hex"),
    Buffer.alloc(32, 7),
  ]).toString("base64")}`,
};

before(() => {
  process.env["TMPDIR"] = temporary;
  const { privateKey } = generateKeyPairSync("ed25519");
  writeFileSync(keyFile, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
});

after(async () => {
  if (usual === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = usual;
  await connections.close();
});

async function refusal(): Promise<string> {
  const opened = await connections.open(target);
  assert.ok("reason" in opened);
  assert.equal(opened.reason, "CONNECT_FAILED");
  return opened.message;
}

test("a folder that could not be made, and one that a cleaner of old temporary files has removed, is made anew", {
  skip: withoutSshServer(),
}, async () => {
  assert.match(await refusal(), /^this machine cannot begin a connection: .*ENOENT/);
  mkdirSync(temporary);
  const reached = /^svc@127\.0\.0\.1 port 1 cannot be reached: /;
  assert.match(await refusal(), reached);
  for (const name of readdirSync(temporary)) rmSync(join(temporary, name), { recursive: true });
  assert.deepEqual(
    (await Promise.all([refusal(), refusal()])).map((message) => reached.test(message)),
    [true, true],
  );
  assert.equal(readdirSync(temporary).length, 1);
});
