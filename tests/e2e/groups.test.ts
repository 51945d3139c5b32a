// Tests roots of groups with real processes: roles, quota, moves, claims that change, and a role that is lost.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { GROUPS_FILE } from "#security/identity/known-groups.ts";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";
import { until } from "#testing/until.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { checkData } from "./checked-data.ts";
import { type MovingCluster, startMovingCluster } from "./moving-cluster.ts";
import type { Person } from "./people.ts";
import { grove } from "./processes.ts";

const ATLAS = "atlas@group";
const QUOTA = 10_000_000;
/** Exit codes of the client. */
const [REFUSED, FULL] = [4, 5];

interface Team {
  readonly cluster: MovingCluster;
  readonly alice: Person;
  readonly bob: Person;
  readonly carol: Person;
}

/** A cluster whose administrator alice has made a group with a quota, and two others signed in. */
async function startTeam(t: TestContext): Promise<Team> {
  const cluster = await startMovingCluster(t, {
    env: { SVC_ADMIN_EMAIL: "alice@example.com" },
    metaWords: ["-groups_claim", "groups"],
  });
  const [alice, bob, carol] = [
    await cluster.signIn("alice"),
    await cluster.signIn("bob"),
    await cluster.signIn("carol"),
  ];
  await alice.ok("group", "create", "atlas", "--quota", String(QUOTA));
  return { cluster, alice, bob, carol };
}

async function reaches(person: Person, path: string): Promise<boolean> {
  return (await person.grove("ls", path)).code === 0;
}

function tokenOf(email: string, groups: readonly string[], iat: number): string {
  return `mock-jwt.${Buffer.from(JSON.stringify({ email, groups, iat })).toString("base64url")}`;
}

/** Lets a person's command line keep a token, such as one that names a group. */
async function signInFor({ folder }: Person, token: string, metaserver: string): Promise<void> {
  const { code, stderr } = await grove(["login", "--metaserver", metaserver, "--token-stdin"], {
    env: { GROVE_CONFIG_DIR: folder, SVC_AUTH_MOCK: "1" },
    input: `${token}\n`,
  });
  assert.equal(code, 0, stderr);
}

async function usedBytes(person: Person): Promise<number> {
  const quota = JSON.parse(await person.ok("quota", ATLAS, "--json")) as Record<string, unknown>;
  return Number(quota["used_bytes"]);
}

test("members of a group read, write and manage its root as their roles say, to the byte of its quota and over a move", {
  timeout: 240_000,
}, async (t: TestContext) => {
  const { cluster, alice, bob, carol } = await startTeam(t);
  const dave = await cluster.signIn("dave");
  await alice.ok("group", "add", "atlas", bob.email, "--role", "read");
  await alice.ok("group", "add", "atlas", carol.email, "--role", "write");
  for (const person of [bob, carol]) await until(() => reaches(person, `${ATLAS}:/`), "a role");
  assert.match(await carol.ok("roots"), /atlas@group:\/ .*\n.*your role is write/);

  const file = join(cluster.folder, "plan");
  await writeFile(file, "the plan");
  await carol.ok("mkdir", `${ATLAS}:/plans`);
  await carol.ok("put", file, `${ATLAS}:/plans/plan`);
  assert.equal(await bob.ok("cat", `${ATLAS}:/plans/plan`), "the plan");
  for (const words of [
    ["put", file, `${ATLAS}:/plans/other`],
    ["rm", `${ATLAS}:/plans/plan`],
    ["mkdir", `${ATLAS}:/more`],
    ["share", `${ATLAS}:/plans`, dave.email],
  ]) {
    await bob.refused(REFUSED, ...words);
  }
  assert.match(
    await bob.refused(REFUSED, "put", file, `${ATLAS}:/x`),
    /[Yy]our role in this group is to read/,
  );
  // A stranger's answer is the same for what is there and for what is not.
  const answers = await Promise.all(
    [`${ATLAS}:/plans/plan`, `${ATLAS}:/nothing`, "nothing@group:/plans"].map((path) =>
      dave.refused(REFUSED, "cat", path),
    ),
  );
  assert.equal(new Set(answers.map((text) => text.replaceAll(/\S+@group\S*/g, ""))).size, 1, String(answers));
  await carol.refused(REFUSED, "share", `${ATLAS}:/plans`, dave.email);
  await alice.ok("group", "add", "atlas", carol.email, "--role", "manage");
  await until(
    async () => (await carol.grove("share", `${ATLAS}:/plans`, dave.email)).code === 0,
    "the role to manage",
  );
  await until(() => reaches(dave, `${ATLAS}:/plans`), "the share");
  assert.match(
    await carol.ok("share", `${ATLAS}:/plans`, "eve@example.com"),
    /eve@example\.com finds it as atlas@group:\/plans; .* quota of atlas@group\./,
  );
  const made = (await carol.grove("link", "create", `${ATLAS}:/plans`)).stderr;
  const end = /To end it: grove (link revoke .+)\n/.exec(made)?.[1] ?? made;
  assert.match(await carol.ok(...end.split(" ")), /^Revoked /u);
  assert.match(await carol.ok("why", `${ATLAS}:/plans`, "delete"), /role in the group atlas/);

  const left = QUOTA - (await usedBytes(carol));
  const exact = join(cluster.folder, "exact");
  await writeFile(exact, Buffer.alloc(left + 1, "x"));
  await carol.refused(FULL, "put", exact, `${ATLAS}:/exact`);
  await writeFile(exact, Buffer.alloc(left, "x"));
  await carol.ok("put", exact, `${ATLAS}:/exact`);
  assert.equal(await usedBytes(carol), QUOTA);
  await carol.refused(FULL, "put", file, `${ATLAS}:/one-more`);

  const source = cluster.homeOf({ email: ATLAS });
  await cluster.move(ATLAS, "-to", source === "n1" ? "n2" : "n1", "-wait");
  assert.notEqual(cluster.homeOf({ email: ATLAS }), source);
  assert.equal(await bob.ok("cat", `${ATLAS}:/plans/plan`), "the plan");
  assert.equal(await usedBytes(carol), QUOTA);
  const removed = await carol.grove("rm", `${ATLAS}:/exact`);
  const way = / To bring it back: grove (trash restore \S+)\n/.exec(removed.stderr)?.[1] ?? removed.stderr;
  await carol.ok(...way.split(" "));
  await carol.ok("rm", `${ATLAS}:/exact`);
  const listed = await carol.ok("trash", "ls", ATLAS);
  assert.match(listed, /by you +\/exact\n$/);
  await bob.refused(REFUSED, "trash", "ls", ATLAS);
  await bob.refused(REFUSED, "trash", "empty", ATLAS, "--yes");
  await carol.ok("trash", "restore", `${ATLAS}:${listed.split(" ", 1)[0] ?? ""}`);
  await carol.ok("rm", `${ATLAS}:/exact`);
  assert.match(
    (await carol.grove("trash", "empty", `${ATLAS}:/`, "--yes")).stderr,
    /Deleted for good: 1 item/,
  );
  assert.equal(await carol.ok("trash", "ls", ATLAS), "");
  await cluster.move(ATLAS, "-confirm");

  await carol.ok("group", "remove", "atlas", bob.email);
  await until(async () => !(await reaches(bob, `${ATLAS}:/`)), "the end of a role");
  // A group made anew over the files of an earlier one has no limits of that one.
  await alice.ok("quota", "set", ATLAS, "1GiB", "--inodes", "7");
  await alice.ok("group", "delete", "atlas");
  await alice.ok("group", "create", "atlas", "--with-files");
  await alice.ok("group", "add", "atlas", bob.email, "--role", "read");
  await until(async () => reaches(bob, `${ATLAS}:/`), "a role in the new group");
  const limits = JSON.parse(await bob.ok("quota", ATLAS, "--json")) as Record<string, unknown>;
  assert.deepEqual([limits["quota_source"], limits["inode_limit_source"]], ["default", "default"]);
  await cluster.stop();
  for (const { data } of Object.values(cluster.nodes)) await checkData(data);
  await rm(cluster.folder, { recursive: true, force: true });
});

test("twenty people come and go by a claim of their ID tokens, within a minute, and over a restart without a MetaServer", {
  timeout: 240_000,
}, async (t: TestContext) => {
  const { cluster, alice, bob } = await startTeam(t);
  await alice.ok("group", "add", "atlas", "--claim", "eng", "--role", "write");
  const channel = new GrpcChannel({ addresses: [cluster.address] });
  t.after(() => channel.close());
  const meta = createClient(MetaServer, channel);
  const people = Array.from({ length: 20 }, (_, index) => `p${index}@example.com`);
  const signIn = async (email: string, groups: string[], iat: number): Promise<void> => {
    await meta.getRoots({}, { metadata: { authorization: `Bearer ${tokenOf(email, groups, iat)}` } });
  };
  const membersAt = async (): Promise<string[]> => {
    const { groups } = await meta.listGroupRoles({ fsId: "n1" });
    return groups.flatMap(({ members }) => members.map(({ username }) => username));
  };
  const nowSeconds = Math.floor(Date.now() / 1_000);
  for (const email of people) await signIn(email, ["eng", "all"], nowSeconds - 30);
  assert.deepEqual(await membersAt(), people.toSorted());
  await signInFor(bob, tokenOf(bob.email, ["eng"], nowSeconds), cluster.address);
  await until(() => reaches(bob, `${ATLAS}:/`), "the role by claim");
  for (const email of people.slice(5)) await signIn(email, ["all"], nowSeconds - 20);
  assert.deepEqual(await membersAt(), [bob.email, ...people.slice(0, 5)].toSorted());

  // What is known holds while no MetaServer is there, over a restart of the node too, once it is on its disk.
  for (const { data } of Object.values(cluster.nodes)) {
    await until(async () => {
      const kept = await readFile(join(data, GROUPS_FILE), "utf8").catch(() => "");
      return kept.includes(bob.email) && !kept.includes("p5@");
    }, "the roles on the disk");
  }
  await cluster.meta.end("SIGKILL");
  for (const node of Object.values(cluster.nodes)) await node.restart();
  await until(() => reaches(bob, `${ATLAS}:/`), "the role without a MetaServer");
  await cluster.meta.start();
  await signIn(bob.email, [], nowSeconds + 1);
  await until(async () => !(await reaches(bob, `${ATLAS}:/`)), "the end of the role by claim");
});

/** Lets carol upload without end, and takes the right away amid that; returns what she reads, and after how long. */
async function refusedAmid(
  t: TestContext,
  { cluster }: Pick<Team, "cluster">,
  takeAway: () => Promise<unknown>,
): Promise<{ readonly said: string; readonly afterMs: number }> {
  const upload = spawn(GROVE_LAUNCHER, ["write", `${ATLAS}:/long`], {
    env: { ...process.env, SVC_AUTH_MOCK: "1", GROVE_CONFIG_DIR: join(cluster.folder, "carol") },
    stdio: ["pipe", "ignore", "pipe"],
  });
  t.after(() => upload.kill("SIGKILL"));
  let said = "";
  upload.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  upload.stdin.on("error", () => undefined);
  const exited = once(upload, "exit");
  const piece = Buffer.alloc(1_000_000, "long ");
  const files = await cluster.chunkFiles({ email: ATLAS });
  await until(async () => {
    upload.stdin.write(piece);
    return (await cluster.chunkFiles({ email: ATLAS })) > files;
  }, "the first chunks of an upload");
  await takeAway();
  const lostMs = performance.now();
  await until(() => {
    if (upload.exitCode === null) upload.stdin.write(piece);
    return upload.exitCode !== null;
  }, "the end of the upload");
  await exited;
  const afterMs = performance.now() - lostMs;
  assert.equal(upload.exitCode, REFUSED, said);
  await until(async () => (await cluster.chunkFiles({ email: ATLAS })) === files, "the end of its chunks");
  return { said, afterMs };
}

test("a role that is lost in the middle of an upload ends it with the reason, and nothing of it stays", {
  timeout: 240_000,
}, async (t: TestContext) => {
  const team = await startTeam(t);
  const { alice, bob, carol } = team;
  await alice.ok("group", "add", "atlas", bob.email, "--role", "manage");
  await bob.ok("group", "add", "atlas", carol.email, "--role", "write");
  for (const person of [bob, carol]) await until(() => reaches(person, `${ATLAS}:/`), "a role");
  await alice.ok("quota", "set", ATLAS, "1GiB");
  const before = await usedBytes(bob);
  const { said } = await refusedAmid(t, team, () =>
    bob.ok("group", "add", "atlas", carol.email, "--role", "read"),
  );
  assert.match(said, /[Yy]our role in the group atlas no longer lets you do this/);
  await until(async () => (await usedBytes(bob)) === before, "the end of what it held");
  await carol.ok("ls", `${ATLAS}:/`);
});

test("of twenty people whose token no longer names the group one uploads: that ends within a minute, with the reason, and nothing is counted", {
  timeout: 240_000,
}, async (t: TestContext) => {
  const team = await startTeam(t);
  const { cluster, alice, bob, carol } = team;
  await alice.ok("group", "add", "atlas", "--claim", "eng", "--role", "write");
  await alice.ok("group", "add", "atlas", bob.email, "--role", "read");
  await alice.ok("quota", "set", ATLAS, "1GiB");
  const channel = new GrpcChannel({ addresses: [cluster.address] });
  t.after(() => channel.close());
  const meta = createClient(MetaServer, channel);
  const second = Math.floor(Date.now() / 1_000);
  const signIn = (email: string, groups: string[], iat: number): Promise<unknown> =>
    meta.getRoots({}, { metadata: { authorization: `Bearer ${tokenOf(email, groups, iat)}` } });
  const others = Array.from({ length: 19 }, (_, index) => `p${index}@example.com`);
  for (const email of others) await signIn(email, ["eng"], second);
  await signInFor(carol, tokenOf(carol.email, ["eng"], second), cluster.address);
  for (const person of [bob, carol]) await until(() => reaches(person, `${ATLAS}:/`), "a role");
  const before = await usedBytes(bob);
  const { said, afterMs } = await refusedAmid(t, team, async () => {
    for (const email of [...others.slice(0, 9), carol.email]) await signIn(email, ["law"], second + 1);
  });
  assert.ok(afterMs < 60_000, `${afterMs} ms`);
  assert.match(said, /[Yy]our role in the group atlas no longer lets you do this/);
  await until(async () => (await usedBytes(bob)) === before, "the end of what it held");
  assert.equal(await bob.ok("ls", `${ATLAS}:/`), "");
  await carol.refused(REFUSED, "ls", `${ATLAS}:/`);
  const { groups } = await meta.listGroupRoles({ fsId: "n1" });
  const members = groups.flatMap(({ members: all }) => all.map(({ username }) => username));
  assert.deepEqual(members, [bob.email, ...others.slice(9)].toSorted());
});

test("a root that is handed over to a group is its members' within their roles, at its owner's exact quota, with its history", {
  timeout: 240_000,
}, async (t: TestContext) => {
  const { cluster, alice, bob, carol } = await startTeam(t);
  const dave = await cluster.signIn("dave");
  await alice.ok("group", "add", "atlas", bob.email, "--role", "read");
  await alice.ok("group", "add", "atlas", carol.email, "--role", "write");
  await dave.withInput("12345", "write", "/report");
  await dave.withInput("gone", "write", "/old");
  await dave.ok("rm", "/old");
  const usedBy = async (person: Person, root: string): Promise<unknown> =>
    (JSON.parse(await person.ok("quota", root, "--json")) as Record<string, unknown>)["used_bytes"];
  assert.equal(await usedBy(dave, dave.email), 9);
  await alice.refused(1, "user", "hand-over", dave.email, "--to", "none@group", "--reason", "goes on");
  await alice.ok("user", "hand-over", dave.email, "--to", ATLAS, "--reason", "goes on", "--with-delete");
  for (const person of [bob, carol]) await until(() => reaches(person, `${dave.email}:/`), "the root");
  assert.equal(await bob.ok("cat", `${dave.email}:/report`), "12345");
  await bob.refused(REFUSED, "rm", `${dave.email}:/report`);
  await carol.withInput("1234567", "write", `${dave.email}:/more`);
  await carol.refused(REFUSED, "share", `${dave.email}:/more`, bob.email);
  assert.equal(await usedBy(carol, dave.email), 16);
  assert.equal(await usedBy(dave, dave.email), 16);
  await dave.ok("trash", "restore", "/old");
  assert.equal(await carol.ok("cat", `${dave.email}:/old`), "gone");
  await alice.ok("user", "hand-over", dave.email, "--to", ATLAS, "--end");
  await until(async () => !(await reaches(carol, `${dave.email}:/`)), "the end");
  assert.equal(await dave.ok("cat", "/more"), "1234567");
});
