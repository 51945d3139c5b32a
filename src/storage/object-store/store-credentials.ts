// The key of the object store, from a file that is read again when it changes.
import { stat } from "node:fs/promises";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { readPrivateFile } from "#os/private-file.ts";

/** A key. Never log it. */
export interface StoreCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** How long one look at the file counts. */
const LOOK_INTERVAL_MS = 1_000;
const LINE = /^\s*(?:aws_)?(access_key_id|secret_access_key|session_token)\s*=\s*(\S+)\s*$/;

/** Reads lines `access_key_id = …` and `secret_access_key = …`, as ~/.aws/credentials has them. */
export class CredentialsFile {
  readonly #path: string;
  readonly #clock: Pick<Clock, "steadyMs">;
  readonly #logger: Logger;
  #known: StoreCredentials | undefined;
  #version = "";
  #lookedMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;

  constructor(deps: { path: string; clock: Pick<Clock, "steadyMs">; logger: Logger }) {
    this.#path = deps.path;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
  }

  /**
   * The key as the file has it now. A file that was broken or removed later leaves the last key in use.
   * Throws BAD_ARGUMENT for a first one that is missing, readable by others, or without a key.
   */
  async current(): Promise<StoreCredentials> {
    if (this.#known === undefined || this.#clock.steadyMs() - this.#lookedMs >= LOOK_INTERVAL_MS) {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
      });
      await this.#looking;
    }
    return this.#known as StoreCredentials;
  }

  /** Has the next use look at the file again, since the store refused the key. */
  doubt(): void {
    this.#lookedMs = Number.NEGATIVE_INFINITY;
  }

  async #look(): Promise<void> {
    try {
      const { mtimeMs, size, ino, ctimeMs } = await stat(this.#path);
      const version = `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
      if (version !== this.#version) {
        this.#known = parsed((await readPrivateFile(this.#path)) ?? "", this.#path);
        this.#version = version;
      }
    } catch (error) {
      if (this.#known === undefined) throw asRefusal(error, this.#path);
      this.#logger.warn("store.credentials_kept", { path: this.#path });
    }
    this.#lookedMs = this.#clock.steadyMs();
  }
}

function parsed(text: string, path: string): StoreCredentials {
  const values = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, name, value] = LINE.exec(line) ?? [];
    if (name !== undefined && value !== undefined && !values.has(name)) values.set(name, value);
  }
  const accessKeyId = values.get("access_key_id");
  const secretAccessKey = values.get("secret_access_key");
  const sessionToken = values.get("session_token");
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new GroveError("BAD_ARGUMENT", `${path} needs lines access_key_id = … and secret_access_key = …`);
  }
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

function asRefusal(error: unknown, path: string): Error {
  if (error instanceof GroveError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? "error";
  return new GroveError("BAD_ARGUMENT", `the object store's credentials ${path} cannot be read: ${code}`);
}
