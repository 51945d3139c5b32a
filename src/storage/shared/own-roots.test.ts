// Tests that a group names its roots in all rows that tell one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { requireOwnRoots } from "./own-roots.ts";

test("rows of a root that is not held are refused in each table that tells the root, and a lock's key tells none", () => {
  const held = [{ number: 3, epoch: 1, batch: 0 }];
  const own = (table: string, ...rows: object[]): void => requireOwnRoots([{ table, gone: [], rows }], held);
  own("inode", { id: 3 * ROOT_STRIDE + 7 });
  own("lock", { token: "t", root_number: 3 });
  requireOwnRoots([{ table: "lock", gone: [{ token: "t" }], rows: [] }], held);
  own("chunk", { id: 5 });
  for (const [table, row] of [
    ["inode", { id: 4 * ROOT_STRIDE }],
    ["lock", { token: "t", root_number: 4 }],
    ["trash", { root_number: 2, id: "x" }],
  ] as const) {
    assert.throws(() => own(table, row), /of a root that it does not hold/, table);
  }
  assert.throws(() => requireOwnRoots([], []), /under no root/);
});
