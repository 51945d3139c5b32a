// State files: content, the generation in force, and the refusal of a newer Grove's files (A-10, D18).
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readGenerations, readStateFile, requireKnownSchema, shapeOf } from "./state-file.ts";

interface Content {
  readonly schema: 1;
  readonly word: string;
}

const shape = shapeOf((value) => {
  const { schema, word } = value as Record<string, unknown>;
  if (schema !== 1 || typeof word !== "string") throw new Error("it is something else");
  return { schema, word } satisfies Content;
});

async function statePath(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "os-state-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "state.json");
}

const textOf = (word: string): string => JSON.stringify({ schema: 1, word });

test("a file is its content, missing, or broken; a newer Grove's is refused with what to do (D18)", async (t) => {
  const path = await statePath(t);
  assert.equal(await readStateFile(path, shape), "missing");
  for (const text of [
    "",
    "{",
    "null",
    "7",
    "[]",
    '{"schema":0,"word":"a"}',
    '{"schema":"2"}',
    '{"schema":1}',
  ]) {
    await writeFile(path, text);
    assert.equal(await readStateFile(path, shape), "broken", text);
  }
  await writeFile(path, textOf("a"));
  assert.deepEqual(await readStateFile(path, shape), { schema: 1, word: "a" });
  await writeFile(path, '{"schema":2}');
  const sentence =
    `${path} has schema 2 and was written by a newer Grove; this one knows schemas up to 1: ` +
    "start the newer Grove, or restore a copy from before the upgrade";
  await assert.rejects(readStateFile(path, shape), { code: "BAD_ARGUMENT", message: sentence });
  await rm(path);
  await assert.rejects(readStateFile(join(path, "..", "."), shape), { code: "EISDIR" });
});

test("the newest schema that is known is no newer one, and what is no number is judged elsewhere", () => {
  for (const schema of [undefined, null, "9", -1, 0, 1, 2]) requireKnownSchema("it", schema, 2);
  for (const schema of [3, 2.5, Number.POSITIVE_INFINITY]) {
    assert.throws(() => requireKnownSchema("it", schema, 2), { code: "BAD_ARGUMENT" });
  }
});

test("the generation before counts where the file is missing or broken; lost is what was there and is not sound", async (t) => {
  const path = await statePath(t);
  const read = (): Promise<unknown> => readGenerations(path, (one) => readStateFile(one, shape));
  const put = async (file: string | undefined, before: string | undefined): Promise<void> => {
    for (const [name, text] of [
      [path, file],
      [`${path}.previous`, before],
    ] as const) {
      if (text === undefined) await rm(name, { force: true });
      else await writeFile(name, text);
    }
  };
  const [a, b] = [
    { schema: 1, word: "a" },
    { schema: 1, word: "b" },
  ];
  const rows = [
    [textOf("a"), textOf("b"), { content: a, current: "sound", isLost: false }],
    [textOf("a"), "{", { content: a, current: "sound", isLost: false }],
    ["{", textOf("b"), { content: b, current: "broken", isLost: false }],
    [undefined, textOf("b"), { content: b, current: "missing", isLost: false }],
    [undefined, undefined, { content: undefined, current: "missing", isLost: false }],
    ["{", undefined, { content: undefined, current: "broken", isLost: true }],
    [undefined, "{", { content: undefined, current: "missing", isLost: true }],
    ["{", "{", { content: undefined, current: "broken", isLost: true }],
  ] as const;
  for (const [file, before, expected] of rows) {
    await put(file, before);
    assert.deepEqual(await read(), expected, `${file} ${before}`);
  }
  await put("{", '{"schema":2}');
  await assert.rejects(read(), { code: "BAD_ARGUMENT" });
});
