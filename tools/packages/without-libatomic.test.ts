// Tests a Node without libatomic: it names the library no more, and its threads count right.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { readProgram } from "./elf-program.ts";
import type { Architecture } from "./package-build.ts";
import { withoutLibatomic, writeAmd64 } from "./without-libatomic.ts";

const LOCKED = fileURLToPath(
  new URL(`../../node_modules/node-linux-${process.arch}/bin/node`, import.meta.url),
);
const architecture: Architecture = process.arch === "x64" ? "amd64" : "arm64";
const skip = existsSync(LOCKED) ? false : "needs the locked Node of Linux";

/** Four threads make and drop functions, each of which takes an entry of V8's one table by this exchange. */
const THREADS = `
const { Worker, isMainThread, parentPort } = require("node:worker_threads");
const count = () => {
  let sum = 0;
  for (let round = 0; round < 40; round++) {
    const made = [];
    for (let index = 0; index < 500; index++) made.push(new Function("x", "return x + " + index + " - " + round));
    for (const one of made) sum += one(round);
  }
  return sum;
};
if (!isMainThread) parentPort.postMessage(count());
else {
  const sums = [count()];
  for (let left = 4; left > 0; left--) new Worker(__filename).on("message", (sum) => {
    sums.push(sum);
    if (sums.length === 5) console.log([...new Set(sums)].join());
  });
}
`;

let program: Buffer;

before(async () => {
  if (skip === false) program = await readFile(LOCKED);
});

const needsLibatomic = (bytes: Buffer): boolean =>
  readProgram(bytes).relocations.some(({ library }) => library === "libatomic.so.1");

test("a Node without libatomic neither names it nor uses it, and its threads work", { skip }, async () => {
  assert.ok(needsLibatomic(program), "Node needs it no more: this step can go");
  const bytes = Buffer.from(program);
  withoutLibatomic(bytes, architecture);
  assert.equal(needsLibatomic(bytes), false);
  const folder = scratchFolder("grove-without-libatomic-");
  const node = join(folder, "node");
  const script = join(folder, "threads.cjs");
  await writeFile(node, bytes, { mode: 0o755 });
  await writeFile(script, THREADS);
  const { status, stdout, stderr } = spawnSync(node, [script], { encoding: "utf8", timeout: 60_000 });
  assert.equal(status, 0, stderr);
  assert.equal(stdout.trim(), "4990000");
  const loaded = spawnSync(node, ["-p", "process.report.getReport().sharedObjects.join()"], {
    encoding: "utf8",
  });
  assert.match(loaded.stdout, /libstdc\+\+/);
  assert.doesNotMatch(loaded.stdout, /libatomic/);
});

test("a program that is done already, or calls the function for another size, is refused", { skip }, () => {
  const bytes = Buffer.from(program);
  withoutLibatomic(bytes, architecture);
  assert.throws(() => withoutLibatomic(bytes, architecture), /uses nothing/);
  const other = Buffer.from(program);
  const { start, end } = readProgram(other).code;
  // Every size that is an argument becomes sixteen.
  const [eight, sixteen] = architecture === "amd64" ? ["bf08000000", "bf10000000"] : ["00018052", "00028052"];
  const wanted = Buffer.from(eight, "hex");
  for (let at = other.indexOf(wanted, start); at !== -1 && at < end; at = other.indexOf(wanted, at + 1)) {
    other.write(sixteen, at, "hex");
  }
  assert.throws(() => withoutLibatomic(other, architecture), /0 of \d+ calls/);
});

const START = 0x400000;
const [PLACE, EXPECTED, DESIRED, STUB, MAIN] = [0x78, 0x80, 0x88, 0x90, 0xb0];

/** A whole program for x64: calls the function once, writes the three values, and ends with what it returned. */
function callingProgram(values: readonly bigint[]): Buffer {
  const bytes = Buffer.alloc(0x120);
  Buffer.from("7f454c46020101", "hex").copy(bytes);
  for (const [at, value] of [
    [16, 2],
    [18, 62],
    [20, 1],
    [52, 64],
    [54, 56],
    [56, 1],
    [64, 1],
    [68, 7],
  ] as const) {
    bytes.writeUInt16LE(value, at);
  }
  for (const [at, value] of [
    [24, START + MAIN],
    [32, 64],
    [80, START],
    [88, START],
    [96, 0x120],
    [104, 0x120],
  ] as const) {
    bytes.writeBigUInt64LE(BigInt(value), at);
  }
  for (const [index, value] of values.entries()) bytes.writeBigUInt64LE(value, PLACE + 8 * index);
  bytes.writeUInt16LE(0x25ff, STUB + 16);
  bytes[STUB + 22] = 0x68;
  writeAmd64(bytes, STUB);
  const address = (offset: number): string => {
    const eight = Buffer.alloc(8);
    eight.writeBigUInt64LE(BigInt(START + offset));
    return eight.toString("hex");
  };
  const setUp = `bf0800000048be${address(PLACE)}48ba${address(EXPECTED)}48b9${address(DESIRED)}`;
  const back = Buffer.alloc(4);
  back.writeInt32LE(STUB - (MAIN + setUp.length / 2 + 5));
  // write(1, place, 24), then exit with the result.
  const rest = `0fb6d8b801000000bf0100000048be${address(PLACE)}ba180000000f0589dfb83c0000000f05`;
  Buffer.from(`${setUp}e8${back.toString("hex")}${rest}`, "hex").copy(bytes, MAIN);
  return bytes;
}

test("the function exchanges what is as expected, and otherwise says what is there, in one locked instruction", {
  skip: process.arch === "x64" && process.platform === "linux" ? false : "needs Linux on x64",
}, async () => {
  const [old, other, wished] = [0x1122334455667788n, 0x1122334455667789n, 0x99aabbccddeeff00n];
  const path = join(scratchFolder("grove-without-libatomic-"), "call");
  for (const { expected, after, status } of [
    { expected: old, after: [wished, old, wished], status: 1 },
    { expected: other, after: [old, old, wished], status: 0 },
  ]) {
    const bytes = callingProgram([old, expected, wished]);
    assert.ok(bytes.subarray(STUB, STUB + 16).includes(Buffer.from("f0480fb10e", "hex")), "lock cmpxchg");
    await writeFile(path, bytes, { mode: 0o755 });
    const ended = spawnSync(path, []);
    assert.equal(ended.status, status, String(ended.error ?? ended.signal));
    assert.deepEqual(
      [0, 8, 16].map((at) => ended.stdout.readBigUInt64LE(at)),
      after,
    );
  }
});

test("what is no program is refused", () => {
  assert.throws(() => readProgram(Buffer.from("#!/bin/sh\nexec true\n".padEnd(64))), /no program of 64 bits/);
});
