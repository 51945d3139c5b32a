// Hands at the page for files: two clicks where one was meant, keys, slow and lost answers, two people.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { TrashEntry } from "#wire/webapi/files.ts";
import { type Answer, answeringDoor, entry, listOf, refused } from "./answering-door.ts";
import { choose, LONG, startBrowser } from "./files-browser.ts";

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
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto((await answeringDoor(t, answers)) + address);
  return page;
}

const named = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const focused = (page: Page) =>
  page.evaluate<string>("document.activeElement.getAttribute('aria-label') ?? ''");

/** An answer that waits for a word. */
function held(answer: Answer): { readonly answer: Answer; readonly release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { answer: (asked) => promise.then(() => answer(asked)), release: resolve };
}

test("a double click on a name opens one folder, wherever the second click falls", LONG, async (t) => {
  const page = await openAt(t, "/", {
    "/api/list": listOf({ "/": [entry("a", "folder")], "/a": [entry("b", "folder")], "/a/b": [] }),
  });
  const box = (await named(page, "a").boundingBox()) ?? assert.fail("no box");
  // On the name, and on the row where the next folder has its own row.
  for (const besides of [3, box.width + 100]) {
    await page.goto(new URL("/", page.url()).href);
    await named(page, "a").click({ position: { x: 3, y: 5 } });
    await named(page, "b").waitFor();
    await page.mouse.move(box.x + besides, box.y + 5);
    await page.mouse.down({ clickCount: 2 });
    await page.mouse.up({ clickCount: 2 });
    assert.equal(new URL(page.url()).searchParams.get("path"), "/a");
    assert.equal(await page.getByText("1 item selected").count(), 0);
  }
  await page.goto(new URL("/", page.url()).href);
  await named(page, "a").waitFor();
  await page.mouse.dblclick(box.x + box.width + 100, box.y + 5);
  await named(page, "b").waitFor();
});

test("two clicks make one link and one app password, whose only sight is not lost", LONG, async (t) => {
  let made = 0;
  const answer = held(({ body }) => ({
    url: `http://door.test/l/${++made}`,
    link: { id: "l", path: "/a" },
    password: `gap_${made}`,
    facts: { id: "p", name: body["name"] },
  }));
  const page = await openAt(t, "/", {
    "/api/list": listOf({ "/": [entry("a", "folder")] }),
    "/api/links": (asked) => (asked.method === "POST" ? answer.answer(asked) : { links: [] }),
    "/api/app-passwords": (asked) => (asked.method === "POST" ? answer.answer(asked) : { passwords: [] }),
    "/api/sessions": () => ({ sessions: [] }),
  });
  await page.getByLabel("Select a").check();
  await named(page, "Share").click();
  await named(page, "Make a link").click();
  await named(page, "Make the link").dblclick();
  answer.release();
  await page.getByLabel("Address of the new link, shown this once", { exact: true }).waitFor();
  assert.equal(made, 1);
  await page.goto(new URL("/?view=access", page.url()).href);
  await named(page, "Make an app password").click();
  await page.getByLabel("For which program or device").fill("Telephone");
  await named(page, "Make").dblclick();
  await page.getByLabel("App password of Telephone, shown this once", { exact: true }).waitFor();
  assert.equal(made, 2);
});

test("Delete pressed twice deletes once, and the way back stays", LONG, async (t) => {
  const there = [entry("a"), entry("b")];
  const page = await openAt(t, "/", {
    "/api/list": () => ({ entries: there, next: "" }),
    "/api/trash": ({ body }) => {
      const at = there.findIndex(({ name }) => body["path"] === `/${name}`);
      if (at === -1) return refused(404, "NO_SUCH_PATH", "There is no such path.");
      there.splice(at, 1);
      return { id: "t" };
    },
  });
  await named(page, "a").waitFor();
  await page.getByRole("grid").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Delete");
  await page.keyboard.press("Delete");
  await named(page, "a").waitFor({ state: "detached" });
  await page.getByText("Moved a to the trash.").waitFor();
  await named(page, "Undo").waitFor();
  await named(page, "b").waitFor();
});

test(
  "the keyboard goes on in the list after a folder, a dialog and a button that have gone",
  LONG,
  async (t) => {
    const page = await openAt(t, "/", {
      "/api/list": listOf({ "/": [entry("a", "folder"), entry("b.txt")], "/a": [entry("c")] }),
      "/api/trash": () => ({ id: "t" }),
    });
    await named(page, "a").waitFor();
    assert.equal(await focused(page), "");
    await page.getByRole("grid").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await named(page, "c").waitFor();
    assert.equal(await focused(page), "Files and folders");
    await page.keyboard.press("Backspace");
    await named(page, "b.txt").waitFor();
    const steps = await page.evaluate("history.length");
    await page.keyboard.press("Backspace");
    assert.equal(await page.evaluate("history.length"), steps);
    await page.keyboard.press("ArrowDown");
    for (const [key, button] of [
      ["F2", "Cancel"],
      ["m", "Close"],
    ] as const) {
      await page.keyboard.press(key);
      await named(page, button).press("Enter");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assert.equal(await focused(page), "Files and folders");
    }
    await named(page, "Delete").press("Enter");
    await page.getByText("Moved a to the trash.").waitFor();
    assert.equal(await focused(page), "Files and folders");
  },
);

test("what arrives before the file that the keyboard is at does not move it to another", LONG, async (t) => {
  const there = [entry("m.txt"), entry("z.txt")];
  const sent = held(() => ({ ...entry("a.txt"), at: there.unshift(entry("a.txt")) }));
  const page = await openAt(t, "/", {
    "/api/list": () => ({ entries: there, next: "" }),
    "/api/content": (asked) => (asked.method === "PUT" ? sent.answer(asked) : new Response("text")),
  });
  await named(page, "m.txt").waitFor();
  const path = join(scratchFolder("arrives-"), "a.txt");
  writeFileSync(path, "a");
  await choose(page, path, "files");
  await page.getByRole("grid").focus();
  await page.keyboard.press("ArrowDown");
  sent.release();
  await named(page, "a.txt").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("heading", { name: "m.txt" }).waitFor();
});

test("the space of one person is never shown as that of another", LONG, async (t) => {
  const page = await openAt(t, "/", {
    "/api/quota": ({ query }) =>
      query.get("root") === ""
        ? { quota_bytes: 100, used_bytes: 77, trash_bytes: 0, uploads_bytes: 0, inodes: 1, inode_limit: 0 }
        : refused(503, "UNAVAILABLE"),
    "/api/shared": () => ({ places: [{ owner: "bob@x.de", path: "/b" }] }),
    "/api/stat": () => entry("b", "folder"),
  });
  await page.getByText("77 bytes of 100 bytes used").waitFor();
  await page.getByRole("link", { name: "Shared with me" }).click();
  await named(page, "b").click();
  await page.getByText("Nothing is in this folder.").waitFor();
  assert.equal(await page.getByText("77 bytes").count(), 0);
  await page.goBack();
  await page.getByText("77 bytes of 100 bytes used").waitFor();
});

test(
  "a trash that is not told says so, and is read again; two clicks show its next page once",
  LONG,
  async (t) => {
    const item = (at: number): TrashEntry => ({
      id: `t${at}`,
      path: `/file-${at}.txt`,
      kind: "file",
      size: 1,
      trashed_ms: 1,
      ends_ms: 1,
      by: "ann@x.de",
    });
    let isAway = true;
    const second = held(() => ({ items: [item(2)], next: "" }));
    const page = await openAt(t, "/?view=trash", {
      "/api/trash": (asked) =>
        isAway
          ? refused(503, "UNAVAILABLE", "The server is away.")
          : asked.query.get("page") === "more"
            ? second.answer(asked)
            : { items: [item(1)], next: "more" },
    });
    await page.getByText("The server is away.").waitFor();
    assert.equal(await page.getByText("Reading the trash …").count(), 0);
    isAway = false;
    await named(page, "Try again").click();
    await named(page, "Show more").dblclick();
    second.release();
    await page.getByText("file-2.txt").waitFor();
    await named(page, "Show more").waitFor({ state: "detached" });
    assert.equal(await page.getByRole("listitem").count(), 2);
  },
);

test("the text of one file is not shown under the name of the next", LONG, async (t) => {
  const late = held(() => new Response("text of b"));
  const page = await openAt(t, "/", {
    "/api/list": listOf({ "/": [entry("a.txt"), entry("b.txt"), entry("c.txt")] }),
    "/api/content": (asked) => {
      const path = asked.query.get("path");
      if (path === "/c.txt") return refused(503, "UNAVAILABLE", "The server is away.");
      return path === "/b.txt" ? late.answer(asked) : new Response("text of a");
    },
  });
  await named(page, "a.txt").click();
  const text = page.getByLabel("Text of the file");
  await until(async () => (await text.inputValue()) === "text of a");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("heading", { name: "b.txt" }).waitFor();
  assert.equal(await text.inputValue(), "Reading …");
  late.release();
  await until(async () => (await text.inputValue()) === "text of b");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("alert").getByText("The server is away.").waitFor();
});

test("more files than a browser takes at once are all downloaded", LONG, async (t) => {
  const all = Array.from({ length: 14 }, (_, at) => entry(`f${at}.bin`));
  const page = await openAt(t, "/", {
    "/api/list": listOf({ "/": all }),
    "/api/content": () => new Response("x", { headers: { "content-disposition": "attachment" } }),
  });
  const saved = new Set<string>();
  page.on("download", (download) => void saved.add(download.suggestedFilename()));
  await named(page, "f0.bin").waitFor();
  await page.getByRole("grid").focus();
  await page.keyboard.press("Control+a");
  await named(page, "Download").click();
  await until(() => saved.size === all.length, "all downloads");
});

test("what is taken back is seen in the folder to which somebody has gone meanwhile", LONG, async (t) => {
  let isMoved = false;
  const page = await openAt(t, "/", {
    "/api/list": ({ query }) => ({
      entries: [
        ...(query.get("path") === "/" ? [entry("b", "folder")] : []),
        ...(isMoved === (query.get("path") === "/b") ? [entry("x.txt")] : []),
      ],
      next: "",
    }),
    "/api/move": ({ body }) => {
      isMoved = body["target"] === "/b/x.txt";
      return { ...entry("x.txt"), path: body["target"] };
    },
  });
  await page.getByLabel("Select x.txt").check();
  await named(page, "Move").click();
  await page.getByRole("dialog").getByRole("button", { name: "b", exact: true }).click();
  await named(page, "Move here").click();
  await page.getByText("Moved x.txt to b.").waitFor();
  await named(page, "b").click();
  await named(page, "x.txt").waitFor();
  await named(page, "Undo").click();
  await page.getByText("Nothing is in this folder.").waitFor();
});

test(
  "a file that is removed while it waits says so at once, and nothing else waits for it",
  LONG,
  async (t) => {
    const path = join(scratchFolder("removed-"), "gone.txt");
    writeFileSync(path, "here for a moment");
    const page = await openAt(t, "/", {
      "/api/content": () => {
        rmSync(path);
        return refused(503, "UNAVAILABLE");
      },
    });
    await page.getByText("Nothing is in this folder.").waitFor();
    await choose(page, path, "files");
    await page.getByText("gone.txt: It was changed or removed on this device").waitFor();
  },
);

test(
  "pages of an earlier person of a browser leave once somebody else has signed in there",
  LONG,
  async (t) => {
    let username = "ann@x.de";
    const door = await answeringDoor(t, {
      "/api/me": () => ({ username, webdav_url: "", recent_until_ms: 0 }),
    });
    const context = await browser.newContext();
    t.after(() => context.close());
    const first = await context.newPage();
    await first.goto(`${door}/?path=%2Fprivate`);
    await first.getByText("ann@x.de").waitFor();
    username = "bob@x.de";
    const second = await context.newPage();
    await second.goto(door);
    await first.getByText("bob@x.de").waitFor();
    assert.equal(new URL(first.url()).search, "");
  },
);

test(
  "a file that is shared by itself opens, and above a share is a way to what is shared",
  LONG,
  async (t) => {
    const bob = "bob@x.de";
    const page = await openAt(t, "/?view=shared", {
      "/api/shared": () => ({
        places: [
          { owner: bob, path: "/plan.txt" },
          { owner: bob, path: "/team" },
        ],
      }),
      "/api/stat": ({ query }) => ({
        ...entry(query.get("path")?.slice(1) ?? "", query.get("path") === "/team" ? "folder" : "file"),
        path: query.get("path"),
        owner: query.get("root"),
      }),
      "/api/content": ({ query }) => new Response(`plan of ${query.get("root")}`),
      "/api/list": ({ query }) =>
        query.get("path") === "/team"
          ? { entries: [entry("a")], next: "" }
          : refused(403, "NOT_SHARED", "permission denied: this is not yours and is not shared with you"),
    });
    await named(page, "plan.txt").click();
    await page.getByRole("dialog").getByRole("heading", { name: "plan.txt" }).waitFor();
    const text = page.getByLabel("Text of the file");
    await until(async () => (await text.inputValue()) === `plan of ${bob}`);
    assert.equal(await page.getByRole("button", { name: "Next" }).count(), 0);
    await named(page, "Close").click();
    await named(page, "team").click();
    await named(page, "a").waitFor();
    await named(page, bob).click();
    await named(page, "What is shared with me").click();
    await named(page, "plan.txt").waitFor();
  },
);

test(
  "names: a stroke is refused where it is typed, all forms of letters fit, none is turned round",
  LONG,
  async (t) => {
    const there = [entry("\u202egnp.exe"), entry("\u00e9t\u00e9.txt"), entry("sub", "folder")];
    const moves: unknown[] = [];
    const page = await openAt(t, "/", {
      "/api/list": () => ({ entries: there, next: "" }),
      "/api/move": ({ body }) => {
        moves.push(body["target"]);
        const name = String(body["target"]).slice(1).normalize("NFC");
        there[1] = entry(name);
        return { ...entry(name), path: `/${name}` };
      },
    });
    await named(page, "\ufffdgnp.exe").waitFor();
    await page.getByRole("searchbox").fill("e\u0301t");
    await page.getByText("1 item", { exact: true }).waitFor();
    await page.getByLabel("Select \u00e9t\u00e9.txt").check();
    await named(page, "Rename").click();
    const name = page.getByLabel("New name");
    await name.fill("sub/x");
    await name.press("Enter");
    assert.equal(await page.getByRole("dialog").locator("input:invalid").count(), 1);
    await name.fill("e\u0301t.txt");
    await name.press("Enter");
    await page.getByText("1 item selected").waitFor();
    assert.deepEqual(moves, ["/e\u0301t.txt"]);
  },
);

test("pages of one's own that a lost sign-in empties lead to a new one", LONG, async (t) => {
  const over = (): Response => refused(401, "SIGN_IN", "your sign-in has ended: sign in again");
  const page = await openAt(t, "/?view=shared", { "/api/shared": over, "/api/trash": over });
  for (const view of ["shared", "trash"]) {
    await page.goto(new URL(`/?view=${view}`, page.url()).href);
    const link = page.getByRole("link", { name: "Sign in again" });
    assert.equal(await link.getAttribute("href"), `/sign-in?to=%2F%3Fview%3D${view}`);
  }
});
