// A user in the simulated cluster: the product's own client, and the contents that each file may have.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type Clock, systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { Cluster, LONG, ONCE, type Server, SHORT } from "#client/connection/cluster.ts";
import { IdentityHolder } from "#client/connection/identity-holder.ts";
import { RouteCache } from "#client/connection/route-cache.ts";
import { Router } from "#client/connection/routing.ts";
import { SessionCache } from "#client/connection/session-cache.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { Kind, OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { type Scheduler, type SimulatedProcess, simulation } from "./scheduler.ts";

const PATIENCE_MS = 40_000;
const THINK_MEAN_MS = 15_000;
/** Probability in calm times. */
const WORKS_AFTER_THINKING = 0.25;
const FILES_KEPT = 14;
const SMALL_MAX_BYTES = 20_000;
/** Above the size kept in the database. */
const LARGE_MIN_BYTES = 66_000;
const LARGE_MAX_BYTES = 120_000;

/** Hash of a file's content, or undefined for no file. */
type Content = string | undefined;

/** Receives every broken promise. */
export type Violation = (text: string) => void;

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex").slice(0, 16);

/** One user on one machine. */
export class Person {
  readonly email: string;
  readonly host: string;
  readonly process: SimulatedProcess;
  readonly #scheduler: Scheduler = simulation();
  readonly #random: SeededRandom;
  readonly #violation: Violation;
  readonly #cluster: Cluster;
  /**
   * The user's own files, by path. With more than one content the outcome of the last change is unknown, and
   * the path is used no more.
   */
  readonly #files = new Map<string, Set<Content>>();
  readonly #shared = new Set<string>();
  #made = 0;
  #isWorking = true;
  /** Works less: no fault is near. */
  isCalm = false;
  #working: Promise<void> = Promise.resolve();
  acknowledged = 0;
  unknown = 0;
  /**
   * Calls refused for the quota; their outcome still counts as unknown, since an earlier attempt may have
   * gone through.
   */
  refused = 0;
  reads = 0;

  constructor(email: string, host: string, deps: { folder: string; meta: string; violation: Violation }) {
    this.email = email;
    this.host = host;
    this.#violation = deps.violation;
    this.process = this.#scheduler.spawn(email, host);
    this.#random = this.process.random.fork("choices");
    const folder = join(deps.folder, email);
    const clock: Clock = systemClock;
    const sessions = new SessionCache(join(folder, "credentials"));
    const identity = new IdentityHolder(sessions, clock);
    identity.hold({ username: email, idToken: `mock-jwt.${email}`, expiresAtMs: undefined });
    const profile = {
      metaservers: [deps.meta],
      ca: undefined,
      mock: true,
      idp: undefined,
      fileserver: undefined,
    };
    const { signal } = new AbortController();
    const cache = new RouteCache(join(folder, "routes.json"), clock);
    const router = new Router({ profile, identity, cache, signal });
    this.#cluster = new Cluster({
      profile,
      identity,
      sessions,
      router,
      signal,
      random: this.process.random,
      installationId: () => Promise.resolve("simulated"),
      clock,
      patienceMs: PATIENCE_MS,
    });
  }

  /** Works until `end`. */
  begin(): void {
    this.#working = this.#scheduler.within(this.process, () => this.#work());
  }

  /** Ends after the operation in hand. */
  async end(): Promise<void> {
    this.#isWorking = false;
    await this.#working;
  }

  /** Shared paths, as far as acknowledged. */
  get sharedPaths(): ReadonlySet<string> {
    return this.#shared;
  }

  async #work(): Promise<void> {
    while (this.#isWorking) {
      await this.#pause(-Math.log(1 - this.#random.next()) * THINK_MEAN_MS);
      if (this.isCalm && !this.#random.chance(WORKS_AFTER_THINKING)) continue;
      if (this.#isWorking) await this.#once();
    }
  }

  async #once(): Promise<void> {
    const draw = this.#random.next();
    const certain = [...this.#files].filter(([, contents]) => contents.size === 1);
    const known = certain.filter(([, [content]]) => content !== undefined).map(([path]) => path);
    if (known.length === 0 || (draw < 0.4 && known.length < FILES_KEPT)) return this.#write(this.#newPath());
    const path = this.#random.pick(known);
    if (draw < 0.55) return this.#write(path);
    if (draw < 0.75) return this.#check(this.#random.pick([...this.#files.keys()]));
    if (draw < 0.85) return this.#remove(path);
    return this.#move(path, this.#newPath());
  }

  /** Reads every file of the user's own, those of unknown outcome too. */
  async verifyAll(): Promise<void> {
    await this.#scheduler.within(this.process, async () => {
      for (const path of this.#files.keys()) await this.#check(path, true);
    });
  }

  /** All files, where every outcome is known; else undefined. */
  get paths(): ReadonlyMap<string, ReadonlySet<Content>> {
    return this.#files;
  }

  async share(path: string, user: string): Promise<boolean> {
    return this.#scheduler.within(this.process, async () => {
      try {
        await this.#cluster.run("", SHORT, (server) => server.files.share({ path, user }, server.unary));
        this.#shared.add(`${path} ${user}`);
        return true;
      } catch {
        return false;
      }
    });
  }

  async unshare(path: string, user: string): Promise<boolean> {
    return this.#scheduler.within(this.process, async () => {
      try {
        await this.#cluster.run("", SHORT, (server) => server.files.unshare({ path, user }, server.unary));
        this.#shared.delete(`${path} ${user}`);
        return true;
      } catch {
        return false;
      }
    });
  }

  async makeFolder(path: string): Promise<boolean> {
    return this.#scheduler.within(this.process, async () => {
      try {
        await this.#cluster.run("", ONCE, (server) => server.files.createDirectory({ path }, server.unary));
        return true;
      } catch (error) {
        return isGroveError(error, "PATH_EXISTS");
      }
    });
  }

  /** Returns whether another user's folder can be listed; undefined without an answer. */
  async canList(root: string, path: string): Promise<boolean | undefined> {
    return this.#scheduler.within(this.process, async () => {
      try {
        const { entries } = await this.#cluster.run(root, SHORT, (server) =>
          server.files.listDir({ root, path, pageSize: 10 }, server.unary),
        );
        return entries.every((entry) => entry.kind !== Kind.UNSPECIFIED);
      } catch (error) {
        return isGroveError(error, "NOT_SHARED", "NOT_OWNER", "NO_SUCH_PATH") ? false : undefined;
      }
    });
  }

  /** Returns the used bytes of the user's root by the server's counter, and those of everything listed. */
  async usage(): Promise<{ readonly told: bigint; readonly listed: bigint }> {
    return this.#scheduler.within(this.process, () =>
      this.#cluster.run("", SHORT, async ({ files, unary }) => {
        let listed = 0n;
        const { entries } = await files.listDir({ path: "/", pageSize: 1_000 }, unary);
        for (const entry of entries) listed += entry.size;
        const { liveBytes } = await files.getQuota({}, unary);
        return { told: liveBytes, listed };
      }),
    );
  }

  close(): void {
    this.#scheduler.within(this.process, () => this.#cluster.close());
    this.process.isAlive = false;
  }

  #newPath(): string {
    return `/f${this.#made++}`;
  }

  async #write(path: string): Promise<void> {
    const isLarge = this.#random.chance(0.25);
    const bytes = this.#random.bytes(
      isLarge ? this.#random.between(LARGE_MIN_BYTES, LARGE_MAX_BYTES) : this.#random.below(SMALL_MAX_BYTES),
    );
    await this.#change("write", new Map([[path, hashOf(bytes)]]), (server) =>
      server.files.uploadFile(parts(path, bytes), server.stream),
    );
  }

  #remove(path: string): Promise<void> {
    return this.#change(
      "delete",
      new Map([[path, undefined]]),
      (server) => server.files.deleteFile({ path }, server.unary),
      ONCE,
    );
  }

  #move(from: string, to: string): Promise<void> {
    const [content] = this.#files.get(from) ?? [];
    const after = new Map<string, Content>([
      [from, undefined],
      [to, content],
    ]);
    const onConflict = OnConflict.FAIL;
    return this.#change(
      "move",
      after,
      (server) => server.files.rename({ path: from, targetPath: to, onConflict }, server.unary),
      ONCE,
    );
  }

  /** Makes a change; when its outcome is unknown, both contents are possible. */
  async #change(
    what: string,
    after: ReadonlyMap<string, Content>,
    operation: (server: Server) => Promise<unknown>,
    patience: typeof ONCE = LONG,
  ): Promise<void> {
    try {
      await this.#cluster.run("", patience, operation);
      for (const [path, content] of after) this.#files.set(path, new Set([content]));
      this.acknowledged++;
      this.#scheduler.trace(this.email, `${what} ${[...after.keys()].join(" ")} acknowledged`);
    } catch (error) {
      if (isGroveError(error, "QUOTA_EXCEEDED")) this.refused++;
      else this.unknown++;
      this.#scheduler.trace(
        this.email,
        `${what} ${[...after.keys()].join(" ")} ${String(error).slice(0, 80)}`,
      );
      for (const [path, content] of after)
        this.#files.set(path, new Set([...(this.#files.get(path) ?? [undefined]), content]));
    }
  }

  async #check(path: string, mustAnswer = false): Promise<void> {
    const wanted = this.#files.get(path) ?? new Set<Content>([undefined]);
    let found: Content;
    try {
      found = hashOf(await this.#cluster.run("", SHORT, (server) => read(server, path)));
    } catch (error) {
      if (!isGroveError(error, "NO_SUCH_PATH")) {
        if (mustAnswer) this.#violation(`${this.email} cannot read ${path}: ${String(error)}`);
        return;
      }
    }
    this.reads++;
    if (wanted.has(found)) return;
    this.#violation(
      `${path} of ${this.email} holds ${found ?? "nothing"} instead of ${[...wanted].map((one) => one ?? "nothing").join(" or ")}`,
    );
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#scheduler.after(ms, resolve));
  }
}

async function* parts(path: string, bytes: Buffer): AsyncGenerator<object> {
  const header = { path, size: BigInt(bytes.length), sizeKnown: true };
  yield { part: { case: "header", value: header } };
  for (let at = 0; at < bytes.length; at += 50_000)
    yield { part: { case: "chunk", value: { offset: BigInt(at), data: bytes.subarray(at, at + 50_000) } } };
}

async function read(server: Server, path: string): Promise<Buffer> {
  const got: Uint8Array[] = [];
  for await (const { part } of server.files.downloadFile({ path }, server.stream))
    if (part.case === "chunk") got.push(part.value.data);
  return Buffer.concat(got);
}
