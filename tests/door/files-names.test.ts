// Names with marks that turn the way of writing: no place of the page for files shows them as they are.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { answeringDoor, entry, listOf, refused } from "./answering-door.ts";
import { LONG, startBrowser } from "./files-browser.ts";

const TURN = "\u202e";
const FOLDER = `${TURN}gnp.exe`;
const SHOWN = "\ufffdgnp.exe";

let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM !== undefined) browser = await startBrowser();
});
after(() => browser?.close());

/** Nothing that is shown, told to screen readers or said on hovering has a mark. */
async function showsNone(page: Page, where: string): Promise<void> {
  await page.getByText(SHOWN).first().waitFor();
  const told = await page.evaluate<string>(
    `[document.body.innerText, ...[...document.querySelectorAll("[title], [aria-label], [alt]")].flatMap((one) =>
      ["title", "aria-label", "alt"].map((name) => one.getAttribute(name) ?? ""))].join("\\n")`,
  );
  assert.ok(!told.includes(TURN), `${where}: ${JSON.stringify(told)}`);
}

async function openPage(t: TestContext): Promise<Page> {
  const file = { ...entry(`${TURN}x.txt`), path: `/${FOLDER}/${TURN}x.txt` };
  const link = {
    id: "l",
    path: `/${FOLDER}`,
    drop: false,
    has_password: false,
    created_ms: 1,
    ends_ms: 0,
    max_downloads: 0,
    downloads: 0,
    max_bytes: 0,
    bytes: 0,
    max_files: 0,
    files: 0,
  };
  const trashed = { id: "t", path: link.path, kind: "folder", size: 1, trashed_ms: 1, ends_ms: 1, by: "a" };
  const page = await browser.newPage();
  t.after(() => page.close());
  const door = await answeringDoor(t, {
    "/api/list": listOf({ "/": [entry(FOLDER, "folder")], [link.path]: [entry(FOLDER, "folder"), file] }),
    "/api/search": () => ({ found: [file], looked: 2, isWhole: true }),
    "/api/shared": () => ({ places: [{ owner: "bob@x.de", path: link.path }] }),
    "/api/links": () => ({ links: [link] }),
    "/api/trash": ({ method }) => (method === "GET" ? { items: [trashed], next: "" } : { id: "t" }),
    "/api/restore": () => ({ ...entry(FOLDER), path: `/${FOLDER}` }),
    "/api/move": ({ body }) => ({ ...entry(FOLDER), path: body["target"] }),
    "/api/folder": () => refused(409, "PATH_EXISTS", `${FOLDER} is taken`),
    "/api/content": ({ method }) =>
      method === "PUT" ? refused(409, "PATH_EXISTS", "taken") : new Response("text"),
  });
  await page.goto(door);
  return page;
}

test(
  "marks that turn the way of writing are shown as such in lists, ways, dialogs and messages",
  LONG,
  async (t) => {
    const page = await openPage(t);
    const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
    const at = (search: string) => page.goto(new URL(search, page.url()).href);
    const chosen = async () => page.getByLabel(`Select ${SHOWN}`).check();
    for (const view of [
      "?view=shared",
      "?view=links",
      "?view=trash",
      `?path=/${FOLDER}`,
      `?find=${FOLDER}`,
    ]) {
      await at(view);
      await showsNone(page, view);
    }
    await at("?view=trash");
    await press(`Restore ${SHOWN}`);
    await page.getByText(`Restored ${SHOWN}`).waitFor();
    await showsNone(page, "what was restored");
    await at(`?path=/${FOLDER}`);
    await chosen();
    for (const dialog of ["Share", "Move"]) {
      await press(dialog);
      await page.getByRole("dialog").getByText(SHOWN).first().waitFor();
      await showsNone(page, dialog);
      await press("Close");
    }
    await press("Move");
    await press("↑ One folder up");
    await page.getByRole("dialog").getByRole("button", { name: SHOWN, exact: true }).waitFor();
    await showsNone(page, "a folder in the picker");
    await press("Move here");
    await page.getByText(`Moved ${SHOWN} to the top folder.`).waitFor();
    await showsNone(page, "what was moved");
    await page.getByRole("button", { name: "Select none" }).click();
    await press("New folder");
    await page.getByLabel("Name", { exact: true }).fill("new");
    await press("Make");
    await page.getByText(`${SHOWN} is taken`).waitFor();
    await showsNone(page, "a refusal");
    await press("Cancel");
    await page
      .locator('input[type="file"]')
      .first()
      .setInputFiles({
        name: FOLDER,
        mimeType: "text/plain",
        buffer: Buffer.from("x"),
      });
    await page.getByRole("dialog").getByText("This name is taken").waitFor();
    await showsNone(page, "a taken name");
  },
);
