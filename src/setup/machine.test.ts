// Tests that folders are given away whole, and nothing that links in them lead to.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { giveAll, refuseForeignLinks } from "./machine.ts";

test("a folder is given with what is in it, and what its links lead to is not touched", (t) => {
  const top = mkdtempSync(join(tmpdir(), "grove-give-"));
  t.after(() => rmSync(top, { recursive: true, force: true }));
  const [given, other] = [join(top, "-given"), join(top, "other")];
  mkdirSync(join(given, "in"), { recursive: true });
  mkdirSync(other);
  writeFileSync(join(given, "in/key"), "");
  writeFileSync(join(other, "file"), "");
  symlinkSync(other, join(given, "link"));
  const changedAt = (path: string): bigint => statSync(path, { bigint: true }).ctimeNs;
  const [inside, outside] = [changedAt(join(given, "in/key")), changedAt(join(other, "file"))];
  const ids = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  giveAll([], ids);
  giveAll([given], ids);
  assert.notEqual(changedAt(join(given, "in/key")), inside);
  assert.equal(changedAt(join(other, "file")), outside);
  assert.throws(() => giveAll([join(top, "missing")], ids), { code: "BAD_ARGUMENT" });
});

test("links of others in what the services own are refused before root writes through them; one's own are not", (t) => {
  const top = mkdtempSync(join(tmpdir(), "grove-links-"));
  t.after(() => rmSync(top, { recursive: true, force: true }));
  const [folder, link] = [join(top, "tls"), join(top, "link")];
  mkdirSync(folder);
  writeFileSync(join(folder, "node.key"), "");
  const own = process.getuid?.() ?? 0;
  refuseForeignLinks([folder, join(top, "missing")], own + 1);
  symlinkSync("/etc/passwd", join(folder, "ca.crt"));
  symlinkSync(folder, link);
  refuseForeignLinks([folder, link], own);
  assert.throws(() => refuseForeignLinks([link], own + 1), { code: "BAD_ARGUMENT" });
  assert.throws(() => refuseForeignLinks([folder], own + 1), /ca\.crt is a link/);
});
