// `npm run package`: a .deb for each architecture and the client as one file, in packages/, the same bytes each time.
//
// Usage: npm run package [-- amd64 arm64 client]
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clientFile } from "./client-file.ts";
import { debianPackage } from "./debian-package.ts";
import { ARCHITECTURES, isArchitecture, ROOT, run, sourceTime } from "./package-build.ts";

const wanted = process.argv.slice(2);
const unknown = wanted.find((word) => !isArchitecture(word) && word !== "client");
if (unknown !== undefined) {
  process.stderr.write(
    `npm run package: ${JSON.stringify(unknown)} is none of ${ARCHITECTURES.join(", ")}, client\n`,
  );
  process.exit(1);
}
const isWanted = (word: string): boolean => wanted.length === 0 || wanted.includes(word);

const out = join(ROOT, "packages");
await mkdir(out, { recursive: true });
const scratch = await mkdtemp(join(tmpdir(), "grove-package-"));
try {
  const epoch = await sourceTime();
  await run("npm", ["run", "--silent", "build"], ROOT);
  for (const architecture of ARCHITECTURES.filter(isWanted)) {
    process.stdout.write(`${await debianPackage({ architecture, out, scratch, epoch })}\n`);
  }
  if (isWanted("client")) {
    for (const architecture of ARCHITECTURES) {
      process.stdout.write(`${await clientFile({ architecture, out, scratch, epoch })}\n`);
    }
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}
