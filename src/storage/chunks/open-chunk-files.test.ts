// Tests of chunk files kept open: bounded except for those in use, and reopened after an error.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { OpenChunkFiles } from "./open-chunk-files.ts";

interface OpenFiles {
  readonly files: OpenChunkFiles;
  /** Names in the order in which they were opened. */
  readonly opened: string[];
  readonly use: (name: string) => Promise<void>;
}

function keeping(context: TestContext, limit: number): OpenFiles {
  const directory = temporaryDirectory(context);
  const opened: string[] = [];
  const files = new OpenChunkFiles((name) => {
    opened.push(name);
    return join(directory, name);
  }, limit);
  for (const name of ["a", "b", "c", "d"]) writeFileSync(join(directory, name), name);
  context.after(() => files.closeAll());
  return { files, opened, use: (name) => files.use(name, async () => undefined) };
}

test("as many stay open as the limit says, and those go first that were used longest ago", async (context) => {
  const { opened, use } = keeping(context, 2);
  for (const name of ["a", "b", "a", "b", "a"]) await use(name);
  assert.deepEqual(opened, ["a", "b"]);
  await use("c");
  assert.deepEqual(opened, ["a", "b", "c"]);
  await use("a");
  assert.deepEqual(opened, ["a", "b", "c"]);
  await use("b");
  assert.deepEqual(opened, ["a", "b", "c", "b"]);
});

test("what is in use stays open beyond the limit, and goes with its last user", async (context) => {
  const { files, opened, use } = keeping(context, 1);
  const end = Promise.withResolvers<void>();
  const long = files.use("a", () => end.promise);
  await use("b");
  await use("c");
  const again = files.use("a", () => end.promise);
  assert.deepEqual(opened, ["a", "b", "c"]);
  end.resolve();
  await Promise.all([long, again]);
  await use("a");
  assert.deepEqual(opened, ["a", "b", "c"]);
  await use("b");
  await use("a");
  assert.deepEqual(opened, ["a", "b", "c", "b", "a"]);
});

test("a file that failed is opened anew, and one that was forgotten while in use too", async (context) => {
  const { files, opened, use } = keeping(context, 2);
  await assert.rejects(
    files.use("a", async () => {
      throw new Error("unreadable");
    }),
    /unreadable/,
  );
  await use("a");
  assert.deepEqual(opened, ["a", "a"]);
  await files.use("a", async () => files.forget("a"));
  await use("a");
  assert.deepEqual(opened, ["a", "a", "a"]);
  await assert.rejects(
    files.use("a", async () => {
      files.forget("a");
      throw new Error("gone");
    }),
    /gone/,
  );
  files.forget("never opened");
  await use("a");
  assert.equal(opened.length, 4);
});
