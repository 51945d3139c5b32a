// Tests the repository against its room plan, and each rule against a planted fault.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import * as limits from "#base/limits.ts";
import { checkHouse, type Plan, type Rule, sourcePaths, type Violation } from "./room-rules.ts";
import { LONG_FILES, PAGE_FLOORS, ROOMS, SPECIFICATION_SHA256 } from "./rooms.ts";
import { SPEC_LIMITS, specificationLimits } from "./spec-limits.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

const RULES: Readonly<Record<Rule, string>> = {
  barrel: "no file only hands on what others export",
  builtin: "a room touches disk, network and databases only where its plan says so",
  circle: "no imports run in a circle, those of types included",
  depth: "in no room more files import one another in a row than twelve",
  "file name": "files are in kebab-case and named for what they hold",
  "first sentence": "every file begins with a sentence that says what it is for",
  length: "no file has over 400 lines without a reason",
  "page import": "parts know no page, what is live knows no part, and words know nobody",
  "room size": "no room has more files than one walks through",
  package: "a room imports only the npm packages of its plan",
  "parent path": "no import climbs with ../",
  "room import": "rooms import only the rooms below that their plan names",
  syntax: "every file parses",
  "unknown room": "every folder of src is a room of the plan",
  "unused grant": "the plan grants nothing that nobody uses",
};

const here = checkHouse(ROOT, {
  rooms: ROOMS,
  longFiles: LONG_FILES,
  pageFloors: PAGE_FLOORS,
});

for (const [rule, title] of Object.entries(RULES)) {
  test(`the house: ${title}`, async () => {
    const broken = (await here).filter((violation) => violation.rule === rule);
    assert.deepEqual(
      broken.map(({ where, what }) => `${where} ${what}`),
      [],
    );
  });
}

test("the rules read the whole house", async () => {
  const paths = await sourcePaths(ROOT);
  for (const path of ["src/base/errors.ts", "src/bin/grove.ts", "tools/rooms.test.ts", "web/app.tsx"])
    assert.ok(paths.includes(path));
});

test("the plan runs downwards, and package.json names the same rooms, a wing once", async () => {
  for (const [name, room] of Object.entries(ROOMS)) {
    for (const target of room.imports) {
      const floor = ROOMS[target]?.floor ?? Number.POSITIVE_INFINITY;
      assert.ok(floor < room.floor, `${name} (floor ${room.floor}) may not name ${target} (floor ${floor})`);
    }
  }
  const manifest = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as {
    imports: Record<string, string>;
  };
  const mapped = Object.entries(manifest.imports).flatMap(([key, path]) => {
    const name = /^\.\/src\/(.*)\/\*$/.exec(path)?.[1];
    if (name !== undefined) assert.equal(key, `#${name}/*`);
    return name ?? [];
  });
  // Only the program's entry imports it.
  assert.deepEqual(
    mapped.toSorted(),
    [
      ...new Set(
        Object.keys(ROOMS)
          .map((name) => name.split("/", 1)[0] ?? "")
          .filter((name) => name !== "bin"),
      ),
    ].toSorted(),
  );
});

test("docs/specification.md is the specification, letter for letter", async () => {
  const specification = await readFile(join(ROOT, "docs/specification.md"));
  assert.equal(createHash("sha256").update(specification).digest("hex"), SPECIFICATION_SHA256);
});

test("every limit of the specification's section 8 is in limits.ts with its value", async () => {
  const specification = await readFile(join(ROOT, "docs/specification.md"), "utf8");
  assert.deepEqual(specificationLimits(specification), Object.keys(SPEC_LIMITS));
  for (const [row, constants] of Object.entries(SPEC_LIMITS)) {
    for (const [name, value] of Object.entries(constants)) {
      assert.deepEqual((limits as Record<string, unknown>)[name], value, `${row}: ${name}`);
    }
  }
});

test("a limit added to section 8 is noticed", () => {
  const table =
    "## 8. Limits\n\n| Limit | Value |\n|---|---|\n| Sessions per user | 5 |\n| New | 7 |\n\n## 9. X\n";
  assert.deepEqual(specificationLimits(table), ["Sessions per user", "New"]);
  assert.equal("New" in SPEC_LIMITS, false);
});

const SAID = "// Says what it is for.\n";

/** A plan of a house of two floors, with more grants than each of the houses below uses. */
const HOUSE: Plan = (() => {
  const room = { holds: "", imports: [], packages: [], builtins: [] };
  return {
    rooms: {
      base: { ...room, floor: 0 },
      left: { ...room, floor: 1, imports: ["base"], packages: ["pg"], builtins: ["node:fs"] },
      right: { ...room, floor: 1, imports: ["base", "left"] },
      "right/wing": { ...room, floor: 1, imports: ["base"] },
      testing: { ...room, floor: 1 },
      top: { ...room, floor: 2, imports: ["left"] },
    },
    longFiles: {},
    pageFloors: { words: 0, live: 1, parts: 2, pages: 3 },
  };
})();

/** Builds a house with the files and checks it; unused grants are reported on request only. */
async function judge(
  files: Readonly<Record<string, string>>,
  plan: Partial<Plan> = {},
  options: { readonly withGrants?: boolean } = {},
): Promise<Violation[]> {
  const root = await mkdtemp(join(tmpdir(), "grove-rooms-"));
  try {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    const found = await checkHouse(root, { ...HOUSE, ...plan });
    return found.filter(({ rule }) => rule !== "unused grant" || options.withGrants === true);
  } finally {
    await rm(root, { recursive: true });
  }
}

test("a house in order passes, with types, packages, tests, generated code and dynamic imports", async () => {
  const violations = await judge({
    "src/base/words.ts": `${SAID}export const a = 1;\n`,
    "src/left/a.ts": `#!/usr/bin/env node\n${SAID}import fs from "node:fs";\nimport { Pool } from "pg";\nimport type { a } from "#base/words.ts";\nimport "./b.ts";\n`,
    "src/left/b.ts": `${SAID}export const late = () => import("./a.ts");\nexport { a } from "#base/words.ts";\n`,
    "src/left/a.test.ts": `${SAID}import net from "node:net";\nimport x from "foreign";\nimport "#testing/t.ts";\n`,
    "src/testing/t.ts": `${SAID}export {};\n`,
    "src/top/t.ts": `// Two lines say what it is for,\n// which is allowed.\nimport "#left/a.ts";\n`,
    "src/wire/framing/gen/x_pb.ts": `export * from "../anything";\n`,
    "src/right/wing/a.ts": `${SAID}import "#base/words.ts";\n`,
    "web/pages/a.tsx": `${SAID}import "../parts/b.tsx";\nimport "../words/c.ts";\n`,
    "web/parts/b.tsx": `${SAID}import type { c } from "../words/c.ts";\n`,
    "web/words/c.ts": `${SAID}export const c = 1;\n`,
  });
  assert.deepEqual(violations, []);
});

/** Files of one room in a chain of imports. */
function rowOf(count: number): Record<string, string> {
  const next = (index: number): string =>
    index === count ? "" : `import type { A${index + 1} } from "./a${index + 1}.ts";\n`;
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`src/base/a${index + 1}.ts`, SAID + next(index + 1)]),
  );
}

const FAULTS: readonly (readonly [title: string, Rule, files: Record<string, string>])[] = [
  ["an import from above", "room import", { "src/left/a.ts": `${SAID}import "#top/t.ts";\n` }],
  ["an import from the side", "room import", { "src/right/a.ts": `${SAID}import "#left/a.ts";\n` }],
  [
    "an import of a lower room that the plan does not name",
    "room import",
    { "src/top/a.ts": `${SAID}import "#base/a.ts";\n` },
  ],
  [
    "a forbidden type import",
    "room import",
    { "src/base/a.ts": `${SAID}import type { A } from "#left/a.ts";\n` },
  ],
  [
    "a forbidden import type",
    "room import",
    { "src/base/a.ts": `${SAID}export type A = import("#left/a.ts").A;\n` },
  ],
  [
    "a forbidden re-export",
    "room import",
    { "src/base/a.ts": `${SAID}export { a } from "#left/a.ts";\nexport const b = 1;\n` },
  ],
  [
    "a forbidden import() in a function",
    "room import",
    { "src/base/a.ts": `${SAID}export const f = () => import("#left/a.ts");\n` },
  ],
  [
    "an import() of a computed path",
    "package",
    { "src/base/a.ts": `${SAID}export const f = (p: string) => import(p);\n` },
  ],
  [
    "a test that imports from above",
    "room import",
    { "src/base/a.test.ts": `${SAID}import "#left/a.ts";\n` },
  ],
  [
    "the product importing what is for tests",
    "room import",
    { "src/top/a.ts": `${SAID}import "#testing/t.ts";\n` },
  ],
  [
    "a room importing itself by its outer name",
    "room import",
    { "src/left/a.ts": `${SAID}import "#left/b.ts";\n` },
  ],
  ["an npm package of another room", "package", { "src/base/a.ts": `${SAID}import { Pool } from "pg";\n` }],
  [
    "a path inside a forbidden package",
    "package",
    { "src/base/a.ts": `${SAID}import x from "@scope/name/deep.js";\n` },
  ],
  [
    "a module of Node that is another room's",
    "builtin",
    { "src/base/a.ts": `${SAID}import fs from "node:fs";\n` },
  ],
  ["a module of Node without its prefix", "builtin", { "src/left/a.ts": `${SAID}import fs from "fs";\n` }],
  ["a climb with ../", "parent path", { "src/left/a.ts": `${SAID}import "../base/a.ts";\n` }],
  ["a climb in a tool", "parent path", { "tools/a.ts": `${SAID}import "../src/base/a.ts";\n` }],
  [
    "a circle of three",
    "circle",
    {
      "src/base/a.ts": `${SAID}import "./b.ts";\n`,
      "src/base/b.ts": `${SAID}import "./c.ts";\n`,
      "src/base/c.ts": `${SAID}import "./a.ts";\n`,
    },
  ],
  [
    "a circle closed by a type",
    "circle",
    {
      "src/base/a.ts": `${SAID}import "./b.ts";\n`,
      "src/base/b.ts": `${SAID}import type { A } from "./a.ts";\n`,
    },
  ],
  [
    "a circle of nothing but types",
    "circle",
    {
      "src/base/a.ts": `${SAID}import type { B } from "./b.ts";\nexport type A = B;\n`,
      "src/base/b.ts": `${SAID}export type B = import("./a.ts").A;\n`,
    },
  ],
  [
    "a circle of types that names them one by one",
    "circle",
    {
      "src/base/a.ts": `${SAID}import { type B } from "./b.ts";\nexport type A = B;\n`,
      "src/base/b.ts": `${SAID}export type { A as B } from "./a.ts";\nexport const b = 1;\n`,
    },
  ],
  [
    "a circle of types of the rigs, by their outer name",
    "circle",
    {
      "prove/a.ts": `${SAID}import type { B } from "#prove/b.ts";\nexport type A = B;\n`,
      "prove/b.ts": `${SAID}import type { A } from "#prove/a.ts";\nexport type B = A;\n`,
    },
  ],
  [
    "a circle of types of the pages",
    "circle",
    {
      "web/live/a.ts": `${SAID}import type { B } from "./b.ts";\nexport type A = B;\n`,
      "web/live/b.ts": `${SAID}import type { A } from "./a.ts";\nexport type B = A;\n`,
    },
  ],
  [
    "a part that knows a page",
    "page import",
    { "web/parts/a.tsx": `${SAID}import type { B } from "../pages/b.tsx";\n` },
  ],
  ["what is live knowing a part", "page import", { "web/live/a.ts": `${SAID}import "../parts/b.tsx";\n` }],
  ["words that know what is live", "page import", { "web/words/a.ts": `${SAID}import "../live/b.ts";\n` }],
  [
    "a part that knows what joins the pages",
    "page import",
    { "web/parts/a.ts": `${SAID}import "../app.tsx";\n` },
  ],
  ["a folder of pages that is not in the plan", "unknown room", { "web/attic/a.ts": SAID }],
  [
    "an import of a wing's room from the room around it",
    "room import",
    { "src/right/a.ts": `${SAID}import "#right/wing/a.ts";\n` },
  ],
  ["thirteen files in a row", "depth", rowOf(13)],
  ["a file without a comment", "first sentence", { "src/base/a.ts": "export const a = 1;\n" }],
  ["a comment that is no sentence", "first sentence", { "tests/a.test.ts": "// stuff\nexport {};\n" }],
  ["an empty file", "first sentence", { "bench/a.ts": "" }],
  [
    "a barrel",
    "barrel",
    { "src/base/a.ts": `${SAID}export * from "./b.ts";\nexport { b } from "./c.ts";\n` },
  ],
  ["a name that says nothing", "file name", { "src/base/utils.ts": SAID }],
  ["a name in camel case", "file name", { "src/base/chunkStore.ts": SAID }],
  ["401 lines", "length", { "src/base/a.ts": SAID + "export {};\n".repeat(400) }],
  ["a folder that is no room", "unknown room", { "src/attic/a.ts": SAID }],
  ["a file that does not parse", "syntax", { "src/base/a.ts": `${SAID}const = 1;\n` }],
];

for (const [title, rule, files] of FAULTS) {
  test(`the plan notices ${title}`, async () => {
    assert.deepEqual(
      (await judge(files)).map((violation) => violation.rule),
      [rule],
    );
  });
}

test("400 lines pass, 401 pass with a reason, and a reason that is no longer needed fails", async () => {
  const longFiles = { "src/base/a.ts": "one table" };
  assert.deepEqual(await judge({ "src/base/a.ts": SAID + "export {};\n".repeat(399) }), []);
  assert.deepEqual(await judge({ "src/base/a.ts": SAID + "export {};\n".repeat(400) }, { longFiles }), []);
  const stale = await judge({ "src/base/a.ts": SAID }, { longFiles });
  assert.deepEqual(
    stale.map((violation) => violation.rule),
    ["length"],
  );
});

test("twelve files in a row pass, thirteen do not", async () => {
  assert.deepEqual(await judge(rowOf(12)), []);
  assert.deepEqual(
    (await judge(rowOf(13))).map((violation) => violation.rule),
    ["depth"],
  );
});

test("a room of 45 files passes, one of 46 does not; tests do not count", async () => {
  const roomOf = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`src/base/f${at}.ts`, SAID]));
  assert.deepEqual(await judge({ ...roomOf(45), "src/base/f0.test.ts": SAID }), []);
  assert.deepEqual(
    (await judge(roomOf(46))).map((violation) => violation.rule),
    ["room size"],
  );
});

test("grants that no product file uses fail: rooms, packages, parts of Node", async () => {
  const rooms = {
    base: { floor: 0, holds: "", imports: [], packages: [], builtins: [] },
    left: {
      floor: 1,
      holds: "",
      imports: ["base"],
      packages: ["pg", "@a/b"],
      builtins: ["node:fs", "node:net"],
    },
  };
  const files = {
    "src/left/a.ts": `${SAID}import type { A } from "#base/a.ts";\nimport "@a/b/c.js";\nawait import("node:net");\n`,
    "src/left/a.test.ts": `${SAID}import "node:fs";\nimport "pg";\n`,
  };
  assert.deepEqual(
    (await judge(files, { rooms }, { withGrants: true })).map(({ rule, where, what }) => [rule, where, what]),
    [
      ["unused grant", "left", "may import pg and does not"],
      ["unused grant", "left", "may import node:fs and does not"],
    ],
  );
  const unused = await judge({ "src/left/a.ts": SAID }, { rooms }, { withGrants: true });
  assert.equal(unused.length, 5);
  assert.equal(unused[0]?.what, "may import #base and does not");
});
