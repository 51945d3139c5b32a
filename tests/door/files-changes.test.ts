// Changes in the page for files that meet others: readings under way, what went meanwhile, the next person.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { until } from "#testing/until.ts";
import { type Answer, answeringDoor, entry, refused } from "./answering-door.ts";
import { LONG, startBrowser } from "./files-browser.ts";

let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM !== undefined) browser = await startBrowser();
});
after(() => browser?.close());

async function openAt(
  t: TestContext,
  address: string,
  answers: Readonly<Record<string, Answer>>,
): Promise<Page> {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto((await answeringDoor(t, answers)) + address);
  return page;
}

const named = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

test(
  "a folder that is being read is read to its end while it changes, and once more after that",
  LONG,
  async (t) => {
    let begun = 0;
    const seconds: (() => void)[] = [];
    const page = await openAt(t, "/", {
      "/api/list": async ({ query }) => {
        if (query.get("page") !== "more") {
          begun++;
          return { entries: [entry("a")], next: "more" };
        }
        await new Promise<void>((resolve) => seconds.push(resolve));
        return { entries: [entry(`of reading ${begun}`)], next: "" };
      },
      "/api/folder": () => entry("new", "folder"),
    });
    await until(() => seconds.length === 1, "the second page's call");
    await named(page, "New folder").click();
    await page.getByLabel("Name", { exact: true }).fill("new");
    await named(page, "Make").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    seconds[0]?.();
    await named(page, "of reading 1").waitFor();
    await until(() => seconds.length === 2, "the reading after the change");
    seconds[1]?.();
    await named(page, "of reading 2").waitFor();
    assert.equal(begun, 2);
  },
);

test("what cannot come back keeps nothing else in the trash, and is told", LONG, async (t) => {
  const restored: unknown[] = [];
  let ids = 0;
  const page = await openAt(t, "/", {
    "/api/list": () => ({ entries: ["a", "b", "c"].map((name) => entry(name)), next: "" }),
    "/api/trash": () => ({ id: `t${++ids}` }),
    "/api/restore": ({ body }) => {
      if (body["id"] === "t1") return refused(404, "NO_SUCH_PATH", "there is no such item in the trash");
      restored.push(body["id"]);
      return entry("b");
    },
  });
  // A click on a box leaves the keys with the list.
  for (const name of ["a", "b", "c"]) await page.getByLabel(`Select ${name}`).click();
  await page.keyboard.press("Delete");
  await page.getByText("Moved 3 items to the trash.").waitFor();
  await named(page, "Undo").click();
  await page.getByText("there is no such item in the trash. 1 of 3 items could not be taken back.").waitFor();
  assert.deepEqual(restored, ["t2", "t3"]);
});

test("a move to where something is already moves nothing and says so", LONG, async (t) => {
  const page = await openAt(t, "/", { "/api/list": () => ({ entries: [entry("a")], next: "" }) });
  await page.getByLabel("Select a").check();
  await named(page, "Move").click();
  await named(page, "Move here").click();
  await page.getByText("a is in the top folder already.").waitFor();
  assert.equal(await named(page, "Undo").count(), 0);
});

test("a file that was found and is gone by then is said to be gone", LONG, async (t) => {
  const page = await openAt(t, "/?show=gone.txt", {
    "/api/list": () => ({ entries: [entry("a")], next: "" }),
  });
  await page.getByRole("dialog", { name: "gone.txt" }).getByText("not in the folder any more").waitFor();
});

test(
  "the next person at a browser reads no names of uploads, however the session before ended",
  LONG,
  async (t) => {
    let username = "ann@x.de";
    const page = await openAt(t, "/", {
      "/api/me": () => ({ username, webdav_url: "", recent_until_ms: 0 }),
      "/sign-out": () => new Response(null, { status: 204 }),
    });
    await page.getByText(username).waitFor();
    const key = "grove-upload  /secret.bin 30000000 1";
    const kept = (): Promise<string | null> => page.evaluate((name) => localStorage.getItem(name), key);
    await page.evaluate((name) => localStorage.setItem(name, "/api/uploads/x"), key);
    await page.reload();
    await page.getByText("secret.bin did not arrive whole").waitFor();
    assert.equal(await kept(), "/api/uploads/x");
    username = "bob@x.de";
    await page.reload();
    await page.getByText(username).waitFor();
    assert.equal(await kept(), null);
  },
);

test("a sign-out ends what other pages of the browser show, too", LONG, async (t) => {
  const first = await openAt(t, "/", { "/api/list": () => ({ entries: [entry("plan.txt")], next: "" }) });
  const other = await first.context().newPage();
  await other.goto(first.url());
  for (const page of [first, other]) await named(page, "plan.txt").waitFor();
  await first.context().route("**/sign-out", (route) => route.fulfill({ status: 204 }));
  await first
    .context()
    .route("**/api/me", (route) =>
      route.fulfill({ status: 401, json: { error: "SIGN_IN", message: "sign in" } }),
    );
  await named(first, "Sign out").click();
  for (const page of [first, other]) {
    await page.getByText("Sign in to see, upload and share your files.").waitFor();
    assert.equal(await named(page, "plan.txt").count(), 0);
  }
});

test("a folder that cannot be downloaded says why, and others beside it are saved", LONG, async (t) => {
  const page = await openAt(t, "/", {
    "/api/list": () => ({ entries: [entry("few", "folder"), entry("many", "folder")], next: "" }),
    "/api/zip": ({ query }) =>
      query.get("path") === "/many"
        ? refused(409, "REFUSED", "an archive has at most 50,000 files")
        : new Response("zip", { headers: { "content-disposition": "attachment" } }),
  });
  for (const name of ["few", "many"]) await page.getByLabel(`Select ${name}`).check();
  const saved = page.waitForEvent("download");
  await named(page, "Download").click();
  assert.equal((await saved).suggestedFilename(), "few.zip");
  await page.getByText("many was not downloaded: an archive has at most 50,000 files").waitFor();
});
