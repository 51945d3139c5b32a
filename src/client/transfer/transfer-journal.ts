// Records the folders that this installation sends and fetches, so that a command resumes after a cut.
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { ClientContext } from "#client/connection/client-context.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { readStored, writeStored } from "#client/signin/stored-json.ts";
import { TRANSFER_RECORD_MS, TRANSFER_RECORDS_MAX } from "#client/terminal/limits.ts";
import { removeOldFiles } from "./old-files.ts";
import { type Hold, holdTransfer } from "./transfer-hold.ts";

/** Source, target and user of a transfer, as typed. */
export interface TransferPair {
  readonly verb: "put" | "get";
  /** The servers and the user. */
  readonly cluster: string;
  /** The absolute path, and its real path if that counts too. */
  readonly local: string;
  readonly remote: RemotePath;
}

/** The state of a transfer. */
export interface TransferRecord {
  /** The filled folder: the named target, or the folder of the source's name in it. */
  readonly placed: string;
  /** The identity of that folder, independent of its name; undefined until it is made. */
  readonly folderId: string | undefined;
  /** True when nothing was there before. */
  readonly isFresh: boolean;
  /** Wall time of the beginning. */
  readonly startedMs: number;
  /** True when everything has arrived. */
  readonly isDone: boolean;
}

/** The servers and the user of a command, as the journal's key. */
export async function clusterName(context: ClientContext): Promise<string> {
  const { metaservers, fileserver = "" } = await context.profile();
  const username = (await context.identity.current())?.username ?? "";
  return [username, fileserver, ...metaservers.toSorted()].join(" ");
}

/**
 * Files in the configuration folder, one for each pair. If they cannot be written, the next run finds no
 * record.
 */
export class TransferJournal {
  readonly #folder: string;
  #isTidied = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The record of a pair; undefined when there is none. */
  async find(pair: TransferPair): Promise<TransferRecord | undefined> {
    const fields = await readStored(this.#path(pair)).catch(() => undefined);
    const placed = fields?.text("placed");
    const startedMs = fields?.integer("started_ms");
    if (fields === undefined || placed === undefined || startedMs === undefined) return undefined;
    const folderId = fields.text("folder_id");
    return { placed, folderId, isFresh: fields.flag("fresh"), startedMs, isDone: fields.flag("done") };
  }

  /** Writes the current state of a pair. */
  async keep(pair: TransferPair, record: TransferRecord): Promise<void> {
    const { verb, local, remote } = pair;
    if (!this.#isTidied) {
      this.#isTidied = true;
      await removeOldFiles(this.#folder, { files: TRANSFER_RECORDS_MAX, ageMs: TRANSFER_RECORD_MS });
    }
    const kept = writeStored(this.#path(pair), {
      verb,
      local: local.split("\0", 1)[0],
      root: remote.root,
      path: remote.path,
      placed: record.placed,
      ...(record.folderId === undefined ? {} : { folder_id: record.folderId }),
      fresh: record.isFresh,
      started_ms: record.startedMs,
      done: record.isDone,
    });
    await kept.catch(() => undefined);
  }

  /** Holds this pair until its release; answers with the process that holds it, if another does. */
  hold(pair: TransferPair): Promise<Hold> {
    return holdTransfer(`${this.#path(pair)}.held`);
  }

  #path({ verb, cluster, local, remote }: TransferPair): string {
    const text = [verb, cluster, local, remote.root, remote.path].join("\0");
    return join(this.#folder, `${verb}-${createHash("sha256").update(text).digest("hex").slice(0, 32)}.json`);
  }
}

/** A folder in transfer, as it is recorded. */
export interface TransferRun {
  readonly pair: TransferPair;
  readonly record: TransferRecord;
}

/** The records of one command's folders, from their beginning to their end. */
export class TransferRuns {
  readonly #journal: TransferJournal;
  readonly #runs = new Map<object, TransferRun>();
  readonly #releases: (() => Promise<void>)[] = [];

  constructor(journal: TransferJournal) {
    this.#journal = journal;
  }

  /** Holds a pair until all are released; answers with the process that holds it, if another does. */
  async hold(pair: TransferPair): Promise<number | undefined> {
    const hold = await this.#journal.hold(pair);
    if ("heldBy" in hold) return hold.heldBy;
    this.#releases.push(hold.release);
    return undefined;
  }

  /** Releases all pairs. */
  async release(): Promise<void> {
    for (const release of this.#releases.splice(0)) await release();
  }

  /** Records that a source is in transfer. */
  async begin(source: object, run: TransferRun): Promise<void> {
    this.#runs.set(source, run);
    await this.#journal.keep(run.pair, run.record);
  }

  /** Records the folder that a source fills. */
  async isIn(source: object, folderId: string | undefined): Promise<void> {
    const run = this.#runs.get(source);
    if (run === undefined || run.record.folderId === folderId) return;
    await this.begin(source, { pair: run.pair, record: { ...run.record, folderId } });
  }

  /** Records that everything has arrived. */
  async end(): Promise<void> {
    for (const { pair, record } of this.#runs.values()) {
      await this.#journal.keep(pair, { ...record, isDone: true });
    }
  }
}
