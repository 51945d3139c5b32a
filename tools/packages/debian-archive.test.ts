// Tests that a Debian package has the same bytes whoever makes it, wherever and whenever.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { lutimesSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { debianArchive } from "./debian-archive.ts";

const EPOCH = 1_700_000_000;
const CONTROL = `Package: grove
Version: 1
Architecture: all
Maintainer: Nobody <nobody@grove.invalid>
Description: a trial
`;
const FILES: readonly (readonly [path: string, content: string])[] = [
  ["DEBIAN/control", CONTROL],
  ["DEBIAN/postinst", "#!/bin/sh\n"],
  ["usr/bin/tool", "#!/bin/sh\n"],
  ["usr/lib/grove/b", "b".repeat(100_000)],
  ["usr/lib/grove/a", "a"],
  ["etc/secret/key", "key"],
];
const MODES = {
  "DEBIAN/postinst": 0o755,
  "usr/bin/tool": 0o755,
  "etc/secret": 0o700,
  "etc/secret/key": 0o440,
};
const skip = spawnSync("dpkg-deb", ["--version"]).error === undefined ? false : "needs dpkg-deb";

interface Maker {
  readonly umask: number;
  readonly zone: string;
  readonly locale: string;
  /** Unix seconds at which the files were written. */
  readonly writtenAt: number;
  readonly isBackwards: boolean;
}

const umask = process.umask(0o022);
const settings = { TZ: process.env["TZ"], LC_ALL: process.env["LC_ALL"] };
after(() => {
  process.umask(umask);
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

/** The package as somebody would make it. */
async function made(maker: Maker, modes: Readonly<Record<string, number>> = MODES): Promise<string> {
  process.umask(maker.umask);
  process.env["TZ"] = maker.zone;
  process.env["LC_ALL"] = maker.locale;
  const folder = scratchFolder("grove a debian archive-");
  const tree = join(folder, "tree");
  for (const [path, content] of maker.isBackwards ? FILES.toReversed() : FILES) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), content);
    lutimesSync(join(tree, path), maker.writtenAt, maker.writtenAt);
  }
  symlinkSync("tool", join(tree, "usr/bin/other"));
  const target = join(folder, "made.deb");
  await debianArchive({ tree, target, epoch: EPOCH, modes });
  return target;
}

// The one writes before the moment that all files carry, the other after it.
const EARLY: Maker = {
  umask: 0o022,
  zone: "UTC",
  locale: "C",
  writtenAt: EPOCH - 86_400,
  isBackwards: false,
};
const LATE: Maker = {
  umask: 0o077,
  zone: "Asia/Tokyo",
  locale: "C.UTF-8",
  writtenAt: EPOCH + 86_400,
  isBackwards: true,
};

test("the same files give the same bytes under another umask, zone, locale, clock and order", {
  skip,
}, async () => {
  const [early, late] = [await made(EARLY), await made(LATE)];
  const listing = (path: string): string =>
    execFileSync("dpkg-deb", ["-c", path], { encoding: "utf8", env: { ...process.env, TZ: "UTC" } });
  assert.equal(listing(late), listing(early));
  assert.ok(readFileSync(late).equals(readFileSync(early)));
  assert.match(listing(early), /^-r--r----- root\/root +3 2023-11-14 22:13 \.\/etc\/secret\/key$/m);
});

test("a mode of a path that is not there is refused", { skip }, async () => {
  await assert.rejects(made(EARLY, { ...MODES, "usr/bin/absent": 0o755 }), /lacks usr\/bin\/absent/);
});
