// Tests that copies of a stopped process's folder hold its files, and the acknowledgements given by then.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { layOut, outlineOf, outlineOfCopy } from "./lay-out.ts";
import { operationOf } from "./operations.ts";
import { Scene } from "./scene.ts";
import { type CopyTaken, lacksTracing } from "./traced-process.ts";

const lacking = lacksTracing();
const skip = lacking === undefined ? {} : { skip: lacking };

/** Every file with its mode, bytes and number of links. */
function contents(directory: string): [string, string][] {
  const found = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
  return found.map((path) => {
    const { mode, nlink } = statSync(join(directory, path));
    const isFile = statSync(join(directory, path)).isFile();
    const bytes = isFile ? readFileSync(join(directory, path)).toString("base64") : "";
    return [path, `${mode.toString(8)} ${isFile ? nlink : ""} ${bytes}`];
  });
}

test(
  "of one run there is a copy before and after each call: the last is what lies there at the end, told grows by what is told",
  skip,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "grove-copies-"));
    try {
      const copies = join(folder, "copies");
      const settings = { compileCache: join(folder, "compiled"), withReads: false, copies };
      const scene = await Scene.make(join(folder, "scene"), [operationOf("set-quota")], settings);
      const { calls, lines } = scene.reference;
      const taken = calls.flatMap(({ copies: of }) => [of?.entry, of?.exit] as (CopyTaken | undefined)[]);
      assert.ok(taken.every((each) => each !== undefined));
      assert.deepEqual(
        calls
          .filter(({ path }) => path === "(told)")
          .map(({ copies: of }) => [of?.entry?.told, of?.exit?.told]),
        lines
          .slice(lines.findIndex(({ event }) => event === "ready") + 1)
          .map((_, index) => [index, index + 1]),
      );
      const last = taken.at(-1)?.listing ?? "";
      const laidOut = join(folder, "laid-out");
      await layOut(copies, last, laidOut);
      const left = await scene.copyOfLeft();
      assert.deepEqual(contents(laidOut), contents(left));
      assert.equal(await outlineOfCopy(copies, last), await outlineOf(left));
      assert.notEqual(await outlineOfCopy(copies, taken[0]?.listing ?? ""), await outlineOf(left));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
