// Tests of the note that keeps two runs from one folder.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { startByPs } from "./transfer-hold.ts";

test("where there is no /proc it is known when a process began, so that its number under another program holds nothing", async () => {
  assert.match(await startByPs(process.pid), /^\d{10}$/);
  const gone = spawn(process.execPath, ["-e", ""]);
  await once(gone, "exit");
  assert.equal(await startByPs(gone.pid ?? 0), "");
});
