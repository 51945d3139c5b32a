// Commands about links, of the main thread to the writer's.
import type { DownloadCount, DropClaim, NewLink } from "#storage/contract/links.ts";
import type { ChangeFields } from "#storage/metadata/change-messages.ts";

/** Makes a link. */
export interface CreateLinkCommand extends ChangeFields, NewLink {
  readonly op: "createLink";
}

/** Ends a link. */
export interface RevokeLinkCommand {
  readonly op: "revokeLink";
  readonly owner: string;
  readonly id: string;
}

/** Counts a download before its first byte. */
export interface CountDownloadCommand extends DownloadCount {
  readonly op: "countDownload";
  readonly nowMs: number;
}

/** Counts a file before it is dropped. */
export interface ClaimDropCommand extends DropClaim {
  readonly op: "claimDrop";
  readonly nowMs: number;
}

/** Takes back what a drop that failed has counted. */
export interface ReturnDropCommand extends DropClaim {
  readonly op: "returnDrop";
}

/** Commands about links. */
export type LinkCommand =
  | ClaimDropCommand
  | CountDownloadCommand
  | CreateLinkCommand
  | ReturnDropCommand
  | RevokeLinkCommand;
