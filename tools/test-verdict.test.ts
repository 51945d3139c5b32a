// Tests `npm test` over planted files: failures are named last, and no result is lost.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const RUNNER = fileURLToPath(new URL("test.ts", import.meta.url));
const FIRST = new URL("test-process.ts", import.meta.url).href;
const { NODE_TEST_CONTEXT: _, ...ENV } = process.env;

const FILES: Readonly<Record<string, string>> = {
  // Its open handle is the reason for the forced exit.
  good: `test("fine", () => {});\nsetInterval(() => {}, 1_000);`,
  bad: `test("fails at the top", () => { throw new Error("first words"); });
suite("a suite", () => { test("fails inside", () => assert.fail()); test("passes inside", () => {}); });
test("outer", async (t) => { await t.test("fails below", () => assert.fail()); });`,
  dies: `test("one", () => {});\ntest("two", () => process.kill(process.pid, "SIGKILL"));`,
  leaves: `test("one", () => process.reallyExit(0));\ntest("never told", () => assert.fail());`,
  wrong: "const = 1;",
  // Each finds only what its own hooks have set.
  hooks: `let hooks = ""; before(() => { hooks += "before "; }); beforeEach(() => { hooks += "each "; });
test("one", () => assert.equal(hooks, "before each "));`,
  hooked: `let hooks = ""; before(() => { hooks += "before "; }); after(() => { hooks = ""; });
test("one", () => assert.equal(hooks, "before "));`,
  skipped: `test("has no program", { skip: "no program" }, () => {});\ntest("fine", () => {});`,
  parent: `import { spawnSync } from "node:child_process";
test("starts another", () => spawnSync(process.execPath, ["-e", "while (process.cpuUsage().user < 4e5);"]));`,
  none: "void test;",
  empty: `suite("a suite", () => {});`,
  late: `setTimeout(() => test("too late", () => assert.fail()), 60_000).unref();`,
  many: `for (let at = 0; at < 400; at++) test("number " + at + " with a title of some length", () => {});
setInterval(() => {}, 1_000);`,
};
let folder = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "grove-verdict-"));
  const head =
    'import assert from "node:assert/strict"; import { after, before, beforeEach, suite, test } from "node:test";';
  for (const [name, text] of Object.entries(FILES))
    await writeFile(join(folder, `${name}.test.mjs`), `${head} ${text}\n`);
});
after(() => rm(folder, { recursive: true }));

function runTests(...words: string[]): { readonly code: number | null; readonly lines: string[] } {
  const argv = words.map((word) => (word.startsWith("-") ? word : join(folder, `${word}.test.mjs`)));
  const { status, stdout } = spawnSync(process.execPath, [RUNNER, ...argv], { env: ENV, encoding: "utf8" });
  return { code: status, lines: stdout.trimEnd().split("\n") };
}

/** The lines after the last one with this text, without the files' folders. */
function behind(lines: readonly string[], mark: string): string[] {
  const at = lines.lastIndexOf(mark);
  assert.notEqual(at, -1, lines.join("\n"));
  return lines.slice(at + 1).map((line) => line.replace(/(\s)\S*\/(?=[a-z]+\.test)/, "$1"));
}

test("the names of what failed are the last on the screen: tests, those in suites, files that die or do not parse", () => {
  const { code, lines } = runTests("bad", "dies", "good", "leaves", "wrong");
  assert.equal(code, 1);
  assert.deepEqual(behind(lines, "Failed:"), [
    "  ✖ bad.test.mjs:1  fails at the top",
    "  ✖ bad.test.mjs:2  fails inside",
    "  ✖ bad.test.mjs:3  fails below",
    "  ✖ dies.test.mjs:1  (the file itself)",
    "  ✖ leaves.test.mjs  (ended before it had told all its results)",
    "  ✖ wrong.test.mjs:1  (the file itself)",
  ]);
  const reasons = behind(lines, "Reasons:");
  const at = reasons.findIndex((line) => line.endsWith("bad.test.mjs:1  fails at the top"));
  assert.match(reasons[at + 1] ?? "", /^ {4}Error: first words$/);
});

test("files that share a process have their own hooks, and their failures have the same names", () => {
  const { code, lines } = runTests("--shared", "good", "hooks", "bad", "hooked", "wrong", "skipped");
  assert.equal(code, 1);
  assert.deepEqual(behind(lines, "Failed:"), [
    "  ✖ bad.test.mjs:1  fails at the top",
    "  ✖ bad.test.mjs:2  fails inside",
    "  ✖ bad.test.mjs:3  fails below",
    "  ✖ wrong.test.mjs  (the file itself)",
  ]);
  assert.deepEqual(lines.slice(-10, -6), ["ℹ tests 11", "ℹ pass 6", "ℹ fail 4", "ℹ skipped 1"]);
});

test("the death of a shared process fails each file that has not ended", () => {
  for (const death of ["dies", "leaves"]) {
    const { code, lines } = runTests("--shared", "good", death, "skipped");
    assert.equal(code, 1);
    const failed = behind(lines, "Failed:");
    for (const name of [death, "skipped"])
      assert.ok(failed.includes(`  ✖ ${name}.test.mjs  (ended before it had told all its results)`), name);
  }
});

test("a file that registers no test is a failure, alone and in a shared process", () => {
  const empty = "(has registered no test)";
  for (const [none, ...words] of [["(ended before it had told all its results)"], [empty, "--shared"]]) {
    const { code, lines } = runTests(...words, "good", "none", "empty", "late", "skipped");
    assert.equal(code, 1);
    assert.deepEqual(behind(lines, "Failed:"), [
      `  ✖ empty.test.mjs  ${empty}`,
      `  ✖ late.test.mjs  ${none}`,
      `  ✖ none.test.mjs  ${none}`,
    ]);
  }
});

test("with --costs each file's processor time is shown, that of its children included, the dearest first", () => {
  const { lines } = runTests("--costs", "good", "parent");
  const at = lines.indexOf("Processor time in seconds:");
  assert.notEqual(at, -1, lines.join("\n"));
  const rows = lines.slice(at + 1, at + 4).map((line) => line.trim().split("  "));
  assert.deepEqual(
    rows.map(([, name = ""]) => name.split("/").at(-1)),
    ["parent.test.mjs", "good.test.mjs", "all"],
  );
  const [dearest = 0, other = 0, all = 0] = rows.map(([seconds]) => Number(seconds));
  assert.ok(dearest >= 0.4 && other > 0, "the child has worked for 0.4 s");
  assert.ok(all > dearest + other, "the runner's own is counted");
});

test("what was skipped passes, and fails with its name where none may be", () => {
  const { code, lines } = runTests("good", "skipped");
  assert.equal(code, 0);
  assert.deepEqual(lines.slice(-4), ["ℹ tests 3", "ℹ pass 2", "ℹ fail 0", "ℹ skipped 1"]);
  const strict = runTests("good", "skipped", "--no-skip");
  assert.equal(strict.code, 1);
  assert.deepEqual(behind(strict.lines, "Skipped, and here none may be:"), [
    "  ﹣ skipped.test.mjs:1  has no program",
  ]);
});

test("all results of a file arrive, also when nobody reads them before its process wants to end", async () => {
  const argv = [`--import=${FIRST}`, "--test-force-exit", join(folder, "many.test.mjs")];
  const env = { ...ENV, NODE_TEST_CONTEXT: "child-v8" };
  const child = spawn(process.execPath, argv, { env, stdio: ["ignore", "pipe", "inherit"] });
  const closed = once(child, "close");
  // Until it has ended, or has filled the pipe.
  for (let looks = 0; looks < 20 && child.exitCode === null; looks++) await sleep(100);
  let told = "";
  child.stdout.setEncoding("latin1").on("data", (text: string) => {
    told += text;
  });
  assert.deepEqual(await closed, [0, null]);
  assert.match(told, /number 399 /);
  assert.match(told, /test:summary/);
});
