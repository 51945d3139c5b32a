// Tests the client as one file, made with this machine's Node: all commands are in it, and no server.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { makeClient } from "./client-file.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const LIBRARY = `crc32-linux-${process.arch}-gnu/crc32.linux-${process.arch}-gnu.node`;
const crc32 = join(ROOT, "node_modules/@node-rs", LIBRARY);
const skip = existsSync(crc32) ? false : "needs the packages of Linux with glibc";

let folder: string;
let client: string;

/** Runs the client where there is nothing else: no Node, no packages, no settings. */
function run(...words: string[]): { status: number | null; output: string } {
  const env = { PATH: "/nonexistent", HOME: folder };
  const { status, stdout, stderr } = spawnSync(client, words, { cwd: folder, encoding: "utf8", env });
  return { status, output: stdout + stderr };
}

before(async () => {
  if (skip !== false) return;
  folder = scratchFolder("grove-client-file-");
  client = join(folder, "grove-client");
  const architecture = process.arch === "x64" ? "amd64" : "arm64";
  await makeClient({ architecture, folder, node: process.execPath, crc32, made: client });
});

test("the client as one file has all of its commands, and knows no server", { skip }, () => {
  assert.match(run("--version").output, /^grove \d+\.\d+\.\d+ /);
  const table = readFileSync(join(ROOT, "src/bin/client-commands.ts"), "utf8");
  const names = [...table.matchAll(/^ +name: "([a-z-]+)",$/gm)].map(([, name]) => name);
  const { output } = run("--help");
  assert.deepEqual(
    [...output.matchAll(/^ {2}([a-z][a-z-]*) {2,}\S/gm)].map(([, name]) => name),
    [...names.filter((name) => name !== "completion"), "completion"],
  );
  for (const name of ["login", "put", "shell", "completion"]) {
    const help = run(name, "--help");
    assert.equal(help.status, 0, help.output);
    assert.match(help.output, new RegExp(`^Usage: grove ${name}`));
  }
  assert.match(run("fileserver").output, /there is no command "fileserver"/);
});

test("the client as one file does not say in which folder it was made", { skip }, () => {
  assert.equal(readFileSync(client).includes(folder), false);
});

test("the client as one file reaches for the network as any other", { skip }, () => {
  const { status, output } = run("login", "--fileserver", "127.0.0.1:1", "--mock", "alice@example.com");
  assert.notEqual(status, 0);
  assert.match(output, /127\.0\.0\.1:1/);
});
