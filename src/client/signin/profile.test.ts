// Tests of profiles: flags before environment before profile; own files (decision D23, failure C-06).
import assert from "node:assert/strict";
import { chmodSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import {
  type Profile,
  parseAddress,
  parseAddresses,
  readClusterFile,
  resolveProfile,
  writeProfile,
} from "./profile.ts";

let folder = "";
let path = "";

beforeEach(() => {
  folder = scratchFolder("grove-profile-");
  path = join(folder, "profile.json");
});

const STORED: Profile = {
  metaservers: ["stored:50050"],
  ca: "STORED PEM",
  mock: false,
  idp: {
    issuer: "https://stored.example",
    clientId: "stored",
    authUrl: "https://a.example",
    tokenUrl: "https://t.example",
  },
  idpCa: "IDP PEM",
  fileserver: undefined,
};

test("what was written is read, from a file of one's own alone", async () => {
  await writeProfile(path, STORED);
  assert.deepEqual(await resolveProfile(path, {}, {}), STORED);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a flag counts before the environment, the environment before the profile (D23)", async () => {
  await writeProfile(path, STORED);
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, "FLAG PEM");
  const env = { SVC_METASERVER: "env1,env2:6000", SVC_AUTH_MOCK: "1", IDP_CLIENT_ID: "env" };
  const fromEnv = await resolveProfile(path, {}, env);
  assert.deepEqual(fromEnv.metaservers, ["env1:50050", "env2:6000"]);
  assert.equal(fromEnv.mock, true);
  assert.equal(fromEnv.idp?.clientId, "env");
  assert.equal(fromEnv.idp?.authUrl, "https://a.example");
  const fromFlags = await resolveProfile(path, { metaserver: "flag:7000", ca: caFile }, env);
  assert.deepEqual(fromFlags.metaservers, ["flag:7000"]);
  assert.equal(fromFlags.ca, "FLAG PEM");
});

test("another issuer does not inherit the addresses of the stored one", async () => {
  await writeProfile(path, STORED);
  const { idp } = await resolveProfile(path, {}, { IDP_ISSUER: "https://other.example" });
  assert.deepEqual(idp, {
    issuer: "https://other.example",
    clientId: "stored",
    authUrl: undefined,
    tokenUrl: undefined,
  });
});

test("only `true` and `1` switch mock mode on (C-06)", async () => {
  for (const [word, mock] of [
    ["true", true],
    ["1", true],
    ["TRUE", false],
    ["yes", false],
    [" 1", false],
    ["0", false],
    ["", false],
  ] as const) {
    assert.equal((await resolveProfile(path, {}, { SVC_AUTH_MOCK: word })).mock, mock, word);
  }
});

test("addresses are host:port, and nothing else becomes a connection or a file's name", () => {
  assert.deepEqual(parseAddresses("a, b:1 ,[::1]:2"), ["a:50050", "b:1", "[::1]:2"]);
  for (const bad of ["a:0", "a:65536", "a b:1", "../x:1", "a:", "http://a:1", "[::1", "a:1:2"]) {
    assert.throws(() => parseAddress(bad), { code: "USAGE" }, bad);
  }
});

test("a profile that others may read is refused, with what to type", async () => {
  await writeProfile(path, STORED);
  chmodSync(path, 0o644);
  await assert.rejects(resolveProfile(path, {}, {}), { code: "LOCAL_DENIED", message: /chmod 600/ });
});

test("a damaged profile is told, whatever flags say, since the mode and the authority are not known", async () => {
  for (const damaged of ["", "{", "null", "[]", '{"schema":1}', '{"metaservers":[1]}']) {
    writeFileSync(path, damaged, { mode: 0o600 });
    await assert.rejects(resolveProfile(path, { metaserver: "flag:7000" }, {}), {
      code: "LOCAL_FILE",
      message: /profile\.json: is damaged/,
    });
  }
});

test("a cluster file is copied with the certificate that it names; what is no cluster file is refused (D23)", async () => {
  const cluster = join(folder, "cluster.json");
  writeFileSync(join(folder, "ca.pem"), "THE PEM");
  const idp = {
    issuer: "http://127.0.0.1:8090",
    client_id: "c",
    auth_url: "u",
    token_url: "t",
    tokeninfo_url: "i",
  };
  writeFileSync(cluster, JSON.stringify({ metaserver: "m:1", ca: join(folder, "ca.pem"), mock: false, idp }));
  const profile = await readClusterFile(cluster);
  assert.deepEqual(
    [profile.metaservers, profile.ca, profile.mock, profile.idp?.clientId],
    [["m:1"], "THE PEM", false, "c"],
  );
  writeFileSync(cluster, "[]");
  await assert.rejects(readClusterFile(cluster), { code: "USAGE" });
  await assert.rejects(readClusterFile(join(folder, "none")), { code: "LOCAL_NOT_FOUND" });
});
