// Sessions in the page for files: one browser ends another's, whose next request and running download end.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { DoorSite } from "./door-site.ts";
import { headersOf, LONG, looksWell, signedIn as signedInAt } from "./files-browser.ts";
import { oneBrowser, oneDoor } from "./one-door.ts";

/** More than sockets and servers keep of a download that nobody reads. */
const LARGE_BYTES = 64_000_000;
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const PHONE =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1";

const WHO = "sessions@example.com";

let site: DoorSite;
let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM === undefined) return;
  [site, browser] = [await oneDoor(WHO), await oneBrowser()];
  await site.signIn();
});

const signedIn = (t: TestContext, more?: BrowserContextOptions): Promise<Page> =>
  signedInAt(t, browser, site.door, WHO, more);

/** Begins a download in the name of a page's person; the rest is read later, by somebody slow with a pause. */
async function beginDownload(
  headers: { readonly cookie: string },
  path: string,
): Promise<{ readonly readRest: (pauseMs: number) => Promise<string> }> {
  const request = get(`${site.door}/api/content?path=${encodeURIComponent(path)}`, { headers });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  return {
    async readRest(pauseMs) {
      let bytes = 0;
      try {
        for await (const part of response as AsyncIterable<Buffer>) {
          bytes += part.length;
          if (pauseMs > 0) await sleep(pauseMs);
        }
      } catch {
        return "cut";
      }
      return bytes === LARGE_BYTES ? "whole" : `${bytes} bytes`;
    },
  };
}

/** What the door answers to a look at the person's files. */
async function look(headers: { readonly cookie: string }): Promise<readonly [number, string]> {
  const answer = await fetch(`${site.door}/api/list?path=/`, { headers });
  return [answer.status, await answer.text()];
}

interface Listed {
  readonly browser_sessions: readonly {
    readonly id: string;
    readonly browser: string | null;
    readonly address: string | null;
  }[];
}

async function listed(): Promise<Listed["browser_sessions"]> {
  const { code, stdout, stderr } = await site.grove("browser", "list", "--json");
  assert.equal(code, 0, stderr);
  return (JSON.parse(stdout) as Listed).browser_sessions;
}

test(
  "a browser's session is ended from another: its next request is refused in words, its download stops",
  LONG,
  async (t) => {
    const path = join(scratchFolder("sessions-"), "large.bin");
    writeFileSync(path, randomBytes(LARGE_BYTES));
    const sent = await site.grove("put", path, "/large.bin");
    assert.equal(sent.code, 0, sent.stderr);
    const page = await signedIn(t);
    const lost = await signedIn(t, { userAgent: FIREFOX });
    const headers = await headersOf(lost);
    const whole = await beginDownload(headers, "/large.bin");
    assert.equal(await whole.readRest(0), "whole");
    const download = await beginDownload(headers, "/large.bin");

    await page.getByRole("link", { name: "Programs" }).click();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    await page.getByText("● This browser").waitFor();
    await page.getByText("● This browser").scrollIntoViewIfNeeded();
    await looksWell(page, "sessions");
    const end = page.getByRole("button", { name: "End the session of Firefox 145 on Linux from 127.0.0.1" });
    assert.equal(await page.getByRole("button", { name: /^End the session of/u }).count(), 1);
    await end.click();
    const dialog = page.getByRole("dialog", { name: "End this session?" });
    await dialog.waitFor();
    await looksWell(page, "sessions-end");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.equal((await look(headers))[0], 200, "asking ends nothing");
    // With the keyboard alone: the dialog's first button is the one that closes it.
    await end.focus();
    await page.keyboard.press("Enter");
    await dialog.waitFor();
    for (const key of ["Tab", "Tab", "Enter"]) await page.keyboard.press(key);
    await page.getByText("Signed out: Firefox 145 on Linux.").waitFor();
    // At this door at once.
    const [status, text] = await look(headers);
    assert.equal(status, 401);
    assert.match(text, /your sign-in has ended: sign in again/u);
    await end.waitFor({ state: "detached" });
    // A slow reader would have it whole after a while.
    assert.equal(await download.readRest(50), "cut");
    await looksWell(page, "sessions-alone");
    await until(async () => (await look(await headersOf(page)))[0] === 200, "the other session goes on");

    await lost.getByRole("link", { name: "Trash" }).click();
    await lost.getByText("your sign-in has ended: sign in again").waitFor();
    await lost.reload();
    await lost.getByText("Sign in to see, upload and share your files.").waitFor();
  },
);

test("all others end at once, and what wants a fresh sign-in says so once", LONG, async (t) => {
  const page = await signedIn(t);
  const others = [await signedIn(t, { userAgent: FIREFOX }), await signedIn(t, { userAgent: PHONE })];
  const cookies = await Promise.all(others.map((other) => headersOf(other)));
  const own = await headersOf(page);
  const ask = async (body: object, more = {}): Promise<number> => {
    const headers = { ...own, "content-type": "application/json", ...more };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    return (await fetch(`${site.door}/api/sessions/end`, init)).status;
  };
  for (const body of [{}, { others: false }, { id: "" }, { id: "aaaaaaaaaaaa", others: true }])
    assert.equal(await ask(body), 400, JSON.stringify(body));
  assert.equal(await ask({ id: "aaaaaaaaaaaa" }), 400);
  assert.equal(await ask({ others: true }, { origin: "https://evil.example" }), 403);
  for (const headers of cookies) assert.equal((await look(headers))[0], 200);
  await page.getByRole("link", { name: "Programs" }).click();
  await page.getByText("Safari 26 on iPhone").waitFor();
  await page.getByRole("button", { name: "End all others" }).click();
  const dialog = page.getByRole("dialog", { name: "End all other sessions?" });
  await looksWell(page, "sessions-end-all");
  await dialog.getByRole("button", { name: "End all others" }).click();
  await page.getByText(/Signed out: \d+ other sessions\./u).waitFor();
  for (const headers of cookies) assert.equal((await look(headers))[0], 401);
  assert.equal((await look(await headersOf(page)))[0], 200);
  await page.getByRole("button", { name: "End all others" }).waitFor({ state: "detached" });

  for (const call of ["**/api/app-passwords", "**/api/sessions"])
    await page.route(call, (route) =>
      route.fulfill({ status: 403, json: { error: "SIGN_IN_AGAIN", message: "sign in again" } }),
    );
  await page.reload();
  await page.getByText("For your safety this wants a sign-in of the last ten minutes.").waitFor();
  await page.getByText("They are listed after a fresh sign-in, too.").waitFor();
  assert.equal(await page.getByRole("link", { name: "Sign in again" }).count(), 1);
  await looksWell(page, "sessions-old-sign-in");
});

test("a terminal lists browsers and signs them out; doors learn of it within seconds", LONG, async (t) => {
  const page = await signedIn(t, { userAgent: PHONE });
  const kept = await signedIn(t, { userAgent: FIREFOX });
  const [phone, firefox] = await Promise.all([headersOf(page), headersOf(kept)]);
  for (const headers of [phone, firefox]) assert.equal((await look(headers))[0], 200);
  const sessions = await listed();
  const its = sessions.find((session) => session.browser === "Safari 26 on iPhone");
  assert.ok(its !== undefined && its.address === "127.0.0.1", JSON.stringify(sessions));
  const shown = (await site.grove("browser", "list")).stdout;
  assert.ok(shown.includes(`${its.id}  Safari 26 on iPhone, from 127.0.0.1\n`), shown);
  for (const words of [["end"], ["end", its.id, "--all"]])
    assert.equal((await site.grove("browser", ...words)).code, 1, words.join(" "));
  assert.notEqual((await site.grove("browser", "end", "aaaaaaaaaaaa")).code, 0);
  assert.equal((await listed()).length, sessions.length);
  const ended = await site.grove("browser", "end", its.id);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stdout, /^Signed out Safari 26 on iPhone; /u);
  const isOver = async (headers: { readonly cookie: string }): Promise<boolean> =>
    (await fetch(`${site.door}/api/me`, { headers })).status === 401;
  await until(() => isOver(phone), "the end at the door");
  assert.equal((await look(firefox))[0], 200);
  const all = await site.grove("browser", "end", "--all", "--json");
  assert.equal(all.code, 0, all.stderr);
  await until(() => isOver(firefox), "the end of the other");
  assert.deepEqual(await listed(), []);
});
