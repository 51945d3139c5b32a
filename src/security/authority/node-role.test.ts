// Tests of a data folder's past role, the starts that would lose part of it, and the commands that serve it
// as before.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { joinedTlsPaths, writeJoinedNode } from "./joined-node.ts";
import {
  commandsToServe,
  lossesOf,
  type NodeRole,
  type PastRole,
  pastInWords,
  readPastRole,
  writeNodeRole,
} from "./node-role.ts";

const MEMBER: NodeRole = {
  id: "n1",
  metaservers: ["meta.example.net:50050"],
  advertise: "n1.example.net:50051",
  hasTls: true,
};
const ALONE: NodeRole = { id: "host7", metaservers: [], advertise: undefined, hasTls: false };
const EMPTY: PastRole = { role: undefined, joined: undefined, clusterId: undefined, hasKey: false };
const JOINED = { id: "n1", metaservers: MEMBER.metaservers, advertise: MEMBER.advertise };

test("a folder that is missing or new has no past, and every start of it is fine", async () => {
  const data = scratchFolder("grove role-");
  for (const path of [data, join(data, "none")]) assert.deepEqual(await readPastRole(path), EMPTY);
  for (const role of [MEMBER, ALONE]) assert.deepEqual(lossesOf(EMPTY, role), []);
});

test("what a folder was served as comes back, with the cluster that has taken it and what join left", async () => {
  const data = scratchFolder("grove role-");
  await writeNodeRole(data, MEMBER);
  const written = readFileSync(join(data, "served_as.json"));
  await writeNodeRole(data, MEMBER);
  assert.deepEqual(readFileSync(join(data, "served_as.json")), written);
  assert.deepEqual(await readPastRole(data), { ...EMPTY, role: MEMBER });
  writeFileSync(join(data, "cluster_id"), "01CLUSTER\n");
  await writeJoinedNode(data, JOINED);
  const { key } = joinedTlsPaths(data);
  mkdirSync(join(key, ".."));
  assert.deepEqual(await readPastRole(data), {
    role: MEMBER,
    joined: JOINED,
    clusterId: "01CLUSTER",
    hasKey: false,
  });
  writeFileSync(key, "");
  assert.equal((await readPastRole(data)).hasKey, true);
  await writeNodeRole(data, ALONE);
  assert.deepEqual((await readPastRole(data)).role, ALONE);
});

test("a file that says nothing, or is of a newer Grove, is no reason to believe that there was nothing", async () => {
  const data = scratchFolder("grove role-");
  const path = join(data, "served_as.json");
  for (const text of [
    "",
    "{",
    "null",
    "[]",
    '{"schema":2}',
    '{"schema":1,"id":"n1"}',
    '{"schema":1,"id":7}',
  ]) {
    writeFileSync(path, text);
    await assert.rejects(readPastRole(data), (error) => isGroveError(error, "BAD_ARGUMENT"), text);
  }
});

test("less is: alone where it was a cluster's, without TLS where it had some, under another id (D19)", () => {
  const past: PastRole = { ...EMPTY, role: MEMBER, clusterId: "01CLUSTER" };
  assert.deepEqual(lossesOf(past, MEMBER), []);
  assert.deepEqual(lossesOf(past, { ...MEMBER, metaservers: ["elsewhere.example.net:1"] }), []);
  assert.deepEqual(lossesOf(past, { ...MEMBER, metaservers: [] }), ["alone"]);
  assert.deepEqual(lossesOf(past, { ...MEMBER, hasTls: false }), ["without TLS"]);
  assert.deepEqual(lossesOf(past, { ...MEMBER, id: "n2" }), ["as n2"]);
  assert.deepEqual(lossesOf(past, ALONE), ["alone", "without TLS", "as host7"]);
  // No cluster knows it yet: a mistyped flag of the first start may be corrected.
  assert.deepEqual(lossesOf({ ...past, clusterId: undefined }, { ...MEMBER, id: "n2" }), []);
});

test("what stood alone may be any host's and any cluster's, and keeps its TLS", () => {
  const past: PastRole = { ...EMPTY, role: { ...ALONE, hasTls: true }, clusterId: "01CLUSTER" };
  assert.deepEqual(lossesOf(past, { ...ALONE, hasTls: true, id: "host8" }), []);
  assert.deepEqual(lossesOf(past, { ...MEMBER, id: "n9" }), []);
  assert.deepEqual(lossesOf(past, ALONE), ["without TLS"]);
});

test("of a folder that was served before this was written down, the cluster and what join left count", () => {
  const past: PastRole = { ...EMPTY, clusterId: "01CLUSTER" };
  assert.deepEqual(lossesOf(past, ALONE), ["alone"]);
  assert.deepEqual(lossesOf(past, { ...MEMBER, hasTls: false }), []);
  assert.equal(pastInWords(past), "a node of cluster 01CLUSTER");
  assert.deepEqual(lossesOf({ ...past, joined: JOINED }, ALONE), ["alone", "without TLS", "as host7"]);
});

test("the commands serve it as it was: with what join left, with a new key where that is gone, with flags, or alone", () => {
  const joined: PastRole = { role: MEMBER, joined: JOINED, clusterId: "01CLUSTER", hasKey: true };
  assert.equal(pastInWords(joined), "n1 of the cluster at meta.example.net:50050, with TLS");
  assert.deepEqual(commandsToServe(joined, "/srv/the data"), ["grove fileserver -data '/srv/the data'"]);
  assert.deepEqual(commandsToServe({ ...joined, hasKey: false }, "/srv/grove"), [
    "grove node token -ca_dir FOLDER -id n1 > n1.token",
    "grove node join -metaserver meta.example.net:50050 -data /srv/grove -id n1 -advertise n1.example.net:50051 -token_file n1.token",
    "grove fileserver -data /srv/grove",
  ]);
  const flags: PastRole = { ...joined, joined: undefined };
  assert.deepEqual(commandsToServe(flags, "/srv/grove"), [
    "grove fileserver -data /srv/grove -id n1 -metaserver meta.example.net:50050 -advertise n1.example.net:50051 " +
      "-tls_cert FILE -tls_key FILE -tls_ca FILE",
  ]);
  assert.deepEqual(commandsToServe({ ...EMPTY, role: ALONE }, "d"), ["grove fileserver -data d -id host7"]);
  assert.equal(pastInWords({ ...EMPTY, role: ALONE }), "host7");
  assert.deepEqual(commandsToServe(EMPTY, "d"), ["grove fileserver -data d"]);
  assert.match(
    commandsToServe({ ...EMPTY, clusterId: "01CLUSTER" }, "d")[1] ?? "",
    /-metaserver HOST:50050 -data d -id ID /,
  );
});
