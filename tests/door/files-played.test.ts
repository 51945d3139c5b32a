// The page for files at a door that answers as a test says: trashes, many folders, sound, a strange address.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { until } from "#testing/until.ts";
import type { TrashEntry } from "#wire/webapi/files.ts";
import { type Answer, type Asked, answeringDoor, entry, listOf, refused } from "./answering-door.ts";
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
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto((await answeringDoor(t, answers)) + address);
  return page;
}

const GROUP = "atlas@group";

const item = (at: number): TrashEntry => ({
  id: `t${at}`,
  path: `/file-${at}.txt`,
  kind: "file",
  size: 1,
  trashed_ms: 1_790_000_000_000,
  ends_ms: 1_790_000_000_000,
  by: "ann@x.de",
});

test("“Empty the trash” says so, and empties it, when more was read before the answer", LONG, async (t) => {
  const purged: unknown[] = [];
  const second = Promise.withResolvers<void>();
  const door = await answeringDoor(t, {
    "/api/purge": ({ body }) => {
      purged.push(body);
      return { items: 2 };
    },
    "/api/trash": async ({ query }) => {
      if (query.get("page") !== "more") return { items: [item(1)], next: "more" };
      await second.promise;
      return { items: [item(2)], next: "" };
    },
  });
  const page = await browser.newPage();
  await page.goto(`${door}/?view=trash`);
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByRole("button", { name: "Empty the trash" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Everything in the trash will be gone").waitFor();
  second.resolve();
  await page.getByText("file-2.txt").waitFor();
  assert.equal(await dialog.getByText("Everything in the trash will be gone").count(), 1);
  await dialog.getByRole("button", { name: "Delete for good" }).click();
  await until(() => purged.length > 0);
  assert.deepEqual(purged, [{ root: "", ids: [], all: true }]);
  await page.close();
});

test(
  "who may delete in a group sees its trash with who did it, and brings back and empties it alone",
  LONG,
  async (t) => {
    const asked: unknown[] = [];
    const note = ({ body }: Asked): object => {
      asked.push(body);
      return { items: 1, path: "/plan.txt" };
    };
    const door = await answeringDoor(t, {
      "/api/stat": () => ({ may_delete: true }),
      "/api/trash": ({ query }) => {
        assert.equal(query.get("root"), GROUP);
        return { items: [item(1)], next: "" };
      },
      "/api/restore": note,
      "/api/purge": note,
    });
    const page = await browser.newPage();
    await page.goto(`${door}/?root=${GROUP}`);
    await page.getByRole("button", { name: "Look at its trash" }).click();
    await page.getByRole("heading", { name: `Trash of ${GROUP}` }).waitFor();
    await page.getByText("by ann@x.de").waitFor();
    assert.equal(await page.locator("[aria-current=page]").innerText(), "Shared with me");
    await page.getByRole("button", { name: "Restore" }).click();
    await page.getByText("Restored plan.txt").waitFor();
    await page.getByRole("button", { name: "Empty the trash" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete for good" }).click();
    await page.getByText("Deleted 1 item for good").waitFor();
    assert.deepEqual(asked, [
      { root: GROUP, id: "t1", conflict: "rename" },
      { root: GROUP, ids: [], all: true },
    ]);
    await page.getByRole("button", { name: "Back to the files" }).click();
    await page.getByRole("heading", { name: GROUP }).waitFor();
    await page.close();
  },
);

test(
  "a full group sends nobody to an owner, which it has not, and no reader to its trash",
  LONG,
  async (t) => {
    const full = { quota_bytes: 10, used_bytes: 10, live_bytes: 8, trash_bytes: 2, uploads_bytes: 0 };
    const door = await answeringDoor(t, {
      "/api/stat": () => ({ may_delete: false }),
      "/api/quota": () => ({ ...full, inodes: 1, inode_limit: 0 }),
    });
    const page = await browser.newPage();
    await page.goto(`${door}/?root=${GROUP}`);
    await page.getByText("Members who may write in it can make room.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Look at its trash" }).count(), 0);
    await page.close();
  },
);

test("of twenty thousand folders a move draws those in view, and finds one by its name", LONG, async (t) => {
  const folders = Array.from({ length: 20_000 }, (_, at) =>
    entry(`f${String(at).padStart(5, "0")}`, "folder"),
  );
  const moved: unknown[] = [];
  const page = await openAt(t, "/", {
    "/api/list": listOf({ "/": [...folders, entry("a.txt")] }),
    "/api/move": ({ body }) => {
      moved.push(body["target"]);
      return { name: "a.txt", path: String(body["target"]) };
    },
  });
  await page.getByRole("button", { name: "f00000", exact: true }).waitFor();
  await page.getByRole("grid").press("End");
  await page.getByRole("button", { name: "Move", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "f00000" }).waitFor();
  assert.ok((await dialog.locator("li").count()) < 100, "all are drawn");
  await dialog.getByLabel("Find a folder here").fill("f19999");
  await dialog.getByRole("button", { name: "f19999" }).click();
  await dialog.getByText("There are no folders in it.").waitFor();
  await dialog.getByRole("button", { name: "Move here" }).click();
  await until(() => moved.length > 0);
  assert.deepEqual(moved, ["/f19999/a.txt"]);
});

test(
  "a word in the address that every object has is no reason to be back, and ends no page",
  LONG,
  async (t) => {
    const page = await openAt(t, "/?refused=__proto__", { "/api/me": () => refused(401, "SIGN_IN") });
    for (const word of ["toString", "__proto__"]) {
      await page.goto(new URL(`/?refused=${word}`, page.url()).href);
      await page.getByRole("link", { name: "Sign in" }).waitFor();
      assert.equal(await page.getByRole("alert").count(), 0, word);
    }
  },
);

test("sound that is replaced while it plays stops with a word, and plays anew", LONG, async (t) => {
  let [version, isGone] = [1, false];
  const page = await openAt(t, "/?show=a.wav", {
    "/api/list": listOf({ "/": [{ ...entry("a.wav"), etag: "v0" }] }),
    "/api/stat": () => ({ ...entry("a.wav"), etag: `v${version}` }),
    "/api/content": ({ query }) =>
      query.get("version") === `v${version}` && !isGone
        ? new Response(silence(), { headers: { "content-type": "audio/wav" } })
        : refused(412, "REFUSED"),
  });
  const audio = (what: string): Promise<unknown> => page.evaluate(`document.querySelector("audio")?.${what}`);
  // The list from which it was opened is old, which is no fault.
  await until(async () => Number(await audio("readyState")) > 0);
  version = 2;
  await audio("load()");
  await page.getByText("This file has been replaced while it was open.").waitFor();
  await page.getByRole("button", { name: "Play from the beginning" }).click();
  await until(async () => Number(await audio("readyState")) > 0);
  isGone = true;
  await audio("load()");
  await page.getByText("Your browser cannot play this file.").waitFor();
});

/** A second of nothing, as WAV. */
function silence(): Uint8Array<ArrayBuffer> {
  const wav = Buffer.alloc(44 + 8_000);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(36 + 8_000, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(8_000, 24);
  wav.writeUInt32LE(8_000, 28);
  wav.writeUInt16LE(1, 32);
  wav.writeUInt16LE(8, 34);
  wav.write("data", 36);
  wav.writeUInt32LE(8_000, 40);
  return new Uint8Array(wav);
}
