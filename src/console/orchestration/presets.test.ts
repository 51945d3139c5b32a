// Tests presets: eight valid built-in ones, an operator's file, and clear errors (decision D7).
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { presetsReply } from "#wire/webapi/action-record.ts";
import { planFor } from "./action-arguments.ts";
import { BUILT_IN_PRESETS, readPresets } from "./presets.ts";

let folder = "";
let path = "";
before(async () => {
  folder = scratchFolder("grove-presets-");
  path = join(folder, "presets.json");
});

const own = (more: object = {}): object => ({
  id: "clean",
  title: "Clean",
  description: "",
  request: { action: "build", nodes: "all", make_target: "clean" },
  danger: "none",
  ...more,
});
const write = (...presets: object[]): Promise<void> => writeFile(path, JSON.stringify({ presets }));

test("eight are built in, each of them an action in full that a node can run", async () => {
  assert.equal(BUILT_IN_PRESETS.length, 8);
  assert.deepEqual(await readPresets(undefined), BUILT_IN_PRESETS);
  assert.equal(new Set(BUILT_IN_PRESETS.map(({ id }) => id)).size, 8);
  presetsReply.parse(JSON.parse(JSON.stringify(BUILT_IN_PRESETS)));
  const services = { fileserver: {}, metaserver: {}, admin: {} };
  for (const { request } of BUILT_IN_PRESETS) {
    assert.ok(planFor(request, { id: "n1", repository: "/srv", services }).steps.length > 0);
  }
});

test("a file adds its own, and takes the place of a built-in one of the same id", async () => {
  await write(own(), own({ id: "build", title: "Build all" }));
  const presets = await readPresets(path);
  assert.equal(presets.length, 9);
  assert.equal(presets.find(({ id }) => id === "build")?.title, "Build all");
  assert.equal(presets.at(-1)?.id, "clean");
});

test("a file with something wrong in it is refused with its name and the place", async () => {
  const table: [string, RegExp][] = [
    ["{", /presets\.json: it is not JSON/],
    ["{}", /presets: /],
    [
      JSON.stringify({ presets: [own({ request: { action: "build", nodes: "all", make_target: "A=b" } })] }),
      /presets\.0\.request\.make_target/,
    ],
    [JSON.stringify({ presets: [own({ danger: "high" })] }), /presets\.0\.danger/],
    [JSON.stringify({ presets: [own({ sudo: true })] }), /sudo/],
    [JSON.stringify({ presets: [own(), own()] }), /clean is there twice/],
    [JSON.stringify({ schema: 2, presets: [] }), /schema/],
    [" ".repeat(1_048_577), /larger than/],
  ];
  for (const [text, says] of table) {
    await writeFile(path, text);
    await assert.rejects(
      readPresets(path),
      (error) => isGroveError(error, "BAD_ARGUMENT") && says.test(error.message),
      text.slice(0, 80),
    );
  }
  await assert.rejects(readPresets(join(folder, "absent")), /absent: it cannot be read/);
});
