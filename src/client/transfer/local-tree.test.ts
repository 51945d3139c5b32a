// Tests of the walk through a local tree: folders first, links by the rule of decision D13.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type LocalEntry, walkLocalTree } from "./local-tree.ts";

let folder = "";
let top = "";

beforeEach(() => {
  folder = scratchFolder("grove-tree-");
  top = join(folder, "top");
  mkdirSync(top);
});

async function walk(path = top): Promise<LocalEntry[]> {
  return Array.fromAsync(walkLocalTree(path));
}

/** The places that would be stored, folders with a slash, in order. */
async function stored(): Promise<string[]> {
  return (await walk()).flatMap((entry) =>
    entry.kind === "skipped"
      ? []
      : [entry.kind === "folder" ? `${entry.place}${entry.place === "/" ? "" : "/"}` : entry.place],
  );
}

/** The skipped entries by name, with reasons. */
async function left(): Promise<Record<string, string>> {
  const entries = await walk();
  return Object.fromEntries(
    entries.flatMap((entry) =>
      entry.kind === "skipped" ? [[entry.localPath.slice(top.length + 1), entry.why]] : [],
    ),
  );
}

const file = (path: string, content = "x"): void => writeFileSync(join(top, path), content);

test("every folder comes before what is in it, empty ones too", async () => {
  mkdirSync(join(top, "b", "deep", "empty"), { recursive: true });
  mkdirSync(join(top, "a"));
  file("b/one");
  file("b/deep/two");
  file("zero");
  assert.deepEqual(await stored(), [
    "/",
    "/zero",
    "/a/",
    "/b/",
    "/b/one",
    "/b/deep/",
    "/b/deep/two",
    "/b/deep/empty/",
  ]);
});

test("a link inside the tree counts as the file or folder that it points to (D13)", async () => {
  mkdirSync(join(top, "real"));
  file("real/data", "12345");
  symlinkSync("real/data", join(top, "to-file"));
  symlinkSync(join(top, "real"), join(top, "to-folder"));
  const entries = await walk();
  const linked = entries.find((entry) => entry.kind === "file" && entry.place === "/to-file");
  assert.ok(linked?.kind === "file");
  assert.equal(linked.sizeBytes, 5);
  assert.deepEqual(await stored(), [
    "/",
    "/to-file",
    "/real/",
    "/real/data",
    "/to-folder/",
    "/to-folder/data",
  ]);
  assert.deepEqual(await left(), {});
});

test("links that lead out, to nothing, to themselves, or back up are named and left out (D13)", async () => {
  writeFileSync(join(folder, "outside"), "secret");
  mkdirSync(join(folder, "topless"));
  mkdirSync(join(top, "sub"));
  symlinkSync("../outside", join(top, "out"));
  symlinkSync("/etc/passwd", join(top, "absolute"));
  // A name that begins like the tree's own is not inside it.
  symlinkSync(join(folder, "topless"), join(top, "beside"));
  symlinkSync("nothing", join(top, "broken"));
  symlinkSync("loop", join(top, "loop"));
  symlinkSync("..", join(top, "sub", "up"));
  symlinkSync(".", join(top, "self"));
  assert.deepEqual(await left(), {
    out: "symbolic link that leads out of the folder",
    absolute: "symbolic link that leads out of the folder",
    beside: "symbolic link that leads out of the folder",
    broken: "symbolic link that points to nothing",
    loop: "symbolic link that points to itself",
    "sub/up": "symbolic link to a folder that it lies in",
    self: "symbolic link to a folder that it lies in",
  });
  assert.deepEqual(await stored(), ["/", "/sub/"]);
});

test("two folders that link to each other end (D13)", async () => {
  mkdirSync(join(top, "a"));
  mkdirSync(join(top, "b"));
  symlinkSync("../b", join(top, "a", "b"));
  symlinkSync("../a", join(top, "b", "a"));
  assert.deepEqual(await stored(), ["/", "/a/", "/a/b/", "/b/", "/b/a/"]);
});

test("a chain of links that ends inside the tree is followed, one that leaves it on the way back in too", async () => {
  file("data");
  symlinkSync("data", join(top, "one"));
  symlinkSync("one", join(top, "two"));
  assert.deepEqual(await stored(), ["/", "/data", "/one", "/two"]);
});

test("what is neither file nor folder, and what the server cannot name, is left out", async () => {
  const socket = createServer().listen(join(top, "socket"));
  await once(socket, "listening");
  file("tab\there");
  writeFileSync(Buffer.concat([Buffer.from(`${top}/bad`), Buffer.from([0xff])]), "x");
  file("e\u0301");
  file("\u00e9");
  const why = await left();
  socket.close();
  assert.equal(why["socket"], "is neither a file nor a folder");
  assert.match(why["tab\there"] ?? "", /cannot store this name/);
  assert.match(why["bad\ufffd"] ?? "", /cannot store this name/);
  // Both are stored as the same name, so only the first can be.
  assert.equal(Object.values(why).filter((text) => /equal to another one/.test(text)).length, 1);
  await once(socket, "close");
  assert.deepEqual(await stored(), ["/", "/\u00e9"]);
});

test("a top that is itself a link is followed, since it was named", async () => {
  file("data");
  symlinkSync(top, join(folder, "link"));
  const entries = await walk(join(folder, "link"));
  assert.deepEqual(
    entries.map((entry) => entry.kind),
    ["folder", "file"],
  );
});
