// Tests that the documents' links lead to existing files and headings.
import assert from "node:assert/strict";
import { access, glob, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** GitHub's anchors for the headings of a document. */
function anchorsOf(markdown: string): Set<string> {
  const prose = markdown.replaceAll(/^ *```.*?^ *```$/gms, "");
  const slugs = [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\- ]/gu, "")
      .replaceAll(" ", "-"),
  );
  return new Set(slugs);
}

/** Broken links of a document. */
async function brokenLinks(path: string, markdown: string): Promise<string[]> {
  const prose = markdown.replaceAll(/^ *```.*?^ *```$/gms, "").replaceAll(/`[^`\n]*`/g, "");
  const broken: string[] = [];
  for (const [, target = ""] of prose.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
    const [file = "", anchor] = target.split("#");
    const linked = file === "" ? path : join(dirname(path), file);
    const isThere = await access(join(ROOT, linked)).then(
      () => true,
      () => false,
    );
    if (!isThere) broken.push(`${path}: ${target}`);
    else if (anchor !== undefined) {
      const text = file === "" ? markdown : await readFile(join(ROOT, linked), "utf8");
      if (!anchorsOf(text).has(anchor)) broken.push(`${path}: ${target}`);
    }
  }
  return broken;
}

test("every link of the documents leads to a file and a heading that are there", async () => {
  const broken: string[] = [];
  for await (const path of glob(["*.md", "docs/*.md"], { cwd: ROOT }))
    broken.push(...(await brokenLinks(path, await readFile(join(ROOT, path), "utf8"))));
  assert.deepEqual(broken, []);
});

test("a link to a missing file and one to a missing heading are found", async () => {
  const markdown = "# One\n\n[a](docs/none.md) [b](#two) [c](#one) [d](docs/decisions.md#the-cluster)\n";
  assert.deepEqual(await brokenLinks("README.md", markdown), ["README.md: docs/none.md", "README.md: #two"]);
});

test("each of the three guides lists all its sections under Contents", async () => {
  for (const path of ["docs/install.md", "docs/operating.md", "docs/reference.md"]) {
    const markdown = (await readFile(join(ROOT, path), "utf8")).replaceAll(/^ *```.*?^ *```$/gms, "");
    const headings = [...markdown.matchAll(/^##+ (.*)$/gm)].map(([, heading]) => heading);
    const listed = [...markdown.matchAll(/^ *- \[(.*)\]\(#[^)]*\)$/gm)].map(([, heading]) => heading);
    assert.deepEqual(listed, headings.slice(1), path);
  }
});

/** Paths of sources in code spans, without patterns. */
const CITED_PATH = /(?<![\w/.])(?:src|tools|tests|bench|prove|web|packaging|proto|docs)\/[\w./-]*\w/g;

test("every file and folder that a document names in code is there", async () => {
  const missing: string[] = [];
  for await (const path of glob(["*.md", "docs/*.md"], { cwd: ROOT })) {
    if (path === "CHANGELOG.md" || path === "docs/specification.md") continue;
    const markdown = (await readFile(join(ROOT, path), "utf8")).replaceAll(/^ *```.*?^ *```$/gms, "");
    for (const [span] of markdown.matchAll(/`[^`\n]+`/g)) {
      if (/[*{<]|[A-Z]{3}|…/.test(span)) continue;
      for (const [cited] of span.matchAll(CITED_PATH)) {
        const isThere = await access(join(ROOT, cited)).then(
          () => true,
          () => false,
        );
        if (!isThere) missing.push(`${path}: ${cited}`);
      }
    }
  }
  assert.deepEqual([...new Set(missing)], []);
});
