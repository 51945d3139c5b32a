// Reads a list page by page.
import { ClientError } from "#client/terminal/client-error.ts";

/** Reads pages until the last one. Endless pages are refused as SERVER_BROKEN; `what` names the list. */
export async function* pages<Page extends { readonly nextPageToken: string }>(
  read: (pageToken: string) => Promise<Page>,
  itemsOf: (page: Page) => readonly unknown[],
  what: string,
): AsyncGenerator<Page, void, undefined> {
  let pageToken = "";
  do {
    const page = await read(pageToken);
    // A server that repeats one page token would keep the client in a loop.
    if (page.nextPageToken !== "" && (page.nextPageToken === pageToken || itemsOf(page).length === 0)) {
      throw new ClientError("SERVER_BROKEN", `${what} does not end`);
    }
    pageToken = page.nextPageToken;
    yield page;
  } while (pageToken !== "");
}
