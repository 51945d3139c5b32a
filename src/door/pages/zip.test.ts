// Archives: their bytes, their length, sizes beyond 32 bits, and names that do no harm where they are unpacked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { contentTypeOfName, dispositionOf } from "./content-types.ts";
import { archiveBytes, centralHeader, endOf, localHeader, type ZipEntry } from "./zip.ts";
import { type TakenNames, zipName } from "./zip-names.ts";

test("an archive has the length that was said, and its directory points at every entry", () => {
  const data = new Map([
    ["a/", ""],
    ["a/é.txt", "hello"],
    ["b", ""],
  ]);
  const entries: ZipEntry[] = [...data].map(([name, text]) => ({
    name,
    size: Buffer.byteLength(text),
    crc32: crc32(text),
    changedMs: Date.UTC(2026, 10, 24, 2, 4, 6),
  }));
  let archive = Buffer.alloc(0);
  const offsets: number[] = [];
  for (const entry of entries) {
    offsets.push(archive.length);
    archive = Buffer.concat([archive, localHeader(entry), Buffer.from(data.get(entry.name) ?? "")]);
  }
  const directory = Buffer.concat(entries.map((entry, at) => centralHeader(entry, offsets[at] ?? 0)));
  const end = endOf(entries.length, { offset: archive.length, bytes: directory.length });
  assert.equal(archiveBytes(entries), archive.length + directory.length + end.length);
  assert.equal(end.readUInt16LE(10), 3);
  assert.equal(end.readUInt32LE(16), archive.length);
  assert.equal(directory.readUInt32LE(42), 0);
  assert.equal(localHeader(entries[1] as ZipEntry).readUInt32LE(14), crc32("hello"));
});

test("sizes and offsets beyond 4 GiB stand in zip64 fields", () => {
  const large: ZipEntry = { name: "large", size: 5_000_000_000, crc32: 7, changedMs: 0 };
  const local = localHeader(large);
  assert.equal(local.readUInt32LE(18), 0xff_ff_ff_ff);
  assert.equal(local.readBigUInt64LE(30 + 5 + 4), 5_000_000_000n);
  const row = centralHeader({ ...large, size: 1 }, 6_000_000_000);
  assert.equal(row.readUInt32LE(20), 1);
  assert.equal(row.readBigUInt64LE(46 + 5 + 4), 6_000_000_000n);
  const end = endOf(70_000, { offset: 6_000_000_000, bytes: 1_000 });
  assert.equal(end.length, 56 + 20 + 22);
  assert.equal(end.readBigUInt64LE(32), 70_000n);
});

test("names inside archives lead nowhere else and are unlike their neighbours on every system", () => {
  const taken: TakenNames = new Map();
  const made = (name: string): string => zipName(name, taken);
  assert.equal(made("..\\..\\x"), ".._.._x");
  assert.equal(made("a:b"), "a_b");
  assert.equal(made("gpj.\u202eexe"), "gpj._exe");
  assert.equal(made("CON.txt"), "_CON.txt");
  assert.equal(made("dots. ."), "dots___");
  assert.equal(made("..."), "___");
  assert.equal(made("Report.pdf"), "Report.pdf");
  assert.equal(made("report.pdf"), "report (2).pdf");
  assert.equal(made("REPORT.PDF"), "REPORT (3).PDF");
  assert.equal(made("straße"), "straße");
  assert.equal(made("STRASSE"), "STRASSE (2)");
  assert.equal(made("\u212a.txt"), "\u212a.txt");
  assert.equal(made("k.txt"), "k (2).txt");
  assert.equal(made("nul .txt"), "_nul .txt");
  assert.equal(made("CONIN$"), "_CONIN$");
  assert.ok(made("x".repeat(255)).length <= 200);
});

test("a folder of names that all become one is named in time that grows with their number alone", () => {
  const taken: TakenNames = new Map();
  let looks = 0;
  const has = taken.has.bind(taken);
  taken.has = (name) => {
    looks++;
    return has(name);
  };
  const made = new Set<string>();
  for (let at = 0; at < 3_000; at++) {
    const name = Array.from(at.toString(7).padStart(5, "0"), (digit) => '<>:"|?*'[Number(digit)]).join("");
    made.add(zipName(name, taken).toLowerCase());
  }
  assert.equal(made.size, 3_000);
  assert.ok(looks < 10_000, `${looks} looks`);
  // A name that has a number of its own keeps its neighbours apart too.
  const few: TakenNames = new Map();
  const names = ["a (2)", "a", "A", "a (3)", "a", "a (2)"].map((name) => zipName(name, few));
  assert.equal(new Set(names.map((name) => name.toLowerCase())).size, names.length, names.join());
});

test("only what is in the table is shown, by the table's type, and no name ends a header", () => {
  assert.deepEqual(contentTypeOfName("a.PNG"), { type: "image/png", isShown: true });
  for (const name of ["a.html", "a.svg", "a.xml", "a.xhtml", "a.js", "a", "a.png.", "a.constructor", "a.pdf"])
    assert.equal(contentTypeOfName(name).isShown, false, name);
  assert.equal(contentTypeOfName("a.html").type, "application/octet-stream");
  const header = dispositionOf('a"\r\nset-cookie: x; <é>.txt', false);
  assert.match(header, /^attachment; filename="[A-Za-z0-9 ._-]+"; filename\*=UTF-8''[A-Za-z0-9%._~!-]+$/u);
});
