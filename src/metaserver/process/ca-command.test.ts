// `grove ca` and `grove node` on the command line.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { commandHere } from "#client/terminal/command-here.fixture.ts";
import { type Outcome, runGrove } from "#testing/run-grove.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { command as caCommand } from "./ca-command.ts";
import { command as nodeCommand } from "./node-command.ts";

const grove = (name: "ca" | "node", ...words: string[]): Promise<Outcome> =>
  commandHere(name === "ca" ? caCommand : nodeCommand, words);

test("an authority is made once and never overwritten, whatever of it is there", async () => {
  const folder = join(scratchFolder("metaserver-"), "ca");
  const made = await runGrove(["ca", "init", "-ca_dir", folder]);
  assert.equal(made.code, 0, made.err);
  assert.match(made.out, /SHA-256 +[0-9a-f]{64}/);
  const key = await readFile(join(folder, "ca.key"), "utf8");
  assert.equal((await stat(join(folder, "ca.key"))).mode & 0o777, 0o600);
  const again = await grove("ca", "init", "-ca_dir", folder);
  assert.equal(again.code, 1);
  assert.match(again.err, /never overwritten/);
  // A key whose certificate has been lost is worth even more.
  const { rm } = await import("node:fs/promises");
  await rm(join(folder, "ca.crt"));
  assert.match((await grove("ca", "init", "-ca_dir", folder)).err, /ca\.key is there already/);
  assert.equal(await readFile(join(folder, "ca.key"), "utf8"), key);
});

test("issue, list, renew and revoke: 90 days, the same key, keys of mode 0600 that are never overwritten (D20)", async () => {
  const folder = scratchFolder("metaserver-");
  const ca = ["-ca_dir", join(folder, "ca")];
  const out = ["-out", join(folder, "n1")];
  assert.match((await grove("ca", "issue", "n1", ...ca)).err, /no authority in .*grove ca init/);
  assert.equal((await grove("ca", "init", ...ca)).code, 0);
  const issued = await grove(
    "ca",
    "issue",
    "n1",
    ...ca,
    ...out,
    "-host",
    "n1.example.net",
    "-host",
    "10.0.0.1",
  );
  assert.equal(issued.code, 0, issued.err);
  const read = async (): Promise<X509Certificate> =>
    new X509Certificate(await readFile(join(folder, "n1", "n1.crt")));
  const first = await read();
  assert.equal(first.subjectAltName, "DNS:n1.cluster.local, DNS:n1.example.net, IP Address:10.0.0.1");
  assert.equal((await stat(join(folder, "n1", "n1.key"))).mode & 0o777, 0o600);
  const key = await readFile(join(folder, "n1", "n1.key"), "utf8");
  assert.match((await grove("ca", "issue", "n1", ...ca, ...out)).err, /a key is never overwritten/);
  assert.match((await grove("ca", "issue", "../x", ...ca, ...out)).err, /node id has/);
  assert.match(
    (await grove("ca", "issue", "n2", ...ca, ...out, "-host", "n1.cluster.local")).err,
    /node ids/,
  );
  assert.match(
    (await grove("ca", "issue", "n2", ...ca, ...out, "-days", "900")).err,
    /at most 825.*'grove ca issue --help'/,
  );

  assert.equal((await grove("ca", "renew", "n1", ...ca, ...out)).code, 0);
  const second = await read();
  assert.notEqual(second.serialNumber, first.serialNumber);
  assert.ok(second.publicKey.equals(first.publicKey));
  assert.equal(second.subjectAltName, first.subjectAltName);
  assert.equal(await readFile(join(folder, "n1", "n1.key"), "utf8"), key);
  assert.match((await grove("ca", "renew", "n7", ...ca, ...out)).err, /issued nothing to n7/);

  const list = async (
    ...words: string[]
  ): Promise<{ id: string; state: string; days_left: number; serial: string }[]> => {
    const { out: text } = await grove("ca", "list", ...ca, "-json", ...words);
    return (
      JSON.parse(text) as {
        certificates: { id: string; state: string; days_left: number; serial: string }[];
      }
    ).certificates;
  };
  assert.deepEqual(
    (await list()).map(({ id, state, days_left: days }) => [id, state, days]),
    [["n1", "good", 89]],
  );
  assert.deepEqual((await list("-all")).map(({ state }) => state).sort(), ["good", "replaced"]);
  assert.match(
    (await grove("ca", "list", ...ca)).out,
    /n1 +89 days +good +[0-9a-f]+ +n1\.example\.net 10\.0\.0\.1/,
  );
  const revoked = await grove("ca", "revoke", "n1", ...ca);
  assert.equal(revoked.code, 0, revoked.err);
  assert.deepEqual(await list(), []);
  assert.deepEqual(
    (await list("-all")).map(({ state }) => state),
    ["revoked", "revoked"],
  );
  assert.match((await grove("ca", "renew", "n1", ...ca, ...out)).err, /issued nothing to n1/);
  assert.match(await readFile(join(folder, "ca", "revoked"), "utf8"), /^[0-9a-f]+ n1 20/m);
});

test("a door's certificate is renewed in the file that it was issued in, by the id that lists show", async () => {
  const folder = scratchFolder("metaserver-");
  const words = ["-ca_dir", join(folder, "ca"), "-out", join(folder, "door")];
  await grove("ca", "init", ...words.slice(0, 2));
  assert.equal((await grove("ca", "issue", "door", "-door", ...words)).code, 0);
  const read = async (): Promise<X509Certificate> =>
    new X509Certificate(await readFile(join(folder, "door", "door.crt")));
  const first = await read();
  const renewed = await grove("ca", "renew", "door.door", ...words);
  assert.equal(renewed.code, 0, renewed.err);
  const second = await read();
  assert.notEqual(second.serialNumber, first.serialNumber);
  assert.ok(second.publicKey.equals(first.publicKey));
});

test("'node token' prints the token alone; 'node join' says what is wrong with one, with its file and with the server", async () => {
  const folder = scratchFolder("metaserver-");
  const ca = ["-ca_dir", join(folder, "ca")];
  await grove("ca", "init", ...ca);
  const made = await runGrove(["node", "token", ...ca, "-id", "n1", "-ttl", "30m"]);
  assert.match(made.out, /^gjt_[0-9a-f]{16}\.[\w-]{43}\.[0-9a-f]{64}\.n1\n$/);
  assert.match((await grove("node", "token", ...ca, "-ttl", "8d")).err, /at most 7d/);
  const data = ["-data", join(folder, "n1")];
  const file = join(folder, "token");
  await writeFile(file, made.out);
  const nobody = await grove("node", "join", "-metaserver", "127.0.0.1:1", ...data, "-token_file", file);
  assert.match(nobody.err, /127\.0\.0\.1:1 refuses the connection/);
  assert.equal(nobody.code, 7);
  assert.equal(nobody.err.includes(made.out.trim()), false);
  await writeFile(file, "hello");
  assert.match(
    (await grove("node", "join", "-metaserver", "h:1", ...data, "-token_file", file)).err,
    /no join token/,
  );
  await writeFile(file, "");
  assert.match(
    (await grove("node", "join", "-metaserver", "h:1", ...data, "-token_file", file)).err,
    /is empty/,
  );
  assert.match(
    (await grove("node", "join", "-metaserver", "h:1", ...data)).err,
    /no token came on standard input/,
  );
});
