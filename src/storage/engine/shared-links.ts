// Links on the shared engine: none yet.
import { GroveError } from "#base/errors.ts";
import { LINK_ENDED_TEXT, type LinkStorage } from "#storage/contract/links.ts";

/** Knows no link, and refuses to make one with BAD_ARGUMENT. */
export const NO_LINKS: LinkStorage = {
  byId: () => undefined,
  ofRoot: () => [],
  hasRoot: () => false,
  async create() {
    throw new GroveError(
      "BAD_ARGUMENT",
      "roots of the shared engine have no links yet: share with people instead",
    );
  },
  async revoke() {
    throw new GroveError("NO_SUCH_PATH", "you have no link with that id");
  },
  countDownload: ended,
  claimDrop: ended,
  returnDrop: ended,
};

async function ended(): Promise<never> {
  throw new GroveError("NOT_SHARED", LINK_ENDED_TEXT, { metadata: { link: "ended" } });
}
