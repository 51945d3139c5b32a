// Compares the protocol with the last release's: it may only grow; --renew saves the current one (D18).
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FOLDER = "proto/released";
const IMAGE_NAME = /^grove-(.+)\.binpb$/;

/** The image of the last release and its version; exactly one exists. */
export function releasedImage(): { readonly path: string; readonly version: string } {
  const [image, ...more] = readdirSync(join(ROOT, FOLDER)).flatMap((name) => {
    const version = IMAGE_NAME.exec(name)?.[1];
    return version === undefined ? [] : [{ path: join(ROOT, FOLDER, name), version }];
  });
  if (image === undefined || more.length > 0) throw new Error(`${FOLDER} has not one image of a release`);
  return image;
}

/** The output of `buf` for an incompatible change of the released protocol; undefined without one. */
export function brokenPromises(repository: string): string | undefined {
  const { status, stdout, stderr } = buf(repository, ["breaking", "--against", releasedImage().path]);
  return status === 0 ? undefined : `${stdout}${stderr}`;
}

function renew(): void {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  const last = releasedImage();
  if (last.version === version) {
    fail(
      `${FOLDER} has the protocol of ${version} already: set the version of the new release in package.json first`,
    );
  }
  const path = join(ROOT, FOLDER, `grove-${version}.binpb`);
  const made = buf(ROOT, ["build", "--path", "proto/grove", "--exclude-source-info", "-o", path]);
  if (made.status !== 0) fail(made.stderr);
  rmSync(last.path);
  console.log(`${FOLDER} has the protocol of ${version} now, instead of that of ${last.version}: commit it`);
}

function buf(
  cwd: string,
  words: readonly string[],
): { status: number | null; stdout: string; stderr: string } {
  const program = join(ROOT, "node_modules/.bin/buf");
  return spawnSync(program, words, { cwd, encoding: "utf8" });
}

function fail(text: string): never {
  console.error(text);
  process.exit(1);
}

if (import.meta.main) {
  const broken = brokenPromises(ROOT);
  if (broken !== undefined) {
    const rule = "Fields, methods and files are added and never removed, renumbered or changed.";
    fail(`${broken}The protocol breaks with clients and servers of ${releasedImage().version}. ${rule}`);
  }
  if (process.argv.includes("--renew")) renew();
}
