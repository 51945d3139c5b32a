// The context of a verb's action: settings, the current folder, the cluster and output.
import { randomUUID } from "node:crypto";
import { systemClock } from "#base/clock.ts";
import { stringify64 } from "#base/json64.ts";
import { systemRandom } from "#base/random.ts";
import { type ConfigFolder, findConfigFolder } from "#client/signin/config-folder.ts";
import { type Profile, resolveProfile } from "#client/signin/profile.ts";
import { isClientError } from "#client/terminal/client-error.ts";
import { PATIENCE_MS } from "#client/terminal/limits.ts";
import { note, type Terminal, writeAll } from "#client/terminal/terminal.ts";
import { terminalJson, terminalText } from "#client/terminal/terminal-text.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import type { ClientFlags } from "./client-flags.ts";
import type { Cluster } from "./cluster.ts";
import { IdentityHolder } from "./identity-holder.ts";
import { parseRemotePath, type TypedPath } from "./remote-path.ts";
import type { RouteCache } from "./route-cache.ts";
import { SessionCache } from "./session-cache.ts";
import { WorkingFolderFile } from "./working-folder.ts";

/** Parts of a context that the commands of one shell share. */
export interface SharedParts {
  readonly config: ConfigFolder;
  readonly identity: IdentityHolder;
  readonly sessions: SessionCache;
  readonly place: WorkingFolderFile;
  profile: Promise<Profile> | undefined;
  cluster: Promise<Cluster> | undefined;
  /** Undefined for the routes that all commands of this user share. */
  readonly routes?: RouteCache | undefined;
  /** Aborts the command that runs; in a shell each command has its own signal. */
  signal: AbortSignal;
  /** True in a shell on a terminal: Ctrl-C ends the verb that runs, and not the shell. */
  hasPrompt?: boolean;
  /** True while a Tab is answered: notes would stand in the line that is being typed. */
  isQuiet?: boolean;
}

/** Locates the client's files and makes the parts that all commands of a run share. */
export async function makeSharedParts(env: Terminal["env"]): Promise<SharedParts> {
  const config = await findConfigFolder(env);
  const sessions = new SessionCache(config.credentials);
  return {
    config,
    sessions,
    identity: new IdentityHolder(sessions, systemClock),
    place: new WorkingFolderFile(config.place),
    profile: undefined,
    cluster: undefined,
    signal: new AbortController().signal,
  };
}

/** One run of one verb. */
export class ClientContext {
  readonly terminal: Terminal;
  readonly flags: ClientFlags;
  /** The parts that the commands of one shell share. */
  readonly shared: SharedParts;

  constructor(terminal: Terminal, flags: ClientFlags, shared: SharedParts) {
    this.terminal = terminal;
    this.flags = flags;
    this.shared = shared;
  }

  /** Aborts on Ctrl-C. */
  get signal(): AbortSignal {
    return this.shared.signal;
  }

  get isJson(): boolean {
    return this.flags.json === true;
  }

  get config(): ConfigFolder {
    return this.shared.config;
  }

  get identity(): IdentityHolder {
    return this.shared.identity;
  }

  get sessions(): SessionCache {
    return this.shared.sessions;
  }

  get place(): WorkingFolderFile {
    return this.shared.place;
  }

  /** The settings of the cluster. */
  profile(): Promise<Profile> {
    this.shared.profile ??= resolveProfile(this.config.profile, this.flags, this.terminal.env);
    return this.shared.profile;
  }

  /** The settings that the last `login` wrote, without this command's flags; undefined when they are damaged. */
  async storedProfile(): Promise<Profile | undefined> {
    try {
      return await resolveProfile(this.config.profile, {}, {});
    } catch (error) {
      if (isClientError(error, "LOCAL_FILE")) return undefined;
      throw error;
    }
  }

  /** Replaces the settings, for `login`, before the cluster is first used. */
  useProfile(profile: Profile): void {
    this.shared.profile = Promise.resolve(profile);
  }

  /** The connections to the cluster, made on first use. */
  cluster(): Promise<Cluster> {
    this.shared.cluster ??= this.#makeCluster();
    return this.shared.cluster;
  }

  /** Resolves a typed path; a relative one starts at the current folder. */
  async resolve(typed: string): Promise<TypedPath> {
    const path = parseRemotePath(typed, (await this.place.read()).current);
    if (path.root === "") return path;
    // The own root keeps one name, so that it has one route and moves inside it stay in one root.
    const own = await this.identity.current();
    return own?.username === path.root ? { ...path, root: "" } : path;
  }

  /** Prints lines, unless JSON was asked for; terminal controls in them are escaped. */
  async print(...lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    await writeAll(this.terminal.output, `${lines.map(terminalText).join("\n")}\n`, this.signal);
  }

  /** Prints one JSON document. */
  async printJson(value: unknown): Promise<void> {
    await writeAll(this.terminal.output, `${terminalJson(stringify64(value, 2))}\n`, this.signal);
  }

  /** Prints a note on standard error, unless JSON was asked for. */
  note(text: string): void {
    if (!this.isJson) note(this.terminal, text);
  }

  async #makeCluster(): Promise<Cluster> {
    const [{ Cluster }, { Router }, { RouteCache: Routes }, { RetryNotes }] = await Promise.all([
      import("./cluster.ts"),
      import("./routing.ts"),
      import("./route-cache.ts"),
      import("./retry-notes.ts"),
    ]);
    const shared = this.shared;
    const { identity, sessions, config } = shared;
    const profile = await this.profile();
    // In a shell the connections outlive the command that made them, and so its signal.
    const now = {
      get signal(): AbortSignal {
        return shared.signal;
      },
    };
    const retries = new RetryNotes(this.terminal, systemClock);
    const cache = shared.routes ?? new Routes(config.routes, systemClock);
    const router = new Router(Object.assign(now, { profile, identity, cache }));
    return new Cluster(
      Object.assign(now, {
        profile,
        identity,
        sessions,
        router,
        random: systemRandom,
        installationId: () => installationId(config.installationId),
        clock: systemClock,
        patienceMs: patienceOf(this.terminal.env),
        onRetry: (why: string, wait: { readonly waitMs: number; readonly leftMs: number }) => {
          if (!this.isJson && shared.isQuiet !== true) retries.tell(why, wait);
        },
        onRequest: (id: string, address: string) => {
          if (this.flags.verbose === true && shared.isQuiet !== true)
            note(this.terminal, `request ${id} to ${address}`);
        },
      }),
    );
  }
}

/** How long an operation is retried: GROVE_RETRY_SECONDS, 0 to 86,400, or a minute. */
function patienceOf(env: Terminal["env"]): number {
  const text = env["GROVE_RETRY_SECONDS"] ?? "";
  if (!/^\d{1,5}$/.test(text)) return PATIENCE_MS;
  return Math.min(Number(text), 86_400) * 1_000;
}

/** The id of this installation, made when first needed (decision D23). */
async function installationId(path: string): Promise<string> {
  const known = (await readPrivateFile(path))?.trim();
  if (known !== undefined && /^[0-9a-f-]{36}$/.test(known)) return known;
  const made = randomUUID();
  await writePrivateFile(path, `${made}\n`);
  return made;
}
