// Counts a copy's work in the writer, on which all changes wait: constant per inode at any depth of the tree
// (D13).
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { CopyReply } from "#storage/metadata/copy-messages.ts";
import { migrate, openWriter } from "#storage/metadata/schema.ts";
import { Ledger } from "#storage/metadata/unit-of-work.ts";
import { CommandTable } from "#storage/writer/command-table.ts";
import { isCopied } from "#storage/writer/copy-commands.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { OWNER } from "./store.fixture.ts";

const CHANGE = { owner: OWNER, by: OWNER, accessVersion: undefined, nowMs: 1 };
/**
 * Look-ups and state changes of directories per copied directory: it is made, settled, and its parent found.
 */
const STEPS_PER_DIRECTORY = 8;

for (const levels of [600, 1_500]) {
  test(`copying ${levels} directories, one in the other, takes the same number of steps for each (D13)`, (context) => {
    const db = openWriter(join(temporaryDirectory(context), "inodes.db"));
    context.after(() => db.close());
    migrate(db, "id");
    const ledger = new Ledger(db);
    const table = new CommandTable(db, ledger);
    const { directoryId: parentId } = table.apply({
      op: "createRoot",
      owner: OWNER,
      rootId: "r",
      nowMs: 1,
    }) as {
      directoryId: number;
    };
    const data = new Uint8Array(1);
    const file = { op: "createFile", ...CHANGE, parentId, name: "f", data, mtimeMs: 1 } as const;
    const { inode } = table.apply(file) as { inode: { id: number } };
    const { item } = table.apply({ op: "trash", ...CHANGE, inodeId: inode.id }) as { item: { id: string } };
    const names = Array.from({ length: levels }, () => "d");
    const restore = { op: "restore", ...CHANGE, trashId: item.id, onConflict: "fail" } as const;
    table.apply({ ...restore, names: [...names, "f"] });
    const top = table.apply({ op: "createDirectory", ...CHANGE, parentId, name: "beside" }) as {
      inode: { id: number };
    };

    let steps = 0;
    for (const method of ["directory", "touch"] as const) {
      const original = ledger[method].bind(ledger) as (argument: never) => never;
      context.mock.method(ledger, method, (argument: never) => {
        steps++;
        return original(argument);
      });
    }
    const sourceId = top.inode.id - levels;
    const most = { maxBytes: 1, maxInodes: 1_000_000 };
    const place = { ...CHANGE, ...most, sourceId, parentId, name: "copy", onConflict: "fail" } as const;
    let reply = table.apply({ op: "beginCopy", ...place }) as CopyReply;
    while ("job" in reply && !isCopied(reply.job)) {
      ledger.begin();
      reply = table.apply({ op: "copySlice", ...CHANGE, job: reply.job }) as CopyReply;
    }
    assert.ok("job" in reply);
    assert.ok(steps <= STEPS_PER_DIRECTORY * levels, `${steps} steps`);
    const done = table.apply({ op: "finishCopy", ...place, job: reply.job }) as {
      inode: { sizeBytes: number; childCount: number };
    };
    assert.deepEqual([done.inode.sizeBytes, done.inode.childCount], [1, 1]);
  });
}
