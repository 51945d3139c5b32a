// Tests of what `--delete` removes and what it keeps, against a real FileServer process.
import assert from "node:assert/strict";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TestClient, VerbInput, VerbResult } from "./client.fixture.ts";
import type { ServerProcess } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";
import type { VerbModule } from "./verbs.ts";

let client: TestClient;
let server: ServerProcess;

before(async () => {
  ({ client, server } = await signedInClient());
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

const put = (words: readonly string[], input?: VerbInput): Promise<VerbResult> =>
  client.run(import("./put-command.ts"), words, input);

async function ok(verb: Promise<VerbModule>, words: readonly string[], input?: VerbInput): Promise<string> {
  const result = await client.run(verb, words, input);
  assert.equal(result.code, 0, `${words.join(" ")}: ${result.err}`);
  return result.out;
}

const names = async (path: string): Promise<string[]> =>
  (await ok(import("./ls-command.ts"), [path])).split("\n").filter((name) => name !== "");

/** A tree on both sides, whose source has lost a file and a folder. */
async function makeTrees(name: string): Promise<string> {
  const top = join(client.folder, name);
  mkdirSync(join(top, "gone", "deep"), { recursive: true });
  mkdirSync(join(top, "sub"));
  for (const path of ["kept", "lost", "gone/deep/x", "sub/kept", "sub/lost"])
    writeFileSync(join(top, path), path);
  await ok(import("./put-command.ts"), ["-q", "-r", top, `/${name}`]);
  rmSync(join(top, "gone"), { recursive: true });
  for (const path of ["lost", "sub/lost"]) rmSync(join(top, path));
  return top;
}

test("what the source has lost is named, asked about and moved to the trash; no leaves all of it", async () => {
  const top = await makeTrees("asked");
  const no = await put(["-r", "--delete", top, "/asked"], { isAsked: true, stdin: "n\n" });
  assert.equal(no.code, 0, no.err);
  assert.match(no.err, / {2}\/asked\/gone\/\n/);
  assert.match(no.err, / {2}\/asked\/sub\/lost\n/);
  assert.match(no.err, /These 3 are not in the source \(23 B\)\. Move to the trash\? \[y\/N\]/);
  assert.match(no.err, /Nothing was deleted\./);
  assert.deepEqual(await names("/asked"), ["gone/", "kept", "lost", "sub/"]);
  const yes = await put(["-r", "--delete", top, "/asked"], { isAsked: true, stdin: "y\n" });
  assert.equal(yes.code, 0, yes.err);
  assert.match(yes.err, /uploaded 0 files, .*2 files there already, 3 moved to the trash/);
  assert.deepEqual(await names("/asked"), ["kept", "sub/"]);
  assert.deepEqual(await names("/asked/sub"), ["kept"]);
  await ok(import("./trash-command.ts"), ["restore", "/asked/gone"]);
  assert.deepEqual(await names("/asked/gone/deep"), ["x"]);
});

test("a script needs --yes, and is told before anything is sent", async () => {
  const top = await makeTrees("script");
  writeFileSync(join(top, "new"), "new");
  const refused = await put(["-r", "--delete", top, "/script"]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /there is no terminal to ask on\. Add --yes to do it without a question\./);
  assert.equal((await names("/script")).includes("new"), false);
  const done = await put(["-r", "--delete", "--yes", "--json", top, "/script"]);
  assert.equal(done.code, 0, done.err);
  const { files, unchanged, removed } = JSON.parse(done.out) as Record<string, unknown>;
  assert.deepEqual([files, unchanged, removed], [1, 2, 3]);
  const again = await put(["-r", "--delete", "--yes", "--json", top, "/script"]);
  assert.equal((JSON.parse(again.out) as Record<string, unknown>)["removed"], 0);
});

test("what is in the source and cannot be sent is not taken away", async () => {
  const top = await makeTrees("links");
  symlinkSync("/etc/hostname", join(top, "lost"));
  const result = await put(["-r", "--delete", "--yes", top, "/links"]);
  assert.equal(result.code, 1);
  assert.match(result.err, /lost: skipped, symbolic link that leads out/);
  assert.deepEqual(await names("/links"), ["kept", "lost", "sub/"]);
});

test("an empty source, which is far more often a disk that is not mounted, takes nothing away", async () => {
  const top = await makeTrees("unmounted");
  rmSync(top, { recursive: true });
  mkdirSync(top);
  const result = await put(["-r", "--delete", "--yes", top, "/unmounted"]);
  assert.equal(result.code, 1);
  assert.match(result.err, /unmounted: skipped, it is empty, so nothing is taken away for it/);
  assert.deepEqual(await names("/unmounted"), ["gone/", "kept", "lost", "sub/"]);
});

test("where a file has failed nothing is taken away", async () => {
  const top = await makeTrees("failing");
  await ok(import("./mkdir-command.ts"), ["/failing/clash"]);
  writeFileSync(join(top, "clash"), "");
  truncateSync(join(top, "clash"), 10);
  const result = await put(["-r", "--delete", "--yes", top, "/failing"]);
  assert.equal(result.code, 1);
  assert.match(result.err, /Nothing was moved to the trash, since not everything has arrived\./);
  assert.deepEqual(await names("/failing"), ["clash/", "gone/", "kept", "lost", "sub/"]);
});

test("get --delete asks and puts aside, beside the folder, what is not on the cluster any more", async () => {
  const top = await makeTrees("mirror");
  await ok(import("./put-command.ts"), ["-q", "-r", "--delete", "--yes", top, "/mirror"]);
  const into = join(client.folder, "mirrored");
  const get = (words: readonly string[], input?: VerbInput): Promise<VerbResult> =>
    client.run(import("./get-command.ts"), words, input);
  assert.equal((await get(["-r", "/mirror", into])).code, 0);
  mkdirSync(join(into, "sub", "more"));
  writeFileSync(join(into, "sub", "more", "mine"), "mine");
  writeFileSync(join(into, "mine"), "mine");
  const refused = await get(["-r", "--delete", "/mirror", into]);
  assert.equal(refused.code, 1);
  const no = await get(["-r", "--delete", "/mirror", into], { isAsked: true, stdin: "\n" });
  assert.match(no.err, /These 2 are not on the cluster\. Move to \S+mirrored\.removed-\S+\? \[y\/N\]/);
  assert.deepEqual(readdirSync(into).sort(), ["kept", "mine", "sub"]);
  const yes = await get(["-r", "--delete", "/mirror", into], { isAsked: true, stdin: "yes\n" });
  assert.match(yes.err, /downloaded 0 files, .*2 files there already, 2 moved to \S+mirrored\.removed-/);
  assert.deepEqual(readdirSync(into).sort(), ["kept", "sub"]);
  assert.deepEqual(readdirSync(join(into, "sub")), ["kept"]);
  const aside = readdirSync(client.folder).find((name) => name.startsWith("mirrored.removed-")) ?? "";
  assert.equal(readFileSync(join(client.folder, aside, "sub", "more", "mine"), "utf8"), "mine");
  assert.equal(readFileSync(join(client.folder, aside, "mine"), "utf8"), "mine");
});

test("get --delete takes nothing away for a folder that is empty on the cluster", async () => {
  await ok(import("./mkdir-command.ts"), ["/empty"]);
  const into = join(client.folder, "not-empty");
  mkdirSync(join(into, "empty"), { recursive: true });
  writeFileSync(join(into, "empty", "mine"), "mine");
  const result = await client.run(import("./get-command.ts"), ["-r", "--delete", "--yes", "/empty", into]);
  assert.equal(result.code, 1);
  assert.deepEqual(readdirSync(join(into, "empty")), ["mine"]);
});

test("two sources of one name are refused, and nothing is sent or taken away", async () => {
  const [first, second] = ["one", "two"].map((name) => join(client.folder, name, "photos"));
  for (const top of [first, second]) mkdirSync(top ?? "", { recursive: true });
  writeFileSync(join(first ?? "", "a"), "a");
  writeFileSync(join(second ?? "", "b"), "b");
  await ok(import("./mkdir-command.ts"), ["/both"]);
  const refused = await put(["-r", "--delete", "--yes", first ?? "", second ?? "", "/both"]);
  assert.notEqual(refused.code, 0);
  assert.match(refused.err, /no two sources may go to the same folder/);
  assert.deepEqual(await names("/both"), []);
});

test("beside another source a folder goes where its name says, wherever it went alone", async () => {
  const [photos, videos] = ["pair-photos", "pair-videos"].map((name) => join(client.folder, name));
  for (const top of [photos, videos]) mkdirSync(top ?? "");
  writeFileSync(join(photos ?? "", "p"), "p");
  writeFileSync(join(videos ?? "", "v"), "v");
  // As the only source it became /pair itself.
  await ok(import("./put-command.ts"), ["-q", "-r", photos ?? "", "/pair"]);
  const both = [photos ?? "", videos ?? "", "/pair"];
  await ok(import("./put-command.ts"), ["-q", "-r", "--delete", "--yes", ...both]);
  await ok(import("./put-command.ts"), ["-q", "-r", "--delete", "--yes", ...both]);
  assert.deepEqual(await names("/pair"), ["p", "pair-photos/", "pair-videos/"]);
  assert.deepEqual(await names("/pair/pair-videos"), ["v"]);
});
