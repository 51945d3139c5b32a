// Tests of the records of folders in transfer.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { TRANSFER_RECORD_MS } from "#client/terminal/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { TransferJournal, type TransferPair, type TransferRecord } from "./transfer-journal.ts";

const PAIR: TransferPair = {
  verb: "put",
  cluster: "alice@example.com localhost:1",
  local: "/home/alice/photos",
  remote: { root: "", path: "/backup" },
};
const RECORD: TransferRecord = {
  placed: "/backup/photos",
  folderId: "1a",
  isFresh: true,
  startedMs: 1_700_000_000_000,
  isDone: false,
};

let folder = "";
let journal: TransferJournal;

beforeEach(() => {
  folder = join(scratchFolder("grove-journal-"), "transfers");
  journal = new TransferJournal(folder);
});

afterEach(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

test("a record comes back as it was, for the same pair alone", async () => {
  assert.equal(await journal.find(PAIR), undefined);
  await journal.keep(PAIR, RECORD);
  assert.deepEqual(await journal.find(PAIR), RECORD);
  const done = { ...RECORD, folderId: undefined, isFresh: false, isDone: true };
  await journal.keep(PAIR, done);
  assert.deepEqual(await journal.find(PAIR), done);
  for (const other of [
    { ...PAIR, verb: "get" as const },
    { ...PAIR, cluster: "bob@example.com localhost:1" },
    { ...PAIR, local: "/home/alice/photos2" },
    { ...PAIR, remote: { root: "bob@example.com", path: "/backup" } },
    { ...PAIR, remote: { root: "", path: "/backup2" } },
  ]) {
    assert.equal(await journal.find(other), undefined);
  }
});

test("a damaged record is none, and records are their owner's alone", async () => {
  await journal.keep(PAIR, RECORD);
  const path = join(folder, readdirSync(folder)[0] ?? "");
  assert.equal(statSync(path).mode & 0o077, 0);
  const text = readFileSync(path, "utf8");
  for (const damaged of ["", "{", text.replace("started_ms", "x"), text.replace('"/backup/photos"', "7")]) {
    writeFileSync(path, damaged);
    assert.equal(await journal.find(PAIR), undefined);
  }
});

test("what nobody has used for over a year goes when something new is kept", async () => {
  await journal.keep({ ...PAIR, local: "/old" }, RECORD);
  await journal.keep({ ...PAIR, local: "/young" }, RECORD);
  const [old = "", young = ""] = readdirSync(folder).sort(
    (one, other) =>
      Number(readFileSync(join(folder, other), "utf8").includes("/old")) -
      Number(readFileSync(join(folder, one), "utf8").includes("/old")),
  );
  const now = Date.now();
  utimesSync(join(folder, old), new Date(), new Date(now - TRANSFER_RECORD_MS - 60_000));
  utimesSync(join(folder, young), new Date(), new Date(now - TRANSFER_RECORD_MS + 60_000));
  await new TransferJournal(folder).keep(PAIR, RECORD);
  assert.equal(readdirSync(folder).includes(old), false);
  assert.equal(readdirSync(folder).includes(young), true);
});
