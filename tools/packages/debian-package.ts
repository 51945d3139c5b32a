// A package for Debian: the program with a Node of its own, units, sudoers, users, folders, completion and manual.
import { createHash } from "node:crypto";
import { copyFile, cp, mkdir, readdir, readFile, rm, rmdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { debianArchive } from "./debian-archive.ts";
import { manualPage } from "./manual-page.ts";
import {
  type Architecture,
  installPackages,
  NAMES,
  type PackageWork,
  packageVersion,
  ROOT,
  run,
  strip,
} from "./package-build.ts";

/** Where the program lies on a machine. */
const PROGRAM = "usr/lib/grove";
const DOCUMENTS = "usr/share/doc/grove";
/** Files of npm packages that are read at run time, or that a licence wants to stand beside them. */
const READ = /^(?!\.).*\.(?:[cm]?js|json|node|wasm)$|^(?:licen[cs]e|copying|notice)\b|^node$/i;
/** Folders of theirs that nothing is loaded from. */
const UNREAD_FOLDER = /\/(?:\.[^/]+|tests?|benchmarks?|examples?|integration|docs|scripts)$/;
/** What a package of Node brings besides the program and its licence. */
const NODE_EXTRAS = ["include", "share", "CHANGELOG.md", "README.md"];
const SHELLS = [
  { shell: "bash", path: "usr/share/bash-completion/completions/grove" },
  { shell: "zsh", path: "usr/share/zsh/vendor-completions/_grove" },
  { shell: "fish", path: "usr/share/fish/vendor_completions.d/grove.fish" },
];
const SCRIPTS = ["postinst", "prerm", "postrm"];
/** Programs, and what holds secrets or rights. */
const MODES: Readonly<Record<string, number>> = {
  ...Object.fromEntries(SCRIPTS.map((name) => [`DEBIAN/${name}`, 0o755])),
  [`${PROGRAM}/grove`]: 0o755,
  "etc/sudoers.d": 0o750,
  "etc/sudoers.d/svc": 0o440,
  "etc/grove": 0o700,
};

/** Makes the package of one architecture and returns its path. */
export async function debianPackage({ architecture, out, scratch, epoch }: PackageWork): Promise<string> {
  const version = await packageVersion();
  const tree = join(scratch, `deb-${architecture}`);
  await addProgram(tree, architecture);
  await addSystemFiles(tree);
  await addDocuments(tree, epoch);
  await addCommandHelp(tree);
  await addControl(tree, architecture, version);
  const target = join(out, `grove_${version}_${architecture}.deb`);
  const node = `${PROGRAM}/node_modules/node-linux-${NAMES[architecture].npm}/bin/node`;
  await debianArchive({ tree, target, epoch, modes: { ...MODES, [node]: 0o755 } });
  await rm(tree, { recursive: true });
  return target;
}

async function addProgram(tree: string, architecture: Architecture): Promise<void> {
  const program = join(tree, PROGRAM);
  await installPackages(program, architecture);
  await rm(join(program, "package-lock.json"));
  for (const name of [".bin", ".package-lock.json"]) {
    await rm(join(program, "node_modules", name), { recursive: true, force: true });
  }
  const node = join(program, `node_modules/node-linux-${NAMES[architecture].npm}`);
  for (const name of NODE_EXTRAS) await rm(join(node, name), { recursive: true, force: true });
  await strip(join(node, "bin/node"), architecture);
  await removeUnread(join(program, "node_modules"));
  await cp(join(ROOT, "dist"), join(program, "dist"), { recursive: true });
  await cp(join(ROOT, "proto/grove"), join(program, "proto/grove"), { recursive: true });
  await copyFile(join(ROOT, "grove"), join(program, "grove"));
  await mkdir(join(tree, "usr/bin"), { recursive: true });
  await symlink("../lib/grove/grove", join(tree, "usr/bin/grove"));
}

/** Removes what Grove never reads from packages of npm: documents, tests, commands, and folders without a file. */
async function removeUnread(packages: string): Promise<void> {
  const folders: string[] = [];
  for (const entry of await readdir(packages, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) folders.push(path);
    if (entry.name === "package.json") {
      for (const command of await commandsOf(path)) await rm(command, { force: true });
    }
    const isRead = entry.isDirectory() ? !UNREAD_FOLDER.test(path) : READ.test(entry.name);
    if (!isRead) await rm(path, { recursive: true, force: true });
  }
  // Inner folders come before those around them.
  for (const folder of folders.toSorted().toReversed()) await rmdir(folder).catch(() => undefined);
}

/** Programs that a package brings for people's shells; Node is one that Grove runs. */
async function commandsOf(manifest: string): Promise<string[]> {
  const { name = "", bin = {} } = JSON.parse(await readFile(manifest, "utf8").catch(() => "{}")) as {
    readonly name?: string;
    readonly bin?: string | Readonly<Record<string, string>>;
  };
  if (name.startsWith("node-linux-")) return [];
  const paths = typeof bin === "string" ? [bin] : Object.values(bin);
  return paths.map((path) => join(dirname(manifest), path));
}

async function addSystemFiles(tree: string): Promise<void> {
  const units = join(ROOT, "packaging/systemd");
  for (const name of await readdir(units)) {
    const text = await readFile(join(units, name), "utf8");
    const here = text
      .replaceAll("/opt/grove/docs/", `/${DOCUMENTS}/`)
      .replaceAll("/opt/grove/grove", `/${PROGRAM}/grove`);
    if (here.includes("/opt/") || here === text)
      throw new Error(`${name} names a place that the package lacks`);
    await place(tree, `usr/lib/systemd/system/${name}`, here);
  }
  await place(tree, "etc/sudoers.d/svc", await readFile(join(ROOT, "packaging/sudoers.d/svc")));
  for (const kind of ["sysusers.d", "tmpfiles.d"]) {
    await place(
      tree,
      `usr/lib/${kind}/grove.conf`,
      await readFile(join(ROOT, "packaging", kind, "grove.conf")),
    );
  }
  await mkdir(join(tree, "etc/grove"), { recursive: true });
}

async function addDocuments(tree: string, epoch: number): Promise<void> {
  const documents = join(tree, DOCUMENTS);
  await mkdir(join(documents, "examples"), { recursive: true });
  await cp(join(ROOT, "docs"), documents, { recursive: true, filter: (path) => !path.endsWith(".png") });
  await copyFile(join(ROOT, "README.md"), join(documents, "README.md"));
  await copyFile(join(ROOT, "SECURITY.md"), join(documents, "SECURITY.md"));
  for (const name of await readdir(join(ROOT, "packaging/env"))) {
    await copyFile(join(ROOT, "packaging/env", name), join(documents, "examples", name));
  }
  await place(tree, `${DOCUMENTS}/changelog.gz`, gzipSync(await changelog(epoch), { level: 9 }));
  await place(tree, `${DOCUMENTS}/copyright`, await readFile(join(ROOT, "packaging/debian/copyright")));
  await place(
    tree,
    "usr/share/lintian/overrides/grove",
    await readFile(join(ROOT, "packaging/debian/lintian-overrides")),
  );
}

/** The changelog as Debian's tools read it: one entry that points to ours. */
async function changelog(epoch: number): Promise<string> {
  const date = new Date(epoch * 1000).toUTCString().replace("GMT", "+0000");
  const { name, email } = await maintainer();
  return `grove (${await packageVersion()}) stable; urgency=medium

  * The changes of every version stand in CHANGELOG.md of the sources.

 -- ${name} <${email}>  ${date}
`;
}

/** The person in the template of the control file. */
async function maintainer(): Promise<{ name: string; email: string }> {
  const control = await readFile(join(ROOT, "packaging/debian/control"), "utf8");
  const [, name, email] = /^Maintainer: (.+) <(.+)>$/m.exec(control) ?? [];
  if (name === undefined || email === undefined)
    throw new Error("packaging/debian/control names no maintainer");
  return { name, email };
}

/** Completion and manual come from the program itself, so that they cannot differ from it. */
async function addCommandHelp(tree: string): Promise<void> {
  const entry = [join(ROOT, "dist/bin/grove.js")];
  const grove = (...words: string[]): Promise<string> =>
    run(process.execPath, [...entry, ...words], ROOT, {
      PATH: process.env["PATH"],
      HOME: tree,
      COLUMNS: "80",
    });
  for (const { shell, path } of SHELLS) await place(tree, path, `${await grove("completion", shell)}\n`);
  const page = await manualPage(grove, await packageVersion());
  await place(tree, "usr/share/man/man1/grove.1.gz", gzipSync(page, { level: 9 }));
  await rm(join(tree, ".cache"), { recursive: true, force: true });
  await rm(join(tree, ".config"), { recursive: true, force: true });
}

async function addControl(tree: string, architecture: Architecture, version: string): Promise<void> {
  const control = join(tree, "DEBIAN");
  const { files, kilobytes } = await contents(tree);
  await mkdir(control);
  const template = await readFile(join(ROOT, "packaging/debian/control"), "utf8");
  const filled = template
    .replace("@VERSION@", version)
    .replace("@ARCHITECTURE@", architecture)
    .replace("@KILOBYTES@", String(kilobytes));
  await writeFile(join(control, "control"), filled);
  await writeFile(join(control, "conffiles"), "/etc/sudoers.d/svc\n");
  await writeFile(join(control, "md5sums"), files.map(({ path, md5 }) => `${md5}  ${path}\n`).join(""));
  for (const name of SCRIPTS) await copyFile(join(ROOT, "packaging/debian", name), join(control, name));
}

async function contents(
  tree: string,
): Promise<{ files: { path: string; md5: string }[]; kilobytes: number }> {
  const files: { path: string; md5: string }[] = [];
  let kilobytes = 0;
  for (const entry of await readdir(tree, { recursive: true, withFileTypes: true })) {
    kilobytes += 1;
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = await readFile(path);
    kilobytes += Math.ceil(bytes.length / 1024);
    const name = path.slice(tree.length + 1);
    // Files of the administrator are compared by dpkg itself.
    if (!name.startsWith("etc/"))
      files.push({ path: name, md5: createHash("md5").update(bytes).digest("hex") });
  }
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { files, kilobytes };
}

async function place(tree: string, path: string, content: string | Uint8Array): Promise<void> {
  const target = join(tree, path);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, content);
}
