// A bucket of an S3-compatible store as the source of an import: its keys are paths.
import { systemClock } from "#base/clock.ts";
import { CHUNK_BYTES } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { systemFraction } from "#base/random.ts";
import { parentPath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import type { SourceState } from "#client/transfer/local-source.ts";
import { S3Client } from "#storage/object-store/s3-client.ts";
import { CredentialsFile } from "#storage/object-store/store-credentials.ts";
import { isStoreProblem } from "#storage/object-store/store-error.ts";
import { StoreRequests } from "#storage/object-store/store-requests.ts";
import type { StoreSettings } from "#storage/object-store/store-settings.ts";
import {
  type ImportEntry,
  type ImportFile,
  type ImportSource,
  refusalOfName,
  stateElsewhere,
} from "./import-source.ts";

/** Keys of equal folders lie beside each other in a listing: one folder of each depth is open at a time. */
interface OpenFolder {
  readonly place: string;
  readonly key: string;
  readonly seen: Set<string>;
}

/** Reads objects by ranges, each of which is repeated until it has come whole. */
export class S3Source implements ImportSource {
  readonly name: string;
  readonly #requests: StoreRequests;
  readonly #prefix: string;
  readonly #signal: AbortSignal;

  constructor(settings: StoreSettings, ca: string | undefined, signal: AbortSignal) {
    const { bucket, prefix, credentialsFile, endpoint } = settings;
    const [clock, logger] = [systemClock, silentLogger];
    const credentials = new CredentialsFile({ path: credentialsFile, clock, logger });
    const client = new S3Client({ settings, credentials, ca, clock });
    this.#requests = new StoreRequests({ client, clock, logger, signal, fraction: systemFraction });
    this.#signal = signal;
    signal.addEventListener("abort", () => client.close(), { once: true });
    this.#prefix = prefix;
    this.name = `s3://${bucket}/${prefix} at ${endpoint}`;
  }

  async *entries(): AsyncGenerator<ImportEntry, void, undefined> {
    const open: [OpenFolder, ...OpenFolder[]] = [{ place: "/", key: this.#prefix, seen: new Set() }];
    yield { kind: "folder", place: "/" };
    for (let after = "", isLast = false; !isLast; ) {
      const page = await this.#asked("the listing", () => this.#requests.list(this.#prefix, after));
      for (const { key, length, modifiedMs, etag } of page.objects) {
        after = key;
        // What the store lists outside of the prefix is not looked at.
        if (!key.startsWith(this.#prefix)) continue;
        const names = key.slice(this.#prefix.length).split("/");
        const name = names.pop() ?? "";
        const folder = yield* enter(open, names);
        // A key with a slash at its end stands for an empty folder.
        if (folder === undefined || name === "") continue;
        const place = `${folder.place === "/" ? "" : folder.place}/${name.normalize("NFC")}`;
        const why = refusalOfName(name, folder.seen);
        if (why !== undefined) yield { kind: "skipped", place, why };
        else {
          const facts = { sizeBytes: length, mtimeMs: modifiedMs, version: etag };
          yield { kind: "file", place, folder: parentPath(place), address: key, ...facts };
        }
      }
      isLast = page.isLast || page.objects.length === 0;
    }
  }

  async look({ address, place }: ImportFile): Promise<SourceState> {
    const facts = await this.#asked(place, () => this.#requests.client.head(address));
    return stateElsewhere({ sizeBytes: facts.length, mtimeMs: facts.modifiedMs, version: facts.etag });
  }

  async *chunks({ address, sizeBytes, place }: ImportFile, fromBytes: number): AsyncGenerator<Buffer> {
    const read = (at: number): Promise<Buffer> => {
      const length = Math.min(CHUNK_BYTES, sizeBytes - at);
      return this.#asked(place, () => this.#requests.getRange(address, at, length));
    };
    let ahead: Promise<Buffer> | undefined;
    for (let at = fromBytes; at < sizeBytes; at += CHUNK_BYTES) {
      const chunk = await (ahead ?? read(at));
      const next = at + CHUNK_BYTES;
      ahead = next < sizeBytes ? read(next) : undefined;
      // The consumer may stop before this one is asked for.
      ahead?.catch(() => undefined);
      yield chunk;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#requests.client.close();
  }

  async #asked<T>(what: string, request: () => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted();
    try {
      return await request();
    } catch (error) {
      this.#signal.throwIfAborted();
      if (isStoreProblem(error, "missing")) {
        throw new ClientError("LOCAL_NOT_FOUND", `${what}: it is no longer in the bucket`, { cause: error });
      }
      if (isStoreProblem(error, "denied")) {
        throw new ClientError("LOCAL_DENIED", `${what}: ${error.message}`, {
          todo: "Check the file of credentials, and what its key may do.",
          cause: error,
        });
      }
      if (!isStoreProblem(error)) throw error;
      throw new ClientError("SOURCE_FAILED", `${what}: ${error.message}`, { cause: error });
    }
  }
}

/** Opens the folders of a key; undefined when one of them cannot be stored, which is told once. */
function* enter(
  open: [OpenFolder, ...OpenFolder[]],
  names: readonly string[],
): Generator<ImportEntry, OpenFolder | undefined, undefined> {
  let folder = open[0];
  for (const [index, name] of names.entries()) {
    const key = `${folder.key}${name}/`;
    const known = open[index + 1];
    if (known?.key === key) {
      if (known.place === "") return undefined;
      folder = known;
      continue;
    }
    open.length = index + 1;
    const place = `${folder.place === "/" ? "" : folder.place}/${name.normalize("NFC")}`;
    const why = refusalOfName(name, folder.seen);
    open.push({ place: why === undefined ? place : "", key, seen: new Set() });
    if (why !== undefined) {
      yield { kind: "skipped", place, why };
      return undefined;
    }
    yield { kind: "folder", place };
    folder = open[index + 1] as OpenFolder;
  }
  return folder;
}
