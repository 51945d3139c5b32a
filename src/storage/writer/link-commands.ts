// Links in the writer: made, revoked, and counted before the first byte (docs/design.md, links).
import { GroveError } from "#base/errors.ts";
import { LINK_ENDED_TEXT } from "#storage/contract/links.ts";
import type { InodeRows } from "#storage/metadata/inode-rows.ts";
import {
  downloadKey,
  type LinkCounts,
  type LinkRows,
  RecentDownloads,
  requestMark,
} from "#storage/metadata/link-rows.ts";
import type { Ledger, RootState } from "#storage/metadata/unit-of-work.ts";
import { directoriesAbove } from "./in-place.ts";
import type {
  ClaimDropCommand,
  CountDownloadCommand,
  CreateLinkCommand,
  LinkCommand,
  ReturnDropCommand,
  RevokeLinkCommand,
} from "./link-messages.ts";

/** Links of one root. */
export const LINKS_PER_ROOT = 1_000;

/** Commands on links; run one at a time within a transaction. */
export class LinkCommands {
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #links: LinkRows;

  constructor(ledger: Ledger, inodes: InodeRows, links: LinkRows) {
    this.#ledger = ledger;
    this.#inodes = inodes;
    this.#links = links;
  }

  /** Runs one; each has no answer. */
  run(command: LinkCommand): void {
    switch (command.op) {
      case "createLink":
        return this.#create(command);
      case "revokeLink":
        return this.#revoke(command);
      case "countDownload":
        return this.#countDownload(command);
      case "claimDrop":
        return this.#claimDrop(command);
      case "returnDrop":
        return this.#returnDrop(command);
    }
  }

  /** Makes a link. Throws NO_SUCH_PATH, RATE_LIMITED. */
  #create(command: CreateLinkCommand): void {
    const root = this.#ledger.root(command.owner, command.accessVersion);
    directoriesAbove({ ledger: this.#ledger, inodes: this.#inodes }, root, command);
    if (this.#links.count(root) >= LINKS_PER_ROOT) {
      throw new GroveError("RATE_LIMITED", `a root has at most ${LINKS_PER_ROOT} links; revoke some`, {
        metadata: { limit: String(LINKS_PER_ROOT) },
      });
    }
    this.#links.add(root, command, command.nowMs);
    // A sharee may replace a file without links: who was checked before is checked again.
    this.#ledger.touchRoot(root);
    root.accessVersion++;
  }

  /** Ends a link. Throws NO_SUCH_PATH where there is none. */
  #revoke({ owner, id }: RevokeLinkCommand): void {
    if (!this.#links.remove(this.#ledger.root(owner), id)) {
      throw new GroveError("NO_SUCH_PATH", "you have no link with that id");
    }
  }

  /** Counts a download. Throws NOT_SHARED where the link allows no more. */
  #countDownload({ owner, id, inodeId, visitor, isWhole, requestKey, nowMs }: CountDownloadCommand): void {
    const root = this.#ledger.root(owner);
    const counts = this.#open(root, id, "read", nowMs);
    const recent = new RecentDownloads(counts.recent, nowMs);
    const key = downloadKey(visitor, inodeId);
    // A door asks again where a call broke, also before its first byte.
    const request = requestMark(requestKey);
    if (recent.hasRequest(key, request) || (!isWhole && recent.has(key))) return;
    if (counts.maxDownloads !== 0 && counts.downloads >= counts.maxDownloads) throw usedUp();
    recent.add(key, nowMs, request);
    this.#links.addDownload(id, recent);
  }

  /** Counts a file before it is dropped. Throws NOT_SHARED where the link takes no more, or not so much. */
  #claimDrop({ owner, id, bytes, nowMs }: ClaimDropCommand): void {
    const counts = this.#open(this.#ledger.root(owner), id, "drop", nowMs);
    if (counts.files >= counts.maxFiles) throw usedUp();
    if (counts.bytes + bytes > counts.maxBytes) {
      throw counts.bytes < counts.maxBytes ? tooLarge() : usedUp();
    }
    this.#links.addDrop(id, bytes, 1);
  }

  /** Takes back what a failed drop has counted; does nothing where the link has gone. */
  #returnDrop({ owner, id, bytes }: ReturnDropCommand): void {
    const root = this.#ledger.root(owner);
    if (this.#links.counts(root, id) !== undefined) this.#links.addDrop(id, -bytes, -1);
  }

  #open(root: RootState, id: string, kind: string, nowMs: number): LinkCounts {
    const counts = this.#links.counts(root, id);
    if (counts === undefined || counts.kind !== kind || (counts.endsMs !== 0 && counts.endsMs <= nowMs)) {
      throw new GroveError("NOT_SHARED", LINK_ENDED_TEXT, { metadata: { link: "ended" } });
    }
    return counts;
  }
}

function usedUp(): GroveError {
  return new GroveError("NOT_SHARED", "this link is used up: it allows no more", {
    metadata: { link: "used-up" },
  });
}

/** How much it still takes is not said: visitors are told no figures. */
function tooLarge(): GroveError {
  return new GroveError("NOT_SHARED", "this file is larger than what this link still takes", {
    metadata: { link: "too-large" },
  });
}
