// Reads a list page by page.
import { ClientError } from "#client/terminal/client-error.ts";

/** Pages until the last one. A server whose pages never end is left with SERVER_BROKEN: `what` says of which list. */
export async function* pages<Page extends { readonly nextPageToken: string }>(
  read: (pageToken: string) => Promise<Page>,
  itemsOf: (page: Page) => readonly unknown[],
  what: string,
): AsyncGenerator<Page, void, undefined> {
  let pageToken = "";
  do {
    const page = await read(pageToken);
    // A server that sends one token for ever would keep us for ever.
    if (page.nextPageToken !== "" && (page.nextPageToken === pageToken || itemsOf(page).length === 0)) {
      throw new ClientError("SERVER_BROKEN", `${what} does not end`);
    }
    pageToken = page.nextPageToken;
    yield page;
  } while (pageToken !== "");
}
