// Tests people whose e-mail address has changed, through the command line: what they keep, and what a newcomer finds.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { until } from "#testing/until.ts";
import { groveHere } from "./client-here.ts";
import { type MovingCluster, startMovingCluster } from "./moving-cluster.ts";
import { operatorHere } from "./operator-here.ts";
import { Person } from "./people.ts";
import { type Ended, grove } from "./processes.ts";

const LONG = { timeout: 240_000 };
/** Exit code of the client for a refusal of rights. */
const REFUSED = 4;

interface Bench {
  readonly cluster: MovingCluster;
  readonly root: Person;
  /** Signs in an account of the identity provider, which has told another address before or not. */
  come(person: Person, sub: string): Promise<Ended>;
  /** The same until it succeeds. */
  enter(name: string, sub: string): Promise<Person>;
  user(...words: string[]): Promise<Ended>;
  /** The same by a start of the program. */
  userByProgram(...words: string[]): Promise<Ended>;
  /** Confirms a change, and waits until both nodes have carried it out. */
  rename(from: Person, to: Person): Promise<void>;
}

async function openBench(t: TestContext): Promise<Bench> {
  const cluster = await startMovingCluster(t, { env: { SVC_ADMIN_EMAIL: "root@example.com" } });
  const come: Bench["come"] = (person, sub) => {
    const claims = { email: person.email, sub, iss: "idp.example.com" };
    const token = `mock-jwt.${Buffer.from(JSON.stringify(claims)).toString("base64url")}\n`;
    const env = { GROVE_CONFIG_DIR: person.folder, SVC_AUTH_MOCK: "1" };
    return groveHere(["login", "--metaserver", cluster.address, "--token-stdin"], { env, input: token });
  };
  const store = ["-meta", `sqlite:${join(cluster.meta.data, "metadata.db")}`];
  const user: Bench["user"] = (...words) => operatorHere(["user", ...words, ...store]);
  const waiting = async (): Promise<boolean> =>
    (await user("renames")).stdout === "Nobody waits for a new address.\n";
  return {
    cluster,
    root: await cluster.signIn("root"),
    come,
    async enter(name, sub) {
      const person = new Person(cluster.folder, name);
      await until(async () => (await come(person, sub)).code === 0, `${name} signs in`);
      return person;
    },
    user,
    userByProgram: (...words) => grove(["user", ...words, ...store]),
    async rename(from, to) {
      const done = await user("rename", from.email, to.email, "-confirm");
      assert.equal(done.code, 0, done.stderr);
      await until(waiting, "all nodes have carried it out");
    },
  };
}

test(
  "a person with a new address keeps files, trash, quota, shares, links, roles and app passwords; whoever has the old address next finds nothing",
  LONG,
  async (t) => {
    const { cluster, root, come, enter, user, userByProgram, rename } = await openBench(t);
    const [alice, bob] = [await enter("alice", "a1"), await enter("bob", "b1")];
    const file = join(cluster.folder, "file");
    await writeFile(file, "what alice wrote");
    await alice.ok("mkdir", "/docs");
    await alice.ok("put", file, "/docs/file");
    await alice.ok("put", file, "/gone");
    await alice.ok("rm", "/gone");
    await alice.ok("share", "/docs", bob.email);
    await bob.ok("mkdir", "/ours");
    await bob.ok("share", "/ours", alice.email);
    await alice.ok("put", file, `${bob.email}:/ours/from-alice`);
    await alice.ok("app-password", "create", "laptop");
    await alice.ok("link", "create", "/docs");
    await root.ok("group", "create", "atlas");
    await root.ok("group", "add", "atlas", alice.email, "--role", "write");
    await until(async () => (await alice.grove("ls", "atlas@group:/")).code === 0, "the role");
    const home = cluster.homeOf(alice);
    const place = (await alice.ok("roots", "--json")).match(/"address": ?"(?<at>[^"]+)"/)?.groups?.["at"];
    await root.ok(
      "quota",
      "set",
      alice.email,
      "40MB",
      ...(place === undefined ? [] : ["--fileserver", place]),
    );

    const renamed = new Person(cluster.folder, "alice.new");
    const waits = await come(renamed, "a1");
    assert.equal(waits.code, 2, waits.stderr);
    assert.match(
      waits.stderr,
      /known here as alice@example\.com, and your sign-in now says alice\.new@example\.com/,
    );
    assert.match(waits.stderr, /Ask root@example\.com to confirm it/);
    assert.equal(await alice.ok("cat", "/docs/file"), "what alice wrote", "nothing has changed so far");
    const listed = await userByProgram("renames");
    assert.match(
      listed.stdout,
      /alice@example\.com -> alice\.new@example\.com {2}the account a1 of idp\.example\.com/,
    );
    const shown = await userByProgram("rename", alice.email, renamed.email);
    assert.match(shown.stdout, /Nothing was changed/);
    const wrong = await user("rename", bob.email, renamed.email, "-confirm");
    assert.match(wrong.stderr, /nobody known as bob@example\.com has signed in/);
    await rename(alice, renamed);

    assert.equal((await come(renamed, "a1")).code, 0);
    assert.equal(cluster.homeOf(renamed), home);
    assert.equal(await renamed.ok("cat", "/docs/file"), "what alice wrote");
    assert.match(await renamed.ok("trash", "ls"), /gone/);
    await renamed.ok("trash", "restore", "/gone");
    assert.match(await renamed.ok("quota"), /40 MiB/);
    assert.equal(await renamed.ok("cat", `${bob.email}:/ours/from-alice`), "what alice wrote");
    assert.match(await bob.ok("stat", "/ours/from-alice"), /alice\.new@example\.com/);
    assert.equal(await bob.ok("cat", `${renamed.email}:/docs/file`), "what alice wrote");
    assert.match(await bob.ok("share", "--list", "/"), /alice\.new@example\.com/);
    await bob.refused(REFUSED, "cat", `${alice.email}:/docs/file`);
    assert.match(await renamed.ok("app-password", "list"), /laptop/);
    assert.match(await renamed.ok("link", "list"), /docs/);
    await renamed.ok("put", file, "atlas@group:/mine");
    assert.notEqual((await alice.grove("ls")).code, 0, "the sessions of the old address are over");

    const newcomer = await enter("alice", "m9");
    assert.equal(await newcomer.ok("ls"), "");
    await newcomer.refused(REFUSED, "ls", `${bob.email}:/ours`);
    await newcomer.refused(REFUSED, "ls", `${renamed.email}:/docs`);
    await newcomer.refused(REFUSED, "ls", "atlas@group:/");
    assert.doesNotMatch(await newcomer.ok("quota"), /40 MiB/);
    assert.doesNotMatch(await newcomer.ok("app-password", "list"), /laptop/);
    assert.equal((await renamed.ok("ls")).includes("docs"), true);
    // A restarted node reads every change again.
    for (const node of Object.values(cluster.nodes)) await node.restart();
    await newcomer.ok("put", file, "/newcomers");
    assert.equal(await renamed.ok("cat", "/docs/file"), "what alice wrote");
    await cluster.stop();
    for (const { data } of Object.values(cluster.nodes)) {
      const checked = await grove(["fsck", "-data", data]);
      assert.equal(checked.code, 0, checked.stdout + checked.stderr);
    }
  },
);

test(
  "a change that a kill cuts goes on at the next start, also for a node that was away; until then nobody else gets the address",
  LONG,
  async (t) => {
    const { cluster, come, enter, user } = await openBench(t);
    let holder = await enter("step0", "s1");
    const bob = await enter("bob", "b1");
    await holder.withInput("mine", "write", "/file");
    await bob.withInput("shared", "write", "/shared");
    await bob.ok("share", "/shared", holder.email);
    const waiting = async (): Promise<string> => (await user("renames")).stdout;
    for (const step of [1, 2, 3]) {
      const next = new Person(cluster.folder, `step${step}`);
      assert.equal((await come(next, "s1")).code, 2);
      // One of both is away, the other one is killed at whatever it does then.
      await cluster.nodes["n2"]?.end("SIGKILL");
      const done = await user("rename", holder.email, next.email, "-confirm");
      assert.equal(done.code, 0, done.stderr);
      for (let kill = 0; kill < step; kill++) await cluster.nodes["n1"]?.restart();
      assert.match(await waiting(), /confirmed; .*n2/);
      const newcomer = new Person(cluster.folder, `step${step - 1}`);
      assert.match((await come(newcomer, `m${step}`)).stderr, /was somebody else's until a moment ago/);
      await cluster.nodes["n2"]?.restart();
      await until(async () => (await waiting()).startsWith("Nobody waits"), "both have carried it out");
      holder = await enter(`step${step}`, "s1");
      assert.equal(await holder.ok("cat", "/file"), "mine");
      assert.equal(await holder.ok("cat", `${bob.email}:/shared`), "shared");
      await enter(`step${step - 1}`, `m${step}`);
      await newcomer.refused(REFUSED, "cat", `${bob.email}:/shared`);
    }
    await cluster.stop();
    for (const { data } of Object.values(cluster.nodes)) {
      const checked = await grove(["fsck", "-data", data]);
      assert.equal(checked.code, 0, checked.stdout + checked.stderr);
    }
  },
);
