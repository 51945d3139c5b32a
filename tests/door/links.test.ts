// Links through a real door: in browsers and by plain requests, to the limits, and without a trace of the token.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { axeFindings } from "#e2e/axe-findings.ts";
import { CHROMIUM_FLAGS, PAGE_CHROMIUM } from "#testing/chromium.ts";
import { textsOfFiles } from "#testing/texts-of-files.ts";
import { until } from "#testing/until.ts";
import { type DoorSite, openDoorSite } from "./door-site.ts";

const LARGE_BYTES = 64_000_000;

interface MadeLink {
  readonly url: string;
  readonly token: string;
  readonly id: string;
}

const ends: (() => Promise<void>)[] = [];
const tokens: string[] = [];
let site: DoorSite;
before(async () => {
  site = await openDoorSite({ after: (hook) => ends.push(hook) });
  await site.signIn();
  for (const path of ["pub", "pub/in", "box"]) {
    assert.equal((await site.dav(`${path}/`, { method: "MKCOL" })).status, 201);
  }
  await put("pub/a.txt", "0123456789");
  await put("pub/in/b.html", "<script>alert(1)</script>");
  await put("pub/large", Buffer.alloc(LARGE_BYTES, 7));
});
after(async () => {
  for (const end of ends.toReversed()) await end();
});

async function put(path: string, body: Uint8Array<ArrayBuffer> | string): Promise<void> {
  assert.ok((await site.dav(path, { method: "PUT", body })).ok, path);
}

async function link(...words: string[]): Promise<MadeLink> {
  const input = words.includes("--password") ? "correct horse\n" : "";
  const { code, stdout, stderr } = await site.groveWith(input, "link", "create", ...words, "--json");
  assert.equal(code, 0, stderr);
  const made = JSON.parse(stdout) as MadeLink;
  tokens.push(made.token);
  return made;
}

/** A browser's first look: the address loses its token, and the cookie holds for the link's own path. */
async function comeIn({ url, id }: MadeLink): Promise<{ at: string; cookie: string }> {
  const first = await fetch(url, { redirect: "manual" });
  assert.equal(first.status, 303);
  assert.equal(first.headers.get("location"), `/l/${id}/`);
  assert.equal(first.headers.get("referrer-policy"), "no-referrer");
  assert.equal(first.headers.get("cache-control"), "no-store");
  assert.match(first.headers.get("x-robots-tag") ?? "", /noindex/u);
  const set = first.headers.get("set-cookie") ?? "";
  assert.match(set, new RegExp(`; Path=/l/${id}/; Max-Age=86400; HttpOnly; SameSite=Lax$`, "u"));
  return { at: `${site.door}/l/${id}/`, cookie: set.split(";", 1)[0] ?? "" };
}

const look = (at: string, cookie: string, init: RequestInit = {}): Promise<Response> =>
  fetch(at, {
    redirect: "manual",
    ...init,
    headers: { ...(init.headers as Record<string, string> | undefined), cookie },
  });

test("a link shows a folder, and files come as attachments that nothing runs", async () => {
  const { at, cookie } = await comeIn(await link("pub"));
  const page = await look(at, cookie);
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-security-policy") ?? "", /^default-src 'none'/u);
  const text = await page.text();
  assert.match(text, /href="\/l\/[a-z2-7]{12}\/a\.txt" download>a\.txt</u);
  assert.doesNotMatch(text, /alice/u);
  const html = await look(`${at}in/b.html`, cookie);
  assert.match(html.headers.get("content-disposition") ?? "", /^attachment; filename="b\.html"/u);
  assert.match(html.headers.get("content-security-policy") ?? "", /^sandbox/u);
  assert.equal(await html.text(), "<script>alert(1)</script>");
  const part = await look(`${at}a.txt`, cookie, { headers: { range: "bytes=2-4" } });
  assert.deepEqual([part.status, await part.text()], [206, "234"]);
  assert.equal((await look(`${at}in`, cookie)).headers.get("location"), new URL(`${at}in/`).pathname);
  assert.equal((await look(`${at}none`, cookie)).status, 404);
  assert.equal((await look(`${at}..%2f..`, cookie)).status, 400);
  assert.equal((await look(at, "")).status, 404);
  assert.equal((await look(`${at}new`, cookie, { method: "PUT", body: "x" })).status, 403);
});

test("a password is asked for, guesses are limited, and an end is an end", async () => {
  const made = await link("pub/a.txt", "--password", "--until", "1d");
  const { at, cookie } = await comeIn(made);
  const form = (password: string, more: Record<string, string> = {}): Promise<Response> =>
    look(at, cookie, {
      method: "POST",
      body: new URLSearchParams({ password }),
      headers: { "sec-fetch-site": "same-origin", origin: "null", ...more },
    });
  assert.match(await (await look(at, cookie)).text(), /This link asks for a password/u);
  const unasked = await look(`${at}a.txt`, cookie);
  assert.deepEqual([unasked.status, unasked.headers.get("content-disposition")], [403, null]);
  assert.equal((await form("alice", { "sec-fetch-site": "cross-site" })).status, 403);
  assert.equal((await form("wrong")).status, 403);
  const right = await form("correct horse");
  assert.equal(right.status, 303);
  const known = right.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  assert.match(await (await look(at, known)).text(), /This link ends 20/u);
  assert.equal(await (await look(`${at}a.txt`, known)).text(), "0123456789");
  const statuses: number[] = [];
  for (let guess = 0; guess < 12; guess++) statuses.push((await form(`guess ${guess}`)).status);
  assert.equal(statuses.at(-1), 429);
  assert.equal((await form("correct horse")).status, 429);
  assert.equal(await (await look(`${at}a.txt`, known)).text(), "0123456789");
});

test("a limit of downloads is exact under 50 requests at once", async () => {
  const made = await link("pub/a.txt", "--downloads", "9");
  const visits = await Promise.all(Array.from({ length: 50 }, () => comeIn(made)));
  const statuses = await Promise.all(
    visits.map(async ({ at, cookie }) => {
      const answer = await look(`${at}a.txt`, cookie);
      await answer.arrayBuffer();
      return answer.status;
    }),
  );
  assert.deepEqual(
    [200, 410].map((code) => statuses.filter((status) => status === code).length),
    [9, 41],
  );
  const { stdout } = await site.grove("link", "list", "/pub", "--json");
  const { links } = JSON.parse(stdout) as { links: { id: string; downloads: number }[] };
  assert.equal(links.find(({ id }) => id === made.id)?.downloads, 9);
});

test("a link that is revoked while a download runs ends it", async () => {
  const made = await link("pub/large");
  const { at, cookie } = await comeIn(made);
  const answer = await look(`${at}large`, cookie);
  assert.equal(answer.headers.get("content-length"), String(LARGE_BYTES));
  const reader = answer.body?.getReader();
  assert.ok(reader);
  let bytes = (await reader.read()).value?.length ?? 0;
  assert.ok(bytes > 0);
  assert.equal((await site.grove("link", "revoke", made.id)).code, 0);
  await assert.rejects(async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
    }
  });
  assert.ok(bytes < LARGE_BYTES);
  assert.equal((await look(at, cookie)).status, 404);
});

test("what is dropped is kept beside what is there, and nobody sees it by the link", async () => {
  const made = await link("box", "--drop", "--until", "1d", "--files", "3", "--bytes", "1000");
  const { at, cookie } = await comeIn(made);
  const drop = (name: string, body: string): Promise<Response> =>
    look(`${at}${name}`, cookie, { method: "PUT", body, headers: { "sec-fetch-site": "same-origin" } });
  await put("box/mine.txt", "mine");
  assert.deepEqual([(await drop("mine.txt", "theirs")).status, (await drop("b", "x")).status], [201, 201]);
  assert.equal(await (await site.dav("box/mine.txt")).text(), "mine");
  const page = await (await look(at, cookie)).text();
  assert.doesNotMatch(page, /mine/u);
  assert.equal((await look(`${at}b`, cookie)).status, 404);
  assert.equal((await drop("big", "x".repeat(994))).status, 413);
  assert.equal((await drop("c", "x")).status, 201);
  assert.equal((await drop("d", "")).status, 410);
  const listed = await site.dav("box/", { method: "PROPFIND", headers: { depth: "1" } });
  assert.equal((await listed.text()).match(/<[^>]*href>/gu)?.length, 2 * 5);
});

test("in a browser: no token in the address, drops by keyboard, nothing for axe in light and dark, no sideways scroll", {
  skip: PAGE_CHROMIUM === undefined,
}, async () => {
  const browser = await chromium.launch({ executablePath: PAGE_CHROMIUM ?? "", args: CHROMIUM_FLAGS });
  try {
    const box = await link("box", "--drop", "--until", "1d");
    const scenes = [
      { made: await link("pub"), heading: "pub" },
      { made: await link("pub/a.txt"), heading: "a.txt" },
      { made: await link("pub/a.txt", "--password"), heading: "This link asks for a password" },
      { made: box, heading: "Send files to box" },
    ];
    const pictures = process.env["GROVE_TEST_PICTURES"];
    for (const { made, heading } of scenes) {
      const context = await browser.newContext({ viewport: { width: 360, height: 740 } });
      const page = await context.newPage();
      await page.goto(made.url);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      assert.equal(page.url(), `${site.door}/l/${made.id}/`);
      for (const scheme of ["light", "dark"] as const) {
        assert.deepEqual(await axeFindings(page, scheme), [], heading);
        const wide = await page.evaluate("document.documentElement.scrollWidth");
        assert.equal(wide, 360, heading);
        if (pictures !== undefined) {
          const name = `link-${heading.replace(/\W+/gu, "-")}-${scheme}.png`;
          await page.screenshot({ path: join(pictures, name) });
        }
      }
      await context.close();
    }
    const page = await browser.newPage();
    await page.goto(box.url);
    await page.getByLabel("Files", { exact: true }).setInputFiles([
      { name: "één.txt", mimeType: "text/plain", buffer: Buffer.from("1") },
      { name: "two.txt", mimeType: "text/plain", buffer: Buffer.from("22") },
    ]);
    await page.getByRole("button", { name: "Send" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText("2 sent").waitFor();
    assert.equal(await (await site.dav(encodeURI("box/één.txt"))).text(), "1");
    const name = `\u202egnp.${"x".repeat(200)}.exe`;
    await page
      .getByLabel("Files", { exact: true })
      .setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from("1") });
    await page.getByRole("button", { name: "Send" }).click();
    const line = page.getByRole("listitem").filter({ hasText: /exe: sent$/u });
    await line.waitFor();
    assert.match((await line.textContent()) ?? "", /^\ufffdgnp\.x+ … x+\.exe: /u);
  } finally {
    await browser.close();
  }
});

test("no token stands in any log, metric or file of the cluster", async () => {
  assert.ok(tokens.length > 0);
  const secrets = tokens.map((token) => token.slice(-32));
  const read = await textsOfFiles(site.folder);
  const logs = read.filter(({ path }) => path.endsWith(".log"));
  await until(() => logs.length > 0, "the logs");
  assert.ok(
    logs.some(({ text }) => text.includes("link.create")),
    "the audit log has the links",
  );
  for (const { path, text } of read) {
    for (const secret of secrets) assert.ok(!text.includes(secret), `a token stands in ${path}`);
  }
});
