// Tests of who holds a folder, a part of a download and the record of an upload.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { withProcessLock } from "#client/signin/process-lock.ts";
import { PART_IDLE_MS } from "#client/terminal/limits.ts";
import { markOf, ownMark } from "#os/process-alive.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { LocalFileWriter, removeLeftFiles } from "./local-file.ts";
import { claimPartial } from "./partial-file.ts";
import { holdTransfer } from "./transfer-hold.ts";
import { UploadMemory } from "./upload-memory.ts";

const top = scratchFolder("grove-holds-");
const FILE = { remote: { root: "", path: "/x" }, name: "x", etag: "1-1" };
const STRANGE = "0123456789ab";

let folders = 0;
let child: ChildProcess;
/** The mark of a process that lives. */
let living = "";
/** Marks of processes that are gone, though their numbers are taken: an earlier one, and one from before a restart. */
let gone: string[] = [];
/** A living process's number on another machine. */
let elsewhere = "";

before(async () => {
  const program = 'process.stdin.resume(); process.stdout.write("runs")';
  child = spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout as NodeJS.ReadableStream, "data");
  living = markOf(child.pid ?? 0);
  const [pid, start, boot, machine] = living.split("_");
  gone = [`${pid}_1_${boot}_${machine}`, `${pid}_${start}_${STRANGE}_${machine}`];
  elsewhere = `${pid}_${start}_${boot}_${STRANGE}`;
});
after(() => child.kill("SIGKILL"));

function newFolder(): string {
  const folder = join(top, String(++folders));
  mkdirSync(folder);
  return folder;
}

/** The part of a download under another process's mark. */
function partOf(mark: string): { folder: string; part: string } {
  const folder = newFolder();
  const part = (claimPartial(folder, FILE) ?? "").replace(ownMark(), mark);
  writeFileSync(part, "part");
  return { folder, part };
}

/** Lets a file look as if nobody had written to it for long. */
function rest(path: string): void {
  const then = new Date(Date.now() - PART_IDLE_MS - 60_000);
  utimesSync(path, then, then);
}

test("the part of a download stays with a process that lives, and goes over from one whose number another has now", () => {
  const held = partOf(living);
  const own = claimPartial(held.folder, FILE) ?? "";
  assert.deepEqual([existsSync(held.part), existsSync(own)], [true, false]);
  for (const mark of gone) {
    const { folder } = partOf(mark);
    assert.equal(readFileSync(claimPartial(folder, FILE) ?? "", "utf8"), "part", mark);
  }
});

test("the part of another machine's download goes over only when it rests for long", () => {
  const { folder, part } = partOf(elsewhere);
  assert.equal(existsSync(claimPartial(folder, FILE) ?? ""), false);
  rest(part);
  assert.equal(readFileSync(claimPartial(folder, FILE) ?? "", "utf8"), "part");
});

test("a part into which another program writes too is not taken for the file, and is fetched anew", async () => {
  const { folder, part } = partOf(elsewhere);
  const writer = await LocalFileWriter.goOn(folder, "x", part);
  writeFileSync(part, "strange", { flag: "a" });
  await writer?.write(Buffer.from("rest"));
  await assert.rejects(writer?.finish(1_000) ?? Promise.resolve(), { code: "LOCAL_FILE" });
  await writer?.leave();
  assert.deepEqual(readdirSync(folder), []);
});

test("what killed downloads leave is removed, and nothing of living ones", () => {
  const folder = newFolder();
  const left = (mark: string): string => join(folder, `.grove-get-abcdefghijkl-${mark}-1.part`);
  const rests = left(elsewhere.replace(/^\d+/, "1"));
  for (const path of [living, ...gone, elsewhere, "4999999"].map(left)) writeFileSync(path, "left");
  writeFileSync(rests, "left");
  rest(rests);
  removeLeftFiles(folder);
  assert.deepEqual(
    readdirSync(folder)
      .map((name) => join(folder, name))
      .toSorted(),
    [living, elsewhere].map(left).toSorted(),
  );
});

test("a folder is held by a process that lives, and by no other", async () => {
  const path = join(newFolder(), "held");
  writeFileSync(path, `${living}\n`);
  assert.deepEqual(await holdTransfer(path), { heldBy: child.pid });
  for (const note of [...gone, elsewhere, `${child.pid} 1`, ""]) {
    writeFileSync(path, `${note}\n`);
    const hold = await holdTransfer(path);
    assert.ok("release" in hold, note);
    assert.equal(readFileSync(path, "utf8"), `${ownMark()}\n`);
    await hold.release();
    assert.equal(existsSync(path), false);
  }
  const hold = await holdTransfer(path);
  assert.ok("release" in hold);
  writeFileSync(path, `${elsewhere}\n`);
  await hold.release();
  assert.equal(readFileSync(path, "utf8"), `${elsewhere}\n`, "the note of another machine is not taken away");
});

test("an upload goes over from a process that is gone, and not from one that lives", async () => {
  const folder = newFolder();
  const source = { path: "/x", sizeBytes: 1, mtimeMs: 1, mtimeNs: 1n, ctimeNs: 1n };
  const memory = new UploadMemory(folder);
  await memory.keep(source, FILE.remote, "u1");
  const [record = ""] = readdirSync(folder);
  const text = readFileSync(join(folder, record), "utf8");
  for (const mark of [living, ownMark(), elsewhere, ...gone]) {
    writeFileSync(join(folder, record), text.replace(ownMark(), mark), { mode: 0o600 });
    const expected = mark === living ? undefined : "u1";
    assert.equal(await memory.find(source, FILE.remote), expected, mark);
  }
  const ofBefore = (pid: number): string => text.replace(/"process": ?"\w+"/, `"pid":${pid}`);
  writeFileSync(join(folder, record), ofBefore(child.pid ?? 0), { mode: 0o600 });
  assert.equal(await memory.find(source, FILE.remote), undefined);
  writeFileSync(join(folder, record), ofBefore(4_999_999), { mode: 0o600 });
  assert.equal(await memory.find(source, FILE.remote), "u1");
});

test("the lock of a sign-in is taken over at once from a process whose number another has now", async () => {
  const path = join(newFolder(), "lock");
  for (const mark of gone) {
    writeFileSync(path, mark);
    assert.equal(await withProcessLock(path, async () => readFileSync(path, "utf8")), ownMark());
    assert.equal(existsSync(path), false);
  }
});
