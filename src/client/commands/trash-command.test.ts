// Tests of `rm` and `trash` against a real FileServer: output for people and scripts, and the audit log.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "#testing/until.ts";
import type { TestClient, VerbInput, VerbResult } from "./client.fixture.ts";
import { runGrove, type ServerProcess } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";

let client: TestClient;
let server: ServerProcess;

before(async () => {
  ({ client, server } = await signedInClient());
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

const trash = (...words: string[]): Promise<VerbResult> => client.run(import("./trash-command.ts"), words);
const rm = (words: string[], input?: VerbInput): Promise<VerbResult> =>
  client.run(import("./rm-command.ts"), words, input);

async function write(path: string, text: string): Promise<void> {
  const file = join(client.folder, "content");
  writeFileSync(file, text);
  const made = await client.run(import("./put-command.ts"), ["-q", file, path]);
  assert.equal(made.code, 0, made.err);
}

async function mkdir(path: string): Promise<void> {
  assert.equal((await client.run(import("./mkdir-command.ts"), ["-p", path])).code, 0);
}

async function cat(path: string): Promise<string> {
  return (await client.run(import("./cat-command.ts"), [path])).out;
}

test("rm says in one line how to bring it back, and what it says works (D14)", async () => {
  await mkdir("/docs/deep");
  await write("/docs/deep/a.txt", "hello");
  const removed = await rm(["-r", "/docs"]);
  assert.equal(removed.out, "");
  const line = /^\/docs is in the trash\. To bring it back: grove trash restore (\S+)\n$/.exec(removed.err);
  assert.ok(line, removed.err);
  const listed = await trash("ls");
  assert.match(
    listed.out,
    new RegExp(`^${line[1]} +\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d +5 B +until \\S+ +by you +/docs/\\n$`),
  );
  const back = await trash("restore", line[1] ?? "");
  assert.equal(back.err, "/docs is back.\n");
  assert.equal(await cat("/docs/deep/a.txt"), "hello");
  assert.equal((await trash("ls")).err, "The trash is empty.\n");
});

test("restore finds the newest by its path, also with its folder gone, and says what to do when the name is taken (D14)", async () => {
  await mkdir("/p/q");
  for (const text of ["first", "second"]) {
    await write("/p/q/f", text);
    assert.equal((await rm(["/p/q/f"])).code, 0);
  }
  assert.equal((await rm(["-r", "--permanent", "--yes", "/p"])).code, 0);
  const back = await trash("restore", "p/q/f");
  assert.equal(back.code, 0, back.err);
  assert.match(back.err, /More than one was deleted at \/p\/q\/f: this is the newest/);
  assert.equal(await cat("/p/q/f"), "second");
  const taken = await trash("restore", "/p/q/f");
  assert.equal(taken.code, 1);
  assert.match(
    taken.err,
    /\/p\/q\/f is there again\. Add --on-conflict keep-both or replace, or --to and another path\./,
  );
  assert.equal((await trash("restore", "/p/q/f", "--on-conflict", "keep-both")).err, "/p/q/f (2) is back.\n");
  assert.equal(await cat("/p/q/f (2)"), "first");
  await rm(["/p/q/f"]);
  const elsewhere = JSON.parse(
    (await trash("restore", "/p/q/f", "--to", "/new/place", "--json")).out,
  ) as Record<string, unknown>;
  assert.deepEqual([elsewhere["path"], elsewhere["former_shares"]], ["/new/place", []]);
  const nothing = await trash("restore", "/p/q/f");
  assert.equal(nothing.code, 3);
  assert.match(nothing.err, /Nothing in your trash was at \/p\/q\/f, or has this id\. 'grove trash ls'/);
  const below = await rm(["/new/place"]).then(() => trash("restore", "/new/place", "--to", "/p/q/f (2)/x"));
  assert.equal(below.code, 1);
  assert.match(below.err, /\/p\/q\/f \(2\) is a file, so nothing can be restored below it/);
});

test("shares do not come back with what was shared, and the line to share again is there (D14)", async () => {
  await mkdir("/shared/sub");
  const share = (path: string) => client.run(import("./share-command.ts"), [path, "bob@example.com"]);
  assert.equal((await share("/shared/sub")).code, 0);
  await rm(["-r", "/shared"]);
  const back = await trash("restore", "/shared", "--to", "/again");
  assert.match(back.err, /It is shared with nobody now/);
  assert.match(back.err, /^ {2}grove share \/again\/sub bob@example\.com$/m);
  assert.equal((await share("/again/sub")).code, 0);
});

test("empty asks on a terminal and says how much it frees; without one it needs --yes (D14)", async () => {
  assert.equal((await trash("empty", "--yes")).code, 0);
  await write("/big", "x".repeat(2_048));
  await rm(["/big"]);
  const unasked = await trash("empty");
  assert.equal(unasked.code, 1);
  assert.match(unasked.err, /no terminal to ask on\. Add --yes/);
  const young = await trash("empty", "--older-than", "1d", "--yes");
  assert.equal(young.err, "Nothing is 1 day old.\n");
  assert.equal((await trash("empty", "--older-than", "soon")).code, 1);
  const emptied = await trash("empty", "--force");
  assert.equal(emptied.err, "Deleted for good: 1 item, 2 KiB.\n");
  assert.equal((await trash("empty", "--yes")).err, "The trash is empty.\n");
  const none = JSON.parse((await trash("ls", "--json")).out) as unknown;
  assert.deepEqual(none, { items: [] });
});

test("rm --permanent needs --yes or -f without a terminal, and leaves nothing in the trash (D14)", async () => {
  await write("/gone", "x");
  const unasked = await rm(["--permanent", "/gone"]);
  assert.equal(unasked.code, 1);
  assert.match(unasked.err, /no terminal to ask on\. Add --yes/);
  assert.equal((await rm(["--permanent", "-f", "/gone"])).code, 0);
  assert.equal((await rm(["--permanent", "-f", "/gone"])).code, 0);
  assert.deepEqual(JSON.parse((await trash("ls", "--json")).out), { items: [] });
});

test("'grove audit verify' follows the log of all this, also while the node runs, and names what breaks it (D24)", async () => {
  const data = join(client.folder, "node");
  const { readdirSync, readFileSync } = await import("node:fs");
  const name = readdirSync(join(data, "audit")).find((file) => file.endsWith(".log")) ?? "";
  const path = join(data, "audit", name);
  const acts = ["session.open", "file.delete", "trash.purge", "share.add", "share.remove"];
  const missing = (): string[] =>
    acts.filter((act) => !readFileSync(path, "utf8").includes(`"act":"${act}"`));
  // Audit lines reach the disk a moment after their events.
  await until(() => missing().length === 0);
  const held = await runGrove(["audit", "verify", "-data", data], {});
  assert.match(held.out, /^OK: \d+ lines, 1 \(.*\) to \d+ \(.*\)\n$/);
  assert.equal(held.code, 0);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace("trash.purge", "trash.purgf"));
  const broken = await runGrove(["audit", "verify", "-data", data, "--json"], {});
  assert.equal(broken.code, 1);
  assert.equal((JSON.parse(broken.out) as { ok: boolean }).ok, false);
  writeFileSync(path, text);
});
