// Tests the documents' sentences and line lengths, and the reading time of ARCHITECTURE.md.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { sentencesOf } from "./sentences.ts";

const MAX_WORDS = 30;
const MAX_COLUMNS = 110;
const ARCHITECTURE_MAX_WORDS = 1_800;

/** Without the specification, a copy; asvs.md, a table in its standard's order; CHANGELOG.md, history. */
const DOCUMENTS: readonly string[] = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "docs/benchmarks.md",
  "docs/budgets.md",
  "docs/decisions.md",
  "docs/design.md",
  "docs/engine.md",
  "docs/install.md",
  "docs/operating.md",
  "docs/proof.md",
  "docs/reference.md",
];

/** Words that hide the subject of a sentence. */
const RIDDLES = /\b(?:whoever|nobody|somebody|(?:is|are|was|were|be) told)\b/iu;

const textOf = (path: string): Promise<string> => readFile(new URL(`../${path}`, import.meta.url), "utf8");
const tooLong = (markdown: string): string[] =>
  sentencesOf(markdown)
    .filter(({ words }) => words > MAX_WORDS)
    .map(({ line, words, text }) => `${line}: ${words} words: ${text}`);

for (const path of DOCUMENTS) {
  test(`${path} has no sentence of more than ${MAX_WORDS} words`, async () => {
    assert.deepEqual(tooLong(await textOf(path)), []);
  });

  test(`${path} names who acts, and has no "whoever", "nobody" or "is told"`, async () => {
    const riddles = sentencesOf(await textOf(path)).filter(({ text }) => RIDDLES.test(text));
    assert.deepEqual(
      riddles.map(({ line, text }) => `${line}: ${text}`),
      [],
    );
  });

  test(`${path} has no line of more than ${MAX_COLUMNS} columns beside tables and code`, async () => {
    const prose = (await textOf(path)).replaceAll(/^ *```.*?^ *```$/gms, (code) =>
      code.replaceAll(/[^\n]/g, ""),
    );
    const wide = prose.split("\n").flatMap((line, index) => {
      const isFree = /^\s*\||^\s*\S+$|^!?\[/.test(line);
      return line.length > MAX_COLUMNS && !isFree ? [`${index + 1}: ${line}`] : [];
    });
    assert.deepEqual(wide, []);
  });
}

test(`ARCHITECTURE.md has at most ${ARCHITECTURE_MAX_WORDS} words`, async () => {
  const words = (await textOf("ARCHITECTURE.md")).split(/\s+/).length;
  assert.ok(words <= ARCHITECTURE_MAX_WORDS, `${words} words`);
});

const words = (count: number): string => Array.from({ length: count }, () => "word").join(" ");

test("30 words pass and 31 do not, in paragraphs over several lines, items and cells of tables", () => {
  const says = (count: number): string[] => [
    `${words(count)}.`,
    `Short. ${words(count).replace(" ", "\n")}. Short.`,
    `- ${words(count)}`,
    `1. Short.\n2. ${words(count).replace(" ", "\n   ")}`,
    `| A | B |\n|---|---|\n| short | ${words(count)} |`,
  ];
  for (const markdown of says(MAX_WORDS)) assert.deepEqual(tooLong(markdown), [], markdown);
  for (const markdown of says(MAX_WORDS + 1)) assert.equal(tooLong(markdown).length, 1, markdown);
});

test("a semicolon and a colon end no sentence; a full stop in a number or in code does not either", () => {
  assert.equal(tooLong(`${words(20)}; ${words(20)}.`).length, 1);
  assert.equal(tooLong(`${words(20)}: ${words(20)}.`).length, 1);
  assert.equal(tooLong(`${words(20)} 0.1.0 \`a. b. c\` ${words(10)}.`).length, 1);
});

test("code, headings and the targets of links are not read, and a span of code is one word", () => {
  assert.deepEqual(tooLong(`# ${words(40)}\n\n\`\`\`sh\n${words(40)}\n\`\`\`\n`), []);
  assert.deepEqual(sentencesOf("See [two words](docs/a.md#b) and `three words here`.")[0]?.words, 5);
});
