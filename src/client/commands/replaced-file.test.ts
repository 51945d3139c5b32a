// Tests of a file that `get` replaces: no user gains rights, and links to the old file keep it.
import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { LocalFileWriter } from "#client/transfer/local-file.ts";
import { claimPartial } from "#client/transfer/partial-file.ts";
import { modeForOtherGroup } from "#client/transfer/replaced-file.ts";
import type { TestClient } from "./client.fixture.ts";
import type { ServerProcess } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";

const isRoot = process.getuid?.() === 0;
/** One size for each way of transfer: one call, a stream, a resumable stream. */
const SIZES = [10, 300_000, 17_000_000] as const;

let client: TestClient;
let server: ServerProcess;
let folders = 0;

before(async () => {
  ({ client, server } = await signedInClient());
  for (const bytes of SIZES) {
    const path = join(client.folder, `of-${bytes}`);
    writeFileSync(path, "");
    truncateSync(path, bytes);
    assert.equal((await client.run(import("./put-command.ts"), [path, "/"])).code, 0);
  }
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

/** A folder of its own with a file to be replaced. */
function target(mode: number): string {
  const folder = join(client.folder, `target-${++folders}`);
  mkdirSync(folder);
  const path = join(folder, "file");
  writeFileSync(path, "old");
  chmodSync(path, mode);
  return path;
}

async function get(bytes: number, path: string): Promise<void> {
  const { code, err } = await client.run(import("./get-command.ts"), ["-q", `/of-${bytes}`, path]);
  assert.equal(code, 0, err);
  assert.equal(statSync(path).size, bytes);
  assert.deepEqual(
    readdirSync(dirname(path)).filter((name) => name.includes(".part")),
    [],
  );
}

/** The mode of a new file under the umask. */
function newFileMode(): number {
  const path = join(client.folder, "by-umask");
  writeFileSync(path, "");
  return modeOf(path);
}

const modeOf = (path: string): number => lstatSync(path).mode & 0o7777;

for (const bytes of SIZES) {
  test(`a file of ${bytes} bytes takes the mode of the one that it replaces, but no right to run as its owner`, async () => {
    for (const mode of [0o600, 0o640, 0o444, 0o755, 0o666, 0o4711]) {
      const path = target(mode);
      await get(bytes, path);
      assert.equal(modeOf(path), mode & 0o777);
    }
    const made = join(dirname(target(0o600)), "new");
    await get(bytes, made);
    assert.equal(modeOf(made), newFileMode());
  });

  test(`of ${bytes} bytes: a symbolic link is replaced and not followed, another name of the old file keeps the old one`, async () => {
    const path = target(0o600);
    const link = join(dirname(path), "link");
    symlinkSync(path, link);
    await get(bytes, link);
    assert.equal(lstatSync(link).isFile(), true);
    assert.equal(modeOf(link), newFileMode());
    const other = join(dirname(path), "other");
    linkSync(path, other);
    await get(bytes, path);
    assert.deepEqual([readFileSync(other, "utf8"), readFileSync(path).length], ["old", bytes]);
    assert.deepEqual([modeOf(other), modeOf(path)], [0o600, 0o600]);
  });

  test(`of ${bytes} bytes: owner and group stay where this user may give files away`, {
    skip: !isRoot,
  }, async () => {
    const path = target(0o640);
    chownSync(path, 12_345, 54_321);
    await get(bytes, path);
    const { uid, gid } = statSync(path);
    assert.deepEqual([uid, gid, modeOf(path)], [12_345, 54_321, 0o640]);
  });
}

test("while it fills nobody may read it who could not read what it replaces, also what an earlier download has left", async () => {
  const path = target(0o600);
  const folder = dirname(path);
  const writer = await LocalFileWriter.create(folder, "file");
  const [temporary = ""] = readdirSync(folder).filter((name) => name.endsWith(".part"));
  assert.equal(modeOf(join(folder, temporary)), 0o600);
  await writer.discard();
  const partial = claimPartial(folder, { remote: { root: "", path: "/x" }, name: "file", etag: "1-1" }) ?? "";
  writeFileSync(partial, "part", { mode: 0o644 });
  const onwards = await LocalFileWriter.goOn(folder, "file", partial);
  assert.equal(onwards?.lengthBytes, 4);
  assert.equal(modeOf(partial), 0o600);
  await onwards.finish(1_000);
  assert.equal(readFileSync(path, "utf8"), "part");
});

test("a part that is a link, has another name, is no file or is somebody else's is not written to", async () => {
  const path = target(0o644);
  const folder = dirname(path);
  const victim = join(folder, "victim");
  writeFileSync(victim, "victim");
  const plant: Record<string, (at: string) => void> = {
    link: (at) => symlinkSync(victim, at),
    name: (at) => linkSync(victim, at),
    folder: (at) => mkdirSync(at),
    ...(isRoot
      ? {
          owner: (at: string) => {
            writeFileSync(at, "theirs");
            chownSync(at, 12_345, 12_345);
          },
        }
      : {}),
  };
  for (const [what, make] of Object.entries(plant)) {
    const partial = join(folder, `.grove-get-${what}.part`);
    make(partial);
    assert.equal(await LocalFileWriter.goOn(folder, "file", partial), undefined, what);
  }
  assert.equal(readFileSync(victim, "utf8"), "victim");
});

test("a link to an open file of a process, as /dev/stdout is, is not replaced", {
  skip: process.platform !== "linux",
}, async () => {
  const path = target(0o600);
  const descriptor = openSync(path, "r");
  const link = join(dirname(path), "stdout");
  symlinkSync(`/proc/self/fd/${descriptor}`, link);
  const { code, err } = await client.run(import("./get-command.ts"), ["-q", `/of-${SIZES[0]}`, link]);
  closeSync(descriptor);
  assert.equal(code, 1);
  assert.match(err, /is neither a file nor a folder\. To send the bytes there: grove cat PATH > TARGET/);
  assert.equal(lstatSync(link).isSymbolicLink(), true);
});

test("under another group than before that group may do only what everybody may", () => {
  const modes = [0o640, 0o660, 0o664, 0o666, 0o600, 0o755, 0o604, 0o046];
  assert.deepEqual(modes.map(modeForOtherGroup), [0o600, 0o600, 0o644, 0o666, 0o600, 0o755, 0o604, 0o046]);
});
