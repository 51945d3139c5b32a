// Real object stores for tests: versitygw, MinIO or Garage, each in a temporary folder, removed afterwards.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { freePort } from "./free-ports.ts";
import { diskFolder } from "./scratch-folder.ts";
import { until } from "./until.ts";

const KINDS = ["versitygw", "minio", "garage"] as const;

/** A store that tests know how to start. */
export type ObjectStoreKind = (typeof KINDS)[number];

/** The only store of a run, by GROVE_TEST_STORE; Garage takes a quarter of an hour to build and is no part of CI. */
const CHOSEN: ObjectStoreKind | undefined = KINDS.find((kind) => kind === process.env["GROVE_TEST_STORE"]);

/** The stores that tests run against, all of them: each differs in checksums and conditional requests. */
export const OBJECT_STORES: readonly [ObjectStoreKind, ...ObjectStoreKind[]] =
  CHOSEN === undefined ? ["versitygw", "minio"] : [CHOSEN];

/** True for a store that refuses a second object of one name where it is asked to; Garage does not. */
export function keepsFirst(kind: ObjectStoreKind): boolean {
  return kind !== "garage";
}

/** The store of tests and rigs that need one of any kind. */
export const USUAL_STORE: ObjectStoreKind = CHOSEN ?? "versitygw";

/** Garage takes only keys of this form. */
const KEY = {
  id: "GK67726f76657465737467726f",
  secret: "5ec2e7a5ec2e7a5ec2e7a5ec2e7a5ec2e7a5ec2e7a5ec2e7a5ec2e7a5ec2e7a5",
};
const BUCKET = "chunks";

/** The program of a store, in PATH or where `go install` puts it. */
function programOf(kind: ObjectStoreKind): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), join(homedir(), "go/bin")];
  return folders.map((folder) => join(folder, kind)).find((path) => existsSync(path));
}

/** Value for `skip` of a test: false with the program, and in CI, where the test must fail without it. */
export function withoutStore(kind: ObjectStoreKind): string | false {
  const isCi = (process.env["CI"] ?? "") !== "";
  return programOf(kind) === undefined && !isCi
    ? `${kind} is not installed; .ci/run has its \`go install\``
    : false;
}

/** A store with one empty bucket. */
export class TestStore {
  readonly kind: ObjectStoreKind;
  readonly port: number;
  readonly bucket: string = BUCKET;
  /** File with the key, as a server of Grove reads it. */
  readonly credentialsFile: string;
  readonly keyId: string = KEY.id;
  readonly secret: string = KEY.secret;
  readonly #folder: string;
  readonly #options: TestStoreOptions;
  #child: ChildProcess | undefined;
  #rpcPort: number | undefined;

  constructor(kind: ObjectStoreKind, folder: string, port: number, options: TestStoreOptions) {
    this.kind = kind;
    this.port = port;
    this.credentialsFile = join(folder, "credentials");
    this.#folder = folder;
    this.#options = options;
  }

  async make(): Promise<void> {
    await mkdir(join(this.#folder, "data", BUCKET), { recursive: true });
    await mkdir(join(this.#folder, "versions"));
    const lines = [`access_key_id = ${KEY.id}`, `secret_access_key = ${KEY.secret}`, ""];
    await writeFile(this.credentialsFile, lines.join("\n"), { mode: 0o600 });
  }

  async start(): Promise<void> {
    const program = programOf(this.kind);
    if (this.kind === "garage") await this.#configureGarage();
    if (program === undefined) throw new Error(`${this.kind} is not installed`);
    const child = spawn(program, this.#arguments(), {
      cwd: this.#folder,
      stdio: "ignore",
      env: {
        PATH: process.env["PATH"],
        HOME: this.#folder,
        ROOT_ACCESS_KEY: KEY.id,
        ROOT_SECRET_KEY: KEY.secret,
        MINIO_ROOT_USER: KEY.id,
        MINIO_ROOT_PASSWORD: KEY.secret,
        MINIO_BROWSER: "off",
        GARAGE_DEFAULT_ACCESS_KEY: KEY.id,
        GARAGE_DEFAULT_SECRET_KEY: KEY.secret,
        GARAGE_DEFAULT_BUCKET: BUCKET,
      },
    });
    this.#child = child;
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`${this.kind} ended with ${child.exitCode}`);
      return this.#answers();
    }, this.kind);
  }

  /** Ends it as a power cut would; the folder stays. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /** Writes Garage's settings: one node, which flushes what it acknowledges. */
  async #configureGarage(): Promise<void> {
    this.#rpcPort ??= await freePort();
    const lines = [
      `metadata_dir = "${join(this.#folder, "versions")}"`,
      `data_dir = "${join(this.#folder, "data")}"`,
      'db_engine = "sqlite"',
      "metadata_fsync = true",
      "data_fsync = true",
      "replication_factor = 1",
      `rpc_bind_addr = "127.0.0.1:${this.#rpcPort}"`,
      `rpc_secret = "${KEY.secret}"`,
      "[s3_api]",
      's3_region = "us-east-1"',
      `api_bind_addr = "127.0.0.1:${this.port}"`,
      "",
    ];
    await writeFile(join(this.#folder, "garage.toml"), lines.join("\n"), { mode: 0o600 });
  }

  #arguments(): string[] {
    const address = `127.0.0.1:${this.port}`;
    const data = join(this.#folder, "data");
    if (this.kind === "garage") {
      return ["-c", join(this.#folder, "garage.toml"), "server", "--single-node", "--default-bucket"];
    }
    if (this.kind === "minio") return ["server", "--quiet", "--address", address, data];
    const { tls, versions, domain } = this.#options;
    const secure = tls === undefined ? [] : ["--cert", tls.cert, "--key", tls.key];
    const versioned = versions === true ? ["--versioning-dir", join(this.#folder, "versions")] : [];
    const hosts = domain === undefined ? [] : ["--virtual-domain", domain];
    return ["--quiet", "--keep-alive", "--port", address, ...secure, ...hosts, "posix", ...versioned, data];
  }

  async #answers(): Promise<boolean> {
    if (this.#options.tls !== undefined) {
      const { connect } = await import("node:net");
      const socket = connect(this.port, "127.0.0.1");
      const { promise, resolve } = Promise.withResolvers<boolean>();
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
      return promise.finally(() => socket.destroy());
    }
    const path = this.kind === "minio" ? "/minio/health/ready" : "/";
    const answer = await fetch(`http://127.0.0.1:${this.port}${path}`).catch(() => undefined);
    await answer?.arrayBuffer();
    return this.kind === "minio" ? answer?.status === 200 : answer !== undefined;
  }
}

/** Options of a store. */
export interface TestStoreOptions {
  /** PEM files with which versitygw speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Lets versitygw keep versions, once a bucket is told to. */
  readonly versions?: boolean;
  /** Domain below which versitygw takes the bucket's name from the host. */
  readonly domain?: string;
}

/** Makes and starts a store; `cleanUp` receives its end. */
export async function startStore(
  kind: ObjectStoreKind,
  cleanUp: (end: () => Promise<void>) => void,
  options: TestStoreOptions = {},
): Promise<TestStore> {
  // Not in memory: versitygw keeps facts in attributes of files.
  const folder = await mkdtemp(join(diskFolder(), "grove-store-"));
  const store = new TestStore(kind, folder, await freePort(), options);
  cleanUp(async () => {
    await store.kill();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  await store.make();
  await store.start();
  return store;
}
