// Tests at two users' command lines: the trash, explained quotas and permissions, and the doctor.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type Person, startPeople } from "./people.ts";
import { grove, stopProgram } from "./processes.ts";

interface Why {
  readonly allowed: boolean;
  readonly reason: string | null;
  readonly hint: string;
  readonly steps: readonly { readonly check: string; readonly passed: boolean; readonly text: string }[];
}

/** The answer of `grove why --json`, with its exit code. */
async function why(person: Person, ...words: string[]): Promise<Why & { readonly code: number | null }> {
  const { code, stdout, stderr } = await person.grove("why", ...words, "--json");
  assert.equal(stderr, "");
  return { ...(JSON.parse(stdout) as Why), code };
}

interface Report {
  readonly failed: number;
  readonly checks: readonly { readonly name: string; readonly state: string; readonly what: string }[];
}

test("two users: trash and restore, quota and permissions explained, and the doctor", {
  timeout: 240_000,
}, async (t) => {
  const { alice, bob, folder, clusterFile, up } = await startPeople(t);
  const local = (name: string): string => join(folder, name);
  const docs = `${alice.email}:/docs`;
  await writeFile(local("note"), "first\n");
  await writeFile(local("big"), Buffer.alloc(3_000_000, 1));
  await alice.ok("mkdir", "-p", "/docs/deep");
  await alice.ok("put", "-q", local("note"), "/docs/deep/note");
  await alice.ok("share", "/docs", bob.email);

  await t.test("a sharee is told by which share, and why not to delete (spec 5.4)", async () => {
    const read = await why(bob, `${docs}/deep/note`);
    assert.deepEqual([read.code, read.allowed], [0, true]);
    assert.match(read.steps.find(({ check }) => check === "grant")?.text ?? "", /^\/docs is shared with you/);
    const remove = await why(bob, `${docs}/deep/note`, "delete");
    assert.deepEqual([remove.code, remove.reason], [4, "NOT_OWNER"]);
    assert.match(
      await bob.refused(4, "rm", `${docs}/deep/note`),
      /only the owner may do that.*Ask the owner/,
    );
  });

  await t.test("a stranger to a place is told the same whether or not it exists (D1)", async () => {
    await alice.ok("mkdir", "/private");
    const answers = await Promise.all([
      why(bob, `${alice.email}:/private`),
      why(bob, `${alice.email}:/none`),
    ]);
    for (const answer of answers) assert.deepEqual([answer.code, answer.reason], [4, "NOT_SHARED"]);
    assert.deepEqual(answers[0]?.steps, answers[1]?.steps);
    const words = await bob.grove("why", "nobody@example.com:/x");
    assert.equal(words.code, 4);
    assert.match(words.stdout, /^No: you may not read nobody@example\.com:\/x\n/);
  });

  await t.test("what is deleted comes back, also when its folder is gone (D14)", async () => {
    await alice.ok("rm", "/docs/deep/note");
    await alice.ok("rm", "-r", "/docs/deep");
    assert.match(await alice.refused(3, "cat", "/docs/deep/note"), /no such file/);
    await alice.ok("trash", "restore", "/docs/deep/note");
    assert.equal(await alice.ok("cat", "/docs/deep/note"), "first\n");
  });

  await t.test("a full quota names what fills it, and what would make room (D1)", async () => {
    const { admin_password: password } = JSON.parse(await readFile(clusterFile, "utf8")) as {
      admin_password: string;
    };
    await alice.ok("put", "-q", local("big"), "/docs/big");
    await alice.ok("rm", "/docs/big");
    const set = await alice.withInput(
      `${password}\n`,
      "quota",
      "set",
      alice.email,
      "4MiB",
      "--admin-password-stdin",
    );
    assert.equal(set.code, 0, set.stderr);
    const said = await alice.refused(5, "put", "-q", local("big"), "/docs/big");
    assert.match(
      said,
      /is 4 MiB, 6 B in files, 2\.9 MiB in trash; this needs 1\.7 MiB more: storage quota exceeded\./,
    );
    assert.match(said, /'grove trash empty' would free 2\.9 MiB\./);
    assert.match(
      await bob.refused(5, "put", "-q", local("big"), `${docs}/big`),
      /Ask alice@example\.com to delete/,
    );
    const asked = await why(alice, "/docs/big", "write", "--size", "3MiB");
    assert.deepEqual([asked.code, asked.reason, asked.steps.at(-1)?.check], [5, "QUOTA_EXCEEDED", "quota"]);
    await alice.ok("trash", "empty", "-f");
    assert.equal((await why(alice, "/docs/big", "write", "--size", "3MiB")).allowed, true);
    await alice.ok("put", "-q", local("big"), "/docs/big");
  });

  await t.test("the doctor finds nothing wrong while all runs, and shows no secret", async () => {
    const client = JSON.parse(await alice.ok("doctor", "--json")) as Report;
    assert.equal(client.failed, 0, JSON.stringify(client));
    const host = await alice.ok("doctor", "-cluster", clusterFile, "--json");
    assert.equal((JSON.parse(host) as Report).failed, 0, host);
    const document = JSON.parse(await readFile(clusterFile, "utf8")) as Record<string, string>;
    for (const secret of [document["admin_password"], document["metrics_token"]]) {
      assert.ok(secret !== undefined && !host.includes(secret));
    }
  });

  await t.test("and says so, in time, when everything is down", async () => {
    const document = await readFile(clusterFile, "utf8");
    await stopProgram(up);
    const copy = local("cluster-copy.json");
    await writeFile(copy, document);
    const client = await alice.grove("doctor", "--json");
    assert.equal(client.code, 1);
    const names = (JSON.parse(client.stdout) as Report).checks
      .filter(({ state }) => state === "failed")
      .map(({ name }) => name);
    assert.ok(
      names.some((name) => name.startsWith("metaserver ")),
      names.join(),
    );
    assert.ok(names.includes("session"), names.join());
    const host = await grove(["doctor", "-cluster", copy, "--json"], {});
    assert.equal(host.code, 1);
    const failed = (JSON.parse(host.stdout) as Report).checks.filter(({ state }) => state === "failed");
    assert.ok(failed.length >= 5, host.stdout);
  });
});
