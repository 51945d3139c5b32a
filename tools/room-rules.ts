// The rules of the house: reads every source file below a root and lists violations of the room plan.
import { readdir, readFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { join, posix } from "node:path";
import {
  GENERATED,
  MAX_FILE_LINES,
  MAX_ROOM_FILES,
  MAX_ROOM_LEVELS,
  type Room,
  SENSITIVE_BUILTINS,
} from "./rooms.ts";
import { type ImportSite, readSource, type SourceFile } from "./source-file.ts";

/** The rules; each has a test that passes here and fails on a planted fault. */
export type Rule =
  | "barrel"
  | "builtin"
  | "circle"
  | "depth"
  | "file name"
  | "first sentence"
  | "length"
  | "page import"
  | "package"
  | "parent path"
  | "room import"
  | "room size"
  | "syntax"
  | "unknown room"
  | "unused grant";

/** One violation of a rule. */
export interface Violation {
  readonly rule: Rule;
  /** `path:line`, or the path alone. */
  readonly where: string;
  readonly what: string;
}

/** The plan of a house; the repository's own is in rooms.ts. */
export interface Plan {
  readonly rooms: Readonly<Record<string, Room>>;
  readonly longFiles: Readonly<Record<string, string>>;
  /** Floors of the folders of web/; the files beside them are above all. */
  readonly pageFloors: Readonly<Record<string, number>>;
}

const SOURCE_FOLDERS = ["src", "tools", "bench", "prove", "tests", "web"];
/** Names in package.json for folders outside src/. */
const OUTER_NAMES: Readonly<Record<string, string>> = { bench: "bench", prove: "prove", e2e: "tests/e2e" };
const VAGUE_NAMES = /^(?:index|utils?|helpers?|common|misc|shared|.*manager)$/;

/** Checks every .ts file below src, tools, bench, prove, tests and web of the folder. */
export async function checkHouse(root: string, plan: Plan): Promise<Violation[]> {
  const violations: Violation[] = [];
  const files: SourceFile[] = [];
  for (const path of await sourcePaths(root)) {
    try {
      files.push(readSource(path, await readFile(join(root, path), "utf8")));
    } catch (error) {
      violations.push({ rule: "syntax", where: path, what: String(error).split("\n", 1)[0] ?? "" });
    }
  }
  for (const file of files) {
    violations.push(...styleViolations(file, plan), ...importViolations(file, plan));
  }
  violations.push(...staleExceptions(files, plan), ...circles(files), ...tooLarge(files, plan));
  violations.push(...unusedGrants(files, plan), ...depths(files, plan));
  return violations;
}

/** Paths of the checked files below the root, in order. */
export async function sourcePaths(root: string): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of SOURCE_FOLDERS) {
    const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true }).catch(
      () => [],
    );
    for (const entry of entries) {
      const path = posix.join(entry.parentPath.slice(root.length + 1), entry.name);
      if (!entry.isFile() || !/\.tsx?$/.test(path)) continue;
      if (GENERATED.some((generated) => path.startsWith(`${generated}/`))) continue;
      paths.push(path);
    }
  }
  return paths.toSorted();
}

function styleViolations(file: SourceFile, plan: Plan): Violation[] {
  const violations: Violation[] = [];
  const add = (rule: Rule, what: string): number => violations.push({ rule, where: file.path, what });
  if (!hasFirstSentence(file.text)) {
    add("first sentence", "does not begin with a comment of one sentence that says what the file is for");
  }
  if (file.isBarrel) add("barrel", "only hands on what other modules export");
  if (file.lineCount > MAX_FILE_LINES && !(file.path in plan.longFiles)) {
    add("length", `has ${file.lineCount} lines; over ${MAX_FILE_LINES} needs a reason in tools/rooms.ts`);
  }
  const name = posix.basename(file.path).replace(/(?:\.[a-z]+)?\.tsx?$/, "");
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) add("file name", "is not in kebab-case");
  if (VAGUE_NAMES.test(name)) add("file name", "is not named for what it holds");
  return violations;
}

/** True when the text begins with line comments whose first paragraph is a sentence (after `#!`, if any). */
function hasFirstSentence(text: string): boolean {
  const lines = text.replace(/^#!.*\n/, "").split("\n");
  const end = lines.findIndex((line) => !/^\/\/ \S/.test(line));
  const comment = lines
    .slice(0, end)
    .map((line) => line.slice(3))
    .join(" ");
  return /^[^a-z\s].*[.!?](?:\s|$)/.test(comment);
}

function importViolations(file: SourceFile, plan: Plan): Violation[] {
  if (file.path.startsWith("web/")) return pageViolations(file, plan);
  const isRoom = file.path.startsWith("src/");
  const roomName = isRoom ? roomAt(file.path.slice("src/".length), plan) : undefined;
  const room = roomName === undefined ? undefined : plan.rooms[roomName];
  if (isRoom && room === undefined) {
    return [{ rule: "unknown room", where: file.path, what: `lies in no room of the plan` }];
  }
  return file.imports.flatMap((site) => {
    const where = `${file.path}:${site.line}`;
    if (site.specifier.startsWith("..") || site.specifier.includes("/../")) {
      return [
        { rule: "parent path", where, what: `imports ${site.specifier}; across rooms it is #room/file.ts` },
      ];
    }
    if (roomName === undefined || room === undefined) return [];
    const broken = judgeImport(site, { name: roomName, room, isTest: isTestFile(file.path), plan });
    return broken === undefined ? [] : [{ ...broken, where }];
  });
}

/** The room of a path below src/: the innermost folder of the plan around it. */
function roomAt(path: string, plan: Plan): string | undefined {
  const folder = posix.dirname(path);
  if (folder === ".") return undefined;
  return Object.hasOwn(plan.rooms, folder) ? folder : roomAt(folder, plan);
}

/**
 * The console's pages import with ../, for the browser's bundler; pages.test.ts checks their imports of src/.
 */
function pageViolations(file: SourceFile, plan: Plan): Violation[] {
  const folderOf = (path: string): string => path.split("/").slice(1, -1)[0] ?? "";
  const own = folderOf(file.path);
  const floorOf = (folder: string): number => plan.pageFloors[folder] ?? Number.POSITIVE_INFINITY;
  if (own !== "" && !Object.hasOwn(plan.pageFloors, own)) {
    return [{ rule: "unknown room", where: file.path, what: "lies in no folder of the plan" }];
  }
  return file.imports.flatMap(({ specifier, line }) => {
    const to = resolve(file.path, specifier).find((path) => path.startsWith("web/"));
    if (to === undefined || folderOf(to) === own || floorOf(folderOf(to)) < floorOf(own)) return [];
    return [{ rule: "page import", where: `${file.path}:${line}`, what: `${own} imports ${specifier}` }];
  });
}

/** Tests, and the folders and files that only tests use. */
function isTestFile(path: string): boolean {
  return /\.(?:test|fixture)\.tsx?$|\/(?:testdata|fixtures)\//.test(path);
}

interface Importer {
  readonly name: string;
  readonly room: Room;
  readonly isTest: boolean;
  readonly plan: Plan;
}

function judgeImport(site: ImportSite, importer: Importer): Omit<Violation, "where"> | undefined {
  const { specifier } = site;
  const { name, room, isTest, plan } = importer;
  if (specifier.startsWith("./") || specifier === "#package.json") return undefined;
  if (specifier.startsWith("#")) {
    const target = roomAt(specifier.slice(1), plan);
    const targetRoom = target === undefined ? undefined : plan.rooms[target];
    if (target === undefined || targetRoom === undefined)
      return { rule: "room import", what: `imports ${specifier}, which is no room` };
    if (target === name) return { rule: "room import", what: `imports its own room as ${specifier}; use ./` };
    const isAllowed = isTest
      ? target === "testing" || targetRoom.floor < room.floor
      : room.imports.includes(target) && targetRoom.floor < room.floor;
    return isAllowed ? undefined : { rule: "room import", what: `${name} imports ${specifier}` };
  }
  // Tests may use other programs against ours; knip checks their packages.
  if (isTest) return undefined;
  if (isBuiltin(specifier)) {
    if (!specifier.startsWith("node:"))
      return { rule: "builtin", what: `imports ${specifier} without node:` };
    const isForbidden = SENSITIVE_BUILTINS.includes(specifier) && !room.builtins.includes(specifier);
    return isForbidden ? { rule: "builtin", what: `${name} imports ${specifier}` } : undefined;
  }
  if (room.packages.includes(packageOf(specifier))) return undefined;
  return { rule: "package", what: `${name} imports ${specifier}` };
}

function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? "");
}

/** Grants of a room that none of its files uses, tests aside. */
function unusedGrants(files: readonly SourceFile[], plan: Plan): Violation[] {
  const used = new Map(Object.keys(plan.rooms).map((name) => [name, new Set<string>()]));
  for (const file of files) {
    const room = file.path.startsWith("src/") ? roomAt(file.path.slice("src/".length), plan) : undefined;
    if (room === undefined || isTestFile(file.path)) continue;
    for (const { specifier } of file.imports) {
      if (specifier.startsWith(".")) continue;
      if (specifier.startsWith("#")) used.get(room)?.add(`#${roomAt(specifier.slice(1), plan)}`);
      else used.get(room)?.add(isBuiltin(specifier) ? specifier : packageOf(specifier));
    }
  }
  return Object.entries(plan.rooms).flatMap(([name, { imports, packages, builtins }]) => {
    const granted = [...imports.map((target) => `#${target}`), ...packages, ...builtins];
    return granted
      .filter((grant) => !used.get(name)?.has(grant))
      .map((grant) => ({ rule: "unused grant", where: name, what: `may import ${grant} and does not` }));
  });
}

/** Rooms whose longest chain of imports exceeds the plan's, tests aside. */
function depths(files: readonly SourceFile[], plan: Plan): Violation[] {
  const product = files.filter((file) => file.path.startsWith("src/") && !isTestFile(file.path));
  const roomOf = new Map(product.map(({ path }) => [path, roomAt(path.slice("src/".length), plan)]));
  const byPath = new Map(product.map((file) => [file.path, file]));
  const known = new Map<string, readonly string[]>();
  const chainOf = (path: string): readonly string[] => {
    const found = known.get(path);
    if (found !== undefined) return found;
    // The chain ends at a cycle, which is a violation of its own.
    known.set(path, []);
    let longest: readonly string[] = [];
    for (const site of byPath.get(path)?.imports ?? []) {
      if (site.kind === "dynamic") continue;
      for (const to of resolve(path, site.specifier)) {
        if (!roomOf.has(to) || roomOf.get(to) !== roomOf.get(path)) continue;
        const chain = chainOf(to);
        if (chain.length > longest.length) longest = chain;
      }
    }
    const chain = [path, ...longest];
    known.set(path, chain);
    return chain;
  };
  const deepest = new Map<string, readonly string[]>();
  for (const [path, room] of roomOf) {
    if (room === undefined) continue;
    const chain = chainOf(path);
    if (chain.length > (deepest.get(room)?.length ?? 0)) deepest.set(room, chain);
  }
  return Object.keys(plan.rooms).flatMap((where): Violation[] => {
    const chain = deepest.get(where) ?? [];
    if (chain.length <= MAX_ROOM_LEVELS) return [];
    const what = `has ${chain.length} levels: ${chain.join(" -> ")}`;
    return [{ rule: "depth", where, what }];
  });
}

/** Rooms with more files than one walks through. */
function tooLarge(files: readonly SourceFile[], plan: Plan): Violation[] {
  const rooms = files
    .filter(({ path }) => path.startsWith("src/") && !isTestFile(path))
    .map(({ path }) => roomAt(path.slice("src/".length), plan));
  return Object.keys(plan.rooms).flatMap((where): Violation[] => {
    const count = rooms.filter((room) => room === where).length;
    if (count <= MAX_ROOM_FILES) return [];
    return [{ rule: "room size", where, what: `has ${count} files, more than ${MAX_ROOM_FILES}` }];
  });
}

function staleExceptions(files: readonly SourceFile[], plan: Plan): Violation[] {
  const long = new Set(files.filter((file) => file.lineCount > MAX_FILE_LINES).map((file) => file.path));
  return Object.keys(plan.longFiles)
    .filter((path) => !long.has(path))
    .map((path) => ({
      rule: "length",
      where: path,
      what: "is listed as long and is not; take it off the list",
    }));
}

/** Cycles of static imports, types included; `import()` may close one, since it runs later. */
function circles(files: readonly SourceFile[]): Violation[] {
  const targets = new Map(
    files.map((file) => [
      file.path,
      file.imports
        .filter((site) => site.kind !== "dynamic")
        .flatMap((site) => resolve(file.path, site.specifier)),
    ]),
  );
  const violations: Violation[] = [];
  const done = new Set<string>();
  const walk = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at !== -1) {
      violations.push({ rule: "circle", where: path, what: [...trail.slice(at), path].join(" -> ") });
      return;
    }
    if (done.has(path)) return;
    for (const target of targets.get(path) ?? []) walk(target, [...trail, path]);
    done.add(path);
  };
  for (const file of files) walk(file.path, []);
  return violations;
}

/** The file that a specifier names, if it is one of ours. */
function resolve(from: string, specifier: string): string[] {
  if (specifier.startsWith("#")) {
    const [name = "", ...rest] = specifier.slice(1).split("/");
    return [posix.join(OUTER_NAMES[name] ?? `src/${name}`, ...rest)];
  }
  if (specifier.startsWith(".")) return [posix.join(posix.dirname(from), specifier)];
  return [];
}
