// Tests of the checkpoint thread: the log stays bounded, and a failed flush there is final.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WAL_CHECKPOINT_BYTES } from "#storage/writer/writer.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { assertSound, OWNER, openTestStorage } from "./store.fixture.ts";

const hasStrace = spawnSync("strace", ["-V"]).status === 0;
const needsStrace = hasStrace ? {} : { skip: "strace is not installed" };
const program = fileURLToPath(new URL("./long-log.fixture.ts", import.meta.url));

test(
  "a failed flush of the database in the checkpoint's thread ends all changes, is not repeated, and loses nothing",
  needsStrace,
  async (context) => {
    const directory = temporaryDirectory(context);
    await (await openTestStorage(directory)).close();
    const trace = join(temporaryDirectory(context), "trace");
    const database = join(directory, "inodes.db");
    // The first flush of each thread succeeds: that of the start is the main thread's.
    const inject = "inject=fsync,fdatasync:error=EIO:when=2";
    const args = [
      "-f",
      "-y",
      "--seccomp-bpf",
      "-o",
      trace,
      "-P",
      database,
      "-e",
      "trace=fsync,fdatasync",
      "-e",
      inject,
    ];
    const { stdout, status } = spawnSync("strace", [...args, process.execPath, program, directory], {
      encoding: "utf8",
    });
    assert.equal(status, 0);
    const { made, failure } = JSON.parse(stdout) as { made: number; failure: string | null };
    const lines = readFileSync(trace, "utf8")
      .split("\n")
      .filter((line) => line.includes(`<${database}>`));
    const failed = lines.findIndex((line) => line.includes("(INJECTED)"));
    assert.ok(failed >= 0, "nothing was injected");
    assert.equal(lines.length, failed + 1, `flushed again: ${lines.slice(failed).join("; ")}`);
    assert.match(failure ?? "", /disk I\/O error/);
    const storage = await openTestStorage(directory);
    context.after(() => storage.close());
    assert.ok((storage.root(OWNER)?.usage.fileCount ?? 0) >= made);
    await storage.close();
    assertSound(directory);
  },
);

test("without descriptors for another thread the log is brought in, sorted listings are refused for now, and changes go on", async (context) => {
  const directory = temporaryDirectory(context);
  const few = fileURLToPath(new URL("./few-descriptors.fixture.ts", import.meta.url));
  const script = `ulimit -n 256 && exec "$0" "$@"`;
  const { stdout, status } = spawnSync("sh", ["-c", script, process.execPath, few, directory], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout);
  const { listings, logBytes, failure } = JSON.parse(stdout) as {
    listings: string[];
    logBytes: number;
    failure: string | null;
  };
  assert.equal(failure, null);
  assert.equal(listings[0], "OVERLOADED");
  assert.equal(listings.at(-1), "sorted");
  assert.ok(!listings.includes("CORRUPT"), listings.join());
  assert.ok(logBytes < 3 * WAL_CHECKPOINT_BYTES, String(logBytes));
  assertSound(directory);
});

test("however much is written, the log stays within a few times its limit", async (context) => {
  const directory = temporaryDirectory(context);
  const { stdout, status } = spawnSync(process.execPath, [program, directory], { encoding: "utf8" });
  assert.equal(status, 0);
  const { made, logBytes } = JSON.parse(stdout) as { made: number; logBytes: number };
  assert.equal(made, 40_000);
  assert.ok(logBytes < 5 * WAL_CHECKPOINT_BYTES, `the log was ${logBytes} bytes long`);
  // After the close everything is in the database, and more was written than fits into the log.
  assert.ok(statSync(join(directory, "inodes.db")).size > 4 * WAL_CHECKPOINT_BYTES);
  assert.equal(statSync(join(directory, "inodes.db-wal"), { throwIfNoEntry: false })?.size ?? 0, 0);
  assertSound(directory);
});
