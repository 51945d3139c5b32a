// Tests of shares at two command lines: read, overwrite, refused delete, unshare while reading (4.5, D13).
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Dice } from "./busy-folder.ts";
import { startPeople } from "./people.ts";

const BIG_BYTES = 60_000_000;

test("two users share a folder across nodes, until one of them ends it in the middle of a download", {
  timeout: 240_000,
}, async (t) => {
  const { alice, bob, carol, folder } = await startPeople(t);
  const local = (name: string): string => join(folder, name);
  const content = new Dice("shares").bytes(BIG_BYTES);
  await writeFile(local("big"), content);
  await writeFile(local("note"), "first\n");
  await alice.ok("mkdir", "-p", "/docs/deep");
  await alice.ok("put", "-q", local("note"), "/docs/deep/note");
  await alice.ok("put", "-q", local("big"), "/docs/big");
  const docs = `${alice.email}:/docs`;

  await t.test("what is not shared looks as if it were not there", async () => {
    const answers = new Set<string>();
    for (const [root, path] of [
      [alice.email, "/docs"],
      [alice.email, "/none"],
      ["nobody@example.com", "/docs"],
    ]) {
      const place = `${root}:${path}`;
      answers.add((await bob.refused(4, "ls", place)).replaceAll(place, "PLACE"));
    }
    assert.equal(answers.size, 1, [...answers].join(""));
  });

  await t.test("share: what it covers, who pays, and what others see of it", async () => {
    const said = await alice.ok("share", "/docs", bob.email);
    assert.match(said, /^Shared \/docs with bob@example\.com: 4 files and folders\.$/m);
    assert.match(said, /counts in your quota/);
    assert.match(await alice.ok("share", "/docs", bob.email), /shared with bob@example\.com already/);
    const reply: unknown = JSON.parse(await alice.ok("share", "--json", "/docs", carol.email));
    assert.deepEqual(reply, { path: "/docs", user: carol.email, affected_inodes: 4, pays_quota: "owner" });
    assert.match(await alice.ok("ls", "-l", "/"), /shared {2}docs\/$/m);
    assert.match(
      await alice.ok("stat", "/docs/deep/note"),
      /^shared with {2}bob@example\.com, carol@example\.com$/m,
    );
    assert.match(await alice.refused(1, "share", "/docs", "bob"), /'bob' is not an e-mail address/);
    assert.match(await alice.refused(1, "share", "/docs", alice.email), /belongs to that user already/);
    assert.match(await alice.refused(3, "share", "/none", bob.email), /no such file/);
  });

  await t.test(
    "roots, ls, cat, stat, get, cd: all verbs on the owner's node, which is not the sharee's",
    async () => {
      const roots = JSON.parse(await bob.ok("roots", "--json")) as {
        owner: string;
        path: string;
        fs_id: string;
      }[];
      assert.deepEqual(
        roots.map(({ owner, path }) => `${owner}:${path}`),
        [`${bob.email}:/`, docs],
      );
      assert.notEqual(roots[0]?.fs_id, roots[1]?.fs_id);
      assert.equal(await bob.ok("ls", docs), "big\ndeep/\n");
      assert.equal(await bob.ok("cat", `${docs}/deep/note`), "first\n");
      assert.match(await bob.ok("stat", docs), /^owner +alice@example\.com$/m);
      await bob.ok("get", "-q", `${docs}/big`, local("copy"));
      assert.ok((await readFile(local("copy"))).equals(content));
      await bob.ok("cd", docs);
      assert.equal(await bob.ok("ls", "deep"), "note\n");
      await bob.ok("cd");
    },
  );

  await t.test("the sharee writes, the owner pays and alone may delete (spec 5.4, D13)", async () => {
    await writeFile(local("note"), "second\n");
    await bob.ok("put", "-q", local("note"), `${docs}/deep/note`);
    await bob.ok("mkdir", `${docs}/of bob`);
    await bob.ok("mv", `${docs}/deep/note`, `${docs}/of bob/note`);
    assert.equal(await alice.ok("cat", "/docs/of bob/note"), "second\n");
    assert.match(await alice.ok("stat", "/docs/of bob"), /^made by +bob@example\.com$/m);
    for (const words of [
      ["rm", "-r", `${docs}/of bob`],
      ["rm", "--permanent", "-f", "-r", `${docs}/of bob`],
      ["share", docs, "dave@example.com"],
      ["unshare", docs, carol.email],
    ]) {
      assert.match(await bob.refused(4, ...words), /only the owner may do that/);
    }
    assert.match(
      await bob.refused(4, "mv", `${docs}/of bob`, `${alice.email}:/mine`),
      /nothing here that you may see/,
    );
    const quota = JSON.parse(await alice.ok("quota", "--json")) as Record<string, unknown>;
    const asSeen = JSON.parse(await bob.ok("quota", alice.email, "--json")) as Record<string, unknown>;
    assert.deepEqual(asSeen, { ...quota, root: alice.email });
  });

  await t.test("a part is taken out of a share that goes on, and given back (spec 4.5)", async () => {
    assert.match(
      await alice.ok("unshare", "/docs/deep", bob.email),
      /\/docs\/deep is no longer shared with bob/,
    );
    assert.match(await bob.refused(4, "ls", `${docs}/deep`), /nothing here that you may see/);
    assert.equal(await bob.ok("ls", docs), "big\nof bob/\n");
    assert.equal((JSON.parse(await bob.ok("roots", "--json")) as object[]).length, 2);
    assert.match(await alice.ok("stat", "/docs/deep"), /^shared with +carol@example\.com$/m);
    assert.equal(
      await alice.ok("share", "--list"),
      "/docs       bob@example.com\n/docs       carol@example.com\n" +
        "/docs/deep  not bob@example.com, taken out of the share above\n",
    );
    const listed = JSON.parse(await alice.ok("share", "--list", "/docs/deep", "--json")) as {
      shares: { path: string; user: string; excluded: boolean; made_by: string }[];
      shared_above: string[];
    };
    assert.deepEqual(listed.shared_above, [carol.email]);
    assert.deepEqual(
      listed.shares.map(({ path, user, excluded, made_by }) => [path, user, excluded, made_by]),
      [["/docs/deep", bob.email, true, alice.email]],
    );
    const why = await alice.ok("why", "/docs/deep");
    assert.match(why, /carol@example\.com may read and write it, since \/docs is shared with them/);
    assert.match(why, /bob@example\.com is kept out, taken out of shares at \/docs\/deep/);
    assert.match(await bob.refused(4, "share", "--list", docs), /only the owner may do that/);
    assert.match(await alice.refused(1, "share", "/docs"), /Share it with whom\?/);
    await alice.ok("share", "/docs/deep", bob.email);
    assert.equal(await alice.ok("share", "--list", "/", bob.email), "/docs  bob@example.com\n");
    assert.equal(await bob.ok("ls", `${docs}/deep`), "");
  });

  await t.test("unshare ends a running download at its next chunk, and all the rest at once", async () => {
    const reading = bob.start("cat", `${docs}/big`);
    reading.child.stdout?.pause();
    while (reading.child.stdout?.readableLength === 0 && reading.child.exitCode === null) await delay(20);
    assert.match(
      await alice.ok("unshare", "/docs", bob.email),
      /no longer shared with bob@example\.com: 5 files/,
    );
    reading.child.stdout?.resume();
    const ended = await reading.ended;
    assert.equal(ended.code, 4, ended.stderr);
    assert.match(ended.stderr, /this is no longer shared with you/);
    assert.match(await bob.refused(4, "ls", docs), /nothing here that you may see/);
    assert.equal((JSON.parse(await bob.ok("roots", "--json")) as object[]).length, 1);
    assert.equal(await carol.ok("cat", `${docs}/of bob/note`), "second\n");
    assert.match(await alice.ok("unshare", "/docs", bob.email), /was not shared with bob@example\.com/);
  });
});
