// Holds ARCHITECTURE.md to the room plan: each room has one row in its table, and each row is a room.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { ROOMS } from "./rooms.ts";

test("the table of ARCHITECTURE.md has one row for each room of the plan", async () => {
  const text = await readFile(new URL("../ARCHITECTURE.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| ((?:`[a-z/-]+`(?:, )?)+) \|/gm)];
  const named = rows.flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([a-z/-]+)`/g)].map(([, room = ""]) => room),
  );
  assert.deepEqual(new Set(named), new Set(Object.keys(ROOMS)));
  assert.equal(named.length, Object.keys(ROOMS).length);
});
