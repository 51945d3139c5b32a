// Tests of -loops: how many event loops are usual on a machine, and what the flag takes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EngineSettings } from "#storage/engine/engine-settings.ts";
import { loopsFor, parseLoops, usualLoops } from "./loops-flag.ts";

const linux = (cores: number) => ({ cores, platform: "linux" });

test("one loop is usual below four cores and off Linux, else half of the cores up to four", () => {
  const usual = [1, 2, 3, 4, 5, 6, 7, 8, 64].map((cores) => usualLoops(linux(cores)));
  assert.deepEqual(usual, [1, 1, 1, 2, 2, 3, 3, 4, 4]);
  assert.equal(usualLoops({ cores: 8, platform: "darwin" }), 1);
});

test("-loops takes 1 to 4 on Linux and 1 elsewhere", () => {
  for (const text of ["1", "2", "4"]) assert.equal(parseLoops(text, linux(2)), Number(text));
  for (const text of ["0", "5", "-1", "1.5", "two", "", "01"]) {
    assert.throws(() => parseLoops(text, linux(8)), /from 1 to 4/);
  }
  assert.equal(parseLoops("1", { cores: 8, platform: "darwin" }), 1);
  assert.throws(() => parseLoops("2", { cores: 8, platform: "darwin" }), /only Linux/);
});

test("a node on the shared engine has one loop", () => {
  const engine = {} as EngineSettings;
  assert.equal(loopsFor(engine, undefined), 1);
  assert.equal(loopsFor(engine, 1), 1);
  assert.throws(() => loopsFor(engine, 2), /with -engine a node has one loop/);
  assert.equal(loopsFor(undefined, 3), 3);
  assert.equal(loopsFor(undefined, undefined), usualLoops());
});
