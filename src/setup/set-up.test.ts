// Tests what a run tells about a machine that systemd runs, by one that is written below a folder.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { diskFolder, scratchFolder } from "#testing/scratch-folder.ts";
import type { Answers } from "./answers.ts";
import { openMachine } from "./machine.ts";
import { readRecord } from "./record.ts";
import { setUp } from "./set-up.ts";

test("a service that the answers leave out goes on until it is stopped, and the run says how", async () => {
  const folder = scratchFolder("grove-set-up-", diskFolder());
  const machine = { ...openMachine(folder), isSystem: true };
  const answers: Answers = {
    roles: "metaserver fileserver",
    name: "localhost",
    id: "n1",
    provider: "mock",
    data: join(folder, "data"),
    store: "sqlite",
  };
  const run = async (roles: string): Promise<readonly string[]> => {
    const said: string[] = [];
    const record = await readRecord(machine.settings);
    const say = (line: string): void => void said.push(line);
    await setUp({ machine, answers: { ...answers, roles }, record, consent: async () => true, say });
    return said.filter((line) => line.startsWith("off:"));
  };
  assert.deepEqual(await run("metaserver fileserver"), []);
  assert.deepEqual(await run("metaserver"), [
    "off:    svc-fileserver.service; its settings and data stay, and it runs until 'systemctl stop svc-fileserver.service'",
  ]);
});
