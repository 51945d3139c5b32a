// A drop of which the browser cannot read all: the rest is taken, and what is left out has a name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readDrop, unreadableText } from "./drop.ts";

const file = (name: string, isReadable = true): object => ({
  name,
  isFile: true,
  file: (resolve: (file: object) => void, reject: (error: Error) => void) =>
    isReadable ? resolve({ name }) : reject(new Error("NotReadableError")),
});

/** A folder whose entries come in batches; an undefined one cannot be read. */
const folder = (name: string, batches: readonly (readonly object[] | undefined)[]): object => ({
  name,
  isFile: false,
  createReader: () => {
    const left = [...batches, []];
    return {
      readEntries: (resolve: (entries: readonly object[]) => void, reject: (error: Error) => void) => {
        const batch = left.shift();
        if (batch === undefined) reject(new Error("NotFoundError"));
        else resolve(batch);
      },
    };
  },
});

const dropOf = (entries: readonly object[]): DataTransfer =>
  ({
    items: entries.map((entry) => ({
      kind: "file",
      webkitGetAsEntry: () => entry,
      getAsFile: () => null,
    })),
  }) as unknown as DataTransfer;

test("what cannot be read keeps nothing else from being taken", async () => {
  const { files, folders, unreadable } = await readDrop(
    dropOf([
      file("locked.txt", false),
      folder("docs", [[file("a.txt")], [file("b.txt", false), folder("shut", [undefined])], [file("c.txt")]]),
      folder("half", [[file("d.txt")], undefined]),
      file("last.txt"),
    ]),
  );
  assert.deepEqual(
    files.map(({ path }) => path),
    ["docs/a.txt", "docs/c.txt", "half/d.txt", "last.txt"],
  );
  assert.deepEqual(folders, ["docs", "docs/shut", "half"]);
  assert.deepEqual(unreadable, ["locked.txt", "docs/b.txt", "docs/shut", "half"]);
});

test("a few of them are named", () => {
  assert.equal(unreadableText(["a"]), "This browser could not read a. All else is uploaded.");
  const many = Array.from({ length: 8 }, (_, at) => `f${at}`);
  assert.match(unreadableText(many), /^This browser could not read f0, f1, f2, f3, f4 and 3 others\./u);
});
