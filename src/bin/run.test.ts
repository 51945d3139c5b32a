// Tests of the program's answers before any command runs: words, streams and exit codes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { VERSION } from "#base/version.ts";
import { COMMANDS } from "./commands.ts";

const ENTRY = fileURLToPath(new URL("./grove.ts", import.meta.url));

function grove(...words: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [ENTRY, ...words], { encoding: "utf8", timeout: 60_000 });
}

test("help and version are printed to standard output with exit code 0", () => {
  for (const words of [[], ["--help"], ["-h"], ["-help"], ["help"]]) {
    const { status, stdout, stderr } = grove(...words);
    assert.match(stdout, /^Grove: .*\n\nUsage: grove COMMAND/);
    assert.deepEqual([status, stderr], [0, ""]);
  }
  for (const word of ["--version", "-version", "-V", "version"]) {
    const { status, stdout } = grove(word);
    assert.equal(stdout, `grove ${VERSION} (Node ${process.versions.node})\n`);
    assert.equal(status, 0);
  }
});

test("an unknown command is a usage error, exit code 1, with the one that was meant (D24)", () => {
  const near = grove("fileservr", "-data", "x");
  assert.equal(near.stderr, `grove: there is no command "fileservr"; did you mean 'grove fileserver'?\n`);
  assert.deepEqual([near.status, near.stdout], [1, ""]);
  const far = grove("\u001b[31mxyzzy");
  assert.equal(far.stderr, `grove: there is no command "\\u001b[31mxyzzy"; 'grove --help' lists them all\n`);
  assert.equal(far.status, 1);
});

test("help reads no command's module and not the parser either", () => {
  const { stdout } = spawnSync(
    process.execPath,
    [
      "--input-type=module",
      "--eval",
      `import { registerHooks } from "node:module";
       const seen = [];
       registerHooks({ load: (url, context, next) => (seen.push(url), next(url, context)) });
       process.argv = [process.argv[0], "grove", "--help"];
       await import(${JSON.stringify(ENTRY)});
       console.log("\\n" + JSON.stringify(seen));`,
    ],
    { encoding: "utf8", timeout: 60_000 },
  );
  const seen = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "[]") as string[];
  const names = seen.flatMap((url) => (url.startsWith("file:") ? (url.split("/").at(-1) ?? []) : []));
  assert.deepEqual(names.toSorted(), ["client-commands.ts", "commands.ts", "grove.ts", "help.ts", "run.ts"]);
});

const RUN = fileURLToPath(new URL("./run.ts", import.meta.url));

/** Runs a command line against one command made for the test, in a process of its own. */
function runMade(words: readonly string[], action: string, server = false, env: NodeJS.ProcessEnv = {}) {
  const script = `
    import { Command } from "commander";
    import { GroveError } from "#base/errors.ts";
    import { run } from ${JSON.stringify(RUN)};
    const command = () => new Command("made").description("Made").argument("[path]").option("--data-dir <dir>").option("--json")
      .action(async (path, options) => { ${action} });
    process.exitCode = await run(${JSON.stringify(words)}, [{ title: "", commands: [{ name: "made", summary: "", server: ${server}, load: async () => ({ command }) }] }]);`;
  return spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    encoding: "utf8",
    env: { ...process.env, ...env },
    timeout: 60_000,
  });
}

test("a command gets its flags and arguments, with one dash or two", () => {
  const action = `console.log(JSON.stringify([path, options]));`;
  for (const flag of ["-data_dir", "--data-dir"]) {
    const { stdout, status } = runMade(["made", flag, "d 1", "a b"], action);
    assert.equal(stdout, `["a b",{"dataDir":"d 1"}]\n`);
    assert.equal(status, 0);
  }
});

test("a command line that its parser refuses ends with exit code 1, its help with 0 (D24)", () => {
  const unknown = runMade(["made", "-data_dri", "d"], "");
  assert.equal(
    unknown.stderr,
    "grove made: unknown option '--data-dri' (Did you mean --data-dir?). 'grove made --help' explains it.\n",
  );
  assert.equal(unknown.status, 1);
  assert.equal(runMade(["made", "a", "b"], "").status, 1);
  for (const words of [
    ["made", "--help"],
    ["made", "-h"],
    ["made", "-help"],
    ["help", "made"],
  ]) {
    const { status, stdout } = runMade(words, "");
    assert.match(stdout, /^Usage: grove made \[options\] \[path\]/);
    assert.equal(status, 0);
  }
});

test("with --json a refused command line and a failure are JSON, with what to do beside (D24)", () => {
  const { status, stderr } = runMade(["made", "--json", "--data-dri", "d"], "");
  assert.equal(status, 1);
  const usage = JSON.parse(stderr) as { error: Record<string, unknown> };
  assert.deepEqual([usage.error["code"], usage.error["reason"]], ["USAGE", null]);
  assert.match(String(usage.error["hint"]), /made --help/);
  const failed = runMade(
    ["made", "--data-dir=x", "--json"],
    `throw new GroveError("NOT_EMPTY", "full", { metadata: { entries: "2" } });`,
  );
  const { error } = JSON.parse(failed.stderr) as { error: Record<string, unknown> };
  assert.deepEqual([error["reason"], error["metadata"]], ["NOT_EMPTY", { entries: "2" }]);
  // After the end of flags, a path that looks like one is a path.
  assert.match(runMade(["made", "--", "--json", "b"], "").stderr, /^grove made: /);
});

test("an error that a command lets go is one line, with the exit code of its reason (D24)", () => {
  const refusal = `throw new GroveError("QUOTA_EXCEEDED", "storage quota exceeded");`;
  for (const server of [false, true]) {
    const { status, stderr } = runMade(["made"], refusal, server);
    assert.deepEqual([status, stderr], [5, "grove made: storage quota exceeded\n"]);
  }
  const fault = runMade(["made"], `throw new TypeError("oh\\nno");`);
  assert.deepEqual([fault.status, fault.stderr], [1, "grove made: oh\n"]);
});

test("a path that cannot be had is one line for a server too", () => {
  const action = `await (await import("node:fs/promises")).mkdir("/dev/null/x");`;
  const { status, stderr } = runMade(["made"], action, true);
  assert.deepEqual([status, stderr], [1, "grove made: ENOTDIR: not a directory, mkdir '/dev/null/x'\n"]);
});

test("a full disk is named by what has no room there, with what to do", () => {
  const full = `throw Object.assign(new Error("ENOSPC: no space left on device"), {
    code: "ENOSPC", syscall: "copyfile", path: "/srv/chunk", dest: "/mnt/copy" })`;
  const words = "/mnt/copy: no space is left on that disk. Free some space and try again.";
  for (const server of [false, true]) {
    const { status, stderr } = runMade(["made"], full, server);
    assert.deepEqual([status, stderr], [1, `grove made: ${words}\n`]);
  }
});

test("a fault shows its stack in a server's log and with GROVE_DEBUG", () => {
  const fault = `throw new TypeError("oh");`;
  assert.match(runMade(["made"], fault, true).stderr, /^grove made: TypeError: oh\n {4}at /);
  assert.match(
    runMade(["made"], fault, false, { GROVE_DEBUG: "1" }).stderr,
    /^grove made: TypeError: oh\n {4}at /,
  );
});

test("an error outside every handler ends the program with one line and exit code 1", () => {
  const { status, stderr } = runMade(
    ["made"],
    `setInterval(() => {}, 1_000); void Promise.reject(new Error("lost")); await new Promise(() => {});`,
  );
  assert.deepEqual([status, stderr], [1, "grove made: lost\n"]);
});

test("a reader that leaves ends a command quietly", () => {
  const endless = `for (;;) { if (!process.stdout.write("line\\n".repeat(1_000))) await new Promise((done) => setImmediate(done)); }`;
  const script = `
    import { Command } from "commander";
    import { run } from ${JSON.stringify(RUN)};
    const command = () => new Command("made").action(async () => { ${endless} });
    await run(["made"], [{ title: "", commands: [{ name: "made", summary: "", load: async () => ({ command }) }] }]);`;
  const { status, stdout, stderr } = spawnSync(
    "sh",
    ["-c", `"$0" --input-type=module --eval "$1" | head -n 1`, process.execPath, script],
    { cwd: fileURLToPath(new URL(".", import.meta.url)), encoding: "utf8", timeout: 60_000 },
  );
  assert.deepEqual([status, stdout, stderr], [0, "line\n", ""]);
});

for (const { name, load } of COMMANDS) {
  test(`grove ${name}: its module answers with a parser of that name, described`, async () => {
    const parser = (await load()).command();
    assert.equal(parser.name(), name);
    assert.match(parser.description(), /\w/);
  });
}
