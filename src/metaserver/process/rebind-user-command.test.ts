// `grove user rebind` and `remap` on the command line, beside the MetaServer that has the store open.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { commandHere } from "#client/terminal/command-here.fixture.ts";
import type { Terminal } from "#client/terminal/terminal.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { type Outcome, runGrove } from "#testing/run-grove.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { addRebindVerbs } from "./rebind-user-command.ts";

const TIMEOUT = { timeout: 120_000 };
const OLD = "https://old.example";
const NEW = "https://new.example";

/** `grove user` with the verbs of this room alone. */
function userCommand(terminal: Terminal): Command {
  const group = new Command("user");
  addRebindVerbs(group, terminal);
  return group;
}

interface Bench {
  readonly directory: Directory;
  readonly folder: string;
  user(input: string, ...words: string[]): Promise<Outcome>;
  /** The same by a start of the program. */
  started(input: string, ...words: string[]): Promise<Outcome>;
  subjectOf(username: string): Promise<string>;
}

/** A store with three users of the old provider, and the command on it. */
async function openBench(t: TestContext): Promise<Bench> {
  const folder = scratchFolder("metaserver-");
  const url = `sqlite:${join(folder, "metadata.db")}`;
  const env = { ...process.env, SVC_ADMIN_EMAIL: "" };
  const directory = await openDirectory(url, { clock: systemClock });
  t.after(() => directory.close());
  for (const user of ["bob", "eve", "root"]) {
    await directory.admitSubject(`${user}@example.com`, { issuer: "old.example", subject: user });
  }
  return {
    directory,
    folder,
    user: (input, ...words) => commandHere(userCommand, [...words, "-meta", url], { stdin: input, env }),
    started: (input, ...words) => runGrove(["user", ...words, "-meta", url], { input, env }),
    async subjectOf(username) {
      const { issuer, subject } = (await directory.findSubject(username)) ?? { issuer: "?", subject: "?" };
      return `${subject} of ${issuer}`;
    },
  };
}

test(
  "remap shows who would go over and changes nothing; with -apply and their number they do",
  TIMEOUT,
  async (t) => {
    const bench = await openBench(t);
    const words = [
      "remap",
      "-from_issuer",
      OLD,
      "-to_issuer",
      NEW,
      "-by",
      "email",
      "-domains",
      "example.com",
    ];
    const unsaid = await bench.user("", ...words);
    assert.equal(unsaid.code, 1);
    assert.match(unsaid.err, /say who administrators are/);
    const all = [...words, "-administrators", "root@example.com"];
    const dry = await bench.user("", ...all);
    assert.equal(dry.code, 0, dry.err);
    assert.match(
      dry.out,
      /bob@example\.com {2}bob -> the first who comes from new\.example with this address/,
    );
    assert.match(
      dry.out,
      /root@example\.com {2}stays: an administrator: grove user rebind root@example\.com/,
    );
    assert.match(
      dry.out,
      /2 users would go over, 1 stays\.\nNothing was changed\. To do it, type the same with -apply\./,
    );
    assert.equal(await bench.subjectOf("bob@example.com"), "bob of old.example");
    const wrong = await bench.user("3\n", ...all, "-apply");
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /that is not their number; nothing was changed/);
    assert.equal(await bench.subjectOf("bob@example.com"), "bob of old.example");
    const done = await bench.started("2\n", ...all, "-apply");
    assert.equal(done.code, 0, done.err);
    assert.match(done.out, /2 users went over\.\nFileServers that run hear of it within 5 s/);
    assert.equal(await bench.subjectOf("bob@example.com"), " of new.example");
    assert.equal(await bench.subjectOf("root@example.com"), "root of old.example");
  },
);

test("remap takes confirmed pairs, and refuses to guess how", TIMEOUT, async (t) => {
  const bench = await openBench(t);
  const words = ["remap", "-from_issuer", OLD, "-to_issuer", NEW, "-administrators", "none"];
  for (const [more, said] of [
    [[], /say how users are matched/],
    [["-by", "email"], /-by email needs -domains/],
    [["-by", "name"], /-by is 'email'/],
  ] as const) {
    const refused = await bench.user("", ...words, ...more);
    assert.deepEqual([refused.code, said.test(refused.err)], [1, true], refused.err);
  }
  const pairs = join(bench.folder, "pairs.csv");
  await writeFile(pairs, "bob,8f3a\nnobody,1\n");
  const done = await bench.user("1\n", ...words, "-pairs", pairs, "-apply", "-json");
  assert.equal(done.code, 0, done.err);
  const { applied, matched } = JSON.parse(done.out) as { applied: boolean; matched: { username: string }[] };
  assert.deepEqual([applied, matched.map(({ username }) => username)], [true, ["bob@example.com"]]);
  assert.equal(await bench.subjectOf("bob@example.com"), "8f3a of new.example");
  assert.equal(await bench.subjectOf("eve@example.com"), "eve of old.example");
});

test("rebind gives one user's files to another account, an administrator's too", TIMEOUT, async (t) => {
  const bench = await openBench(t);
  const to = ["-issuer", NEW, "-subject", "9"];
  const done = await bench.user("", "rebind", "Root@example.com", ...to);
  assert.equal(done.code, 0, done.err);
  assert.match(
    done.out,
    /^root@example\.com is the account 9 of new\.example from now on, and no longer the account root of old\.example\./,
  );
  assert.equal(await bench.subjectOf("root@example.com"), "9 of new.example");
  assert.match((await bench.user("", "rebind", "root@example.com", ...to)).err, /is that account's already/);
  const nobody = await bench.user("", "rebind", "new@example.com", ...to);
  assert.equal(nobody.code, 1);
  assert.match(nobody.err, /new@example\.com is nobody's yet/);
});
