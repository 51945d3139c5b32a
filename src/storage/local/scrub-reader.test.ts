// Tests of single steps of a scrub: where a pass resumes, and which chunk rows are invalid.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import type { ScrubPass } from "#storage/contract/scrub-types.ts";
import { openReader } from "#storage/metadata/schema.ts";
import { ScrubReader, type ScrubStep } from "#storage/scrub/scrub-reader.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { OWNER, openTestStorage, patterned, upload } from "./store.fixture.ts";

const START: ScrubPass = {
  startedAtMs: 0,
  part: "chunks",
  position: 0,
  lastChunk: 2,
  readBytes: 0,
  found: 0,
};

/** A closed data directory with two large files and a small one. */
async function filled(context: TestContext): Promise<string> {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  for (const [name, size] of [
    ["a", 100_000],
    ["b", 150_000],
    ["c", 1_000],
  ] as const)
    await upload(storage, { parentId, name, bytes: patterned(size) });
  await storage.close();
  return directory;
}

function stepsFrom(directory: string, pass: ScrubPass): ScrubStep[] {
  const db = openReader(join(directory, "inodes.db"));
  try {
    return [...new ScrubReader(db, directory).steps(pass)];
  } finally {
    db.close();
  }
}

const partsOf = (steps: readonly ScrubStep[]): string[] => [...new Set(steps.map(({ pass }) => pass.part))];

test("a pass goes on in the part and at the place where it stopped, and reads nothing before it again", async (context) => {
  const directory = await filled(context);
  const whole = stepsFrom(directory, START);
  assert.deepEqual(partsOf(whole), ["chunks", "files", "database"]);
  for (const [index, { pass }] of whole.entries()) {
    if (pass.part === "chunks" && pass.position === 0) continue;
    const rest = stepsFrom(directory, pass);
    const last = (steps: readonly ScrubStep[]): unknown => steps.at(-1)?.pass.position;
    assert.equal(rest[0]?.pass.part === "chunks", whole[index + 1]?.pass.part === "chunks");
    assert.equal(last(rest) ?? pass.position, last(whole));
    assert.ok(rest.length <= whole.length - index, `${pass.part} ${pass.position}`);
  }
  const bytesOf = (steps: readonly ScrubStep[]): number => steps.at(-1)?.pass.readBytes ?? 0;
  assert.ok(bytesOf(whole) >= 251_000);
  assert.ok(bytesOf(stepsFrom(directory, { ...START, part: "files" })) < 100_000, "chunks are not read");
  assert.deepEqual(partsOf(stepsFrom(directory, { ...START, part: "database" })), ["database"]);
});

test("a row whose checksums do not fit together, or not its length, is damage even where the file is whole (A-08)", async (context) => {
  for (const [change, problem] of [
    ["crc32 = crc32 + 1", "has checksums that do not fit together"],
    ["block_crcs = x''", "has not one checksum per block"],
  ]) {
    const directory = await filled(context);
    const db = new DatabaseSync(join(directory, "inodes.db"));
    db.exec(`UPDATE chunk SET ${change} WHERE id = 2`);
    db.close();
    const found = stepsFrom(directory, START).flatMap((step) => step.found ?? []);
    assert.deepEqual(found[0], { kind: "chunk", chunkId: 2, problem });
  }
});
