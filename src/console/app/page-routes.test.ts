// Tests the pages as browsers get them, and addresses that are no pages (W-12, W-14).
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { pageRoutes } from "#console/routes/page-routes.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { startApp } from "./app.fixture.ts";

test("files of the build are served as they are, every page's address gets the first page, and all else stays a problem", async (t) => {
  const folder = `${scratchFolder("pages-")}/`;
  await mkdir(join(folder, "assets"));
  await writeFile(join(folder, "index.html"), "<!doctype html>first");
  await writeFile(join(folder, "assets", "main-Ab3_x-9Z.js"), "plain");
  await writeFile(join(folder, "assets", "main-Ab3_x-9Z.js.br"), "squeezed");
  const { ask, close } = await startApp((app) => pageRoutes(app, folder));
  t.after(close);
  const html = { headers: { accept: "text/html,*/*" } };

  const first = await ask("/", html);
  assert.deepEqual(
    [first.status, first.text, first.headers["cache-control"]],
    [200, "<!doctype html>first", "no-cache"],
  );
  assert.match(String(first.headers["content-security-policy"]), /^default-src 'self';object-src 'none'/);
  assert.equal((await ask("/nodes/n1?x=1", html)).text, "<!doctype html>first");
  // Each page that the browser knows is one that can be linked to and loaded again.
  const pages = await readFile(new URL("../../../web/app.tsx", import.meta.url), "utf8");
  const paths = [...pages.matchAll(/<Route path="([^"]+)"/g)].map(([, path = ""]) => path);
  assert.ok(paths.length > 10);
  for (const path of paths) {
    const page = await ask(path.replaceAll(":id", "n1"), html);
    assert.deepEqual([page.status, page.text], [200, "<!doctype html>first"], path);
  }
  const script = await ask("/assets/main-Ab3_x-9Z.js");
  assert.deepEqual([script.text, script.headers["cache-control"]], ["plain", "max-age=31536000, immutable"]);
  assert.match(String(script.headers["content-type"]), /javascript/);
  assert.equal(
    (await ask("/assets/main-Ab3_x-9Z.js", { headers: { "accept-encoding": "br" } })).text,
    "squeezed",
  );
  const beyond = { headers: { range: "bytes=999-" } };
  assert.equal((await ask("/assets/main-Ab3_x-9Z.js", beyond)).status, 200);
  assert.equal((await ask("/", { headers: { "if-none-match": String(first.headers.etag) } })).status, 304);

  for (const path of [
    "/api/nothing",
    "/ws/nothing",
    "/assets/nothing.js",
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "/assets/..%5c..%5csecret.txt",
  ]) {
    const answer = await ask(path, html);
    assert.equal(answer.text.includes("outside"), false, path);
    if (!path.endsWith(".txt")) assert.equal(answer.problem?.code, "NO_SUCH_ROUTE", path);
  }
  assert.equal((await ask("/no/page", html)).problem?.code, "NO_SUCH_ROUTE");
  assert.equal((await ask("/", { method: "POST" })).problem?.code, "METHOD_NOT_ALLOWED");
});

test("without built pages the first page says where the interface is", async (t) => {
  const { ask, close } = await startApp((app) => pageRoutes(app, undefined));
  t.after(close);
  const answer = await ask("/");
  assert.equal(answer.status, 200);
  assert.match(answer.text, /api\/openapi\.json/);
});
