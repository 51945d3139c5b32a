// Users of the partitioned cluster, in a process whose times are scaled like the servers': they work without
// a pause and answer the rig's questions.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { systemRandom } from "#base/random.ts";
import { Cluster, LONG, SHORT } from "#client/connection/cluster.ts";
import { IdentityHolder } from "#client/connection/identity-holder.ts";
import { RouteCache } from "#client/connection/route-cache.ts";
import { Router } from "#client/connection/routing.ts";
import { SessionCache } from "#client/connection/session-cache.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

const PATIENCE_MS = 20_000;
/** Pause between two files of one user. */
const PAUSE_MS = 1_500;
const NAVIGATE_LIMIT_MS = 4_000;
const SIZES = [100, 3_000, 90_000];

const [folder = "", metaservers = "", emails = ""] = process.argv.slice(2);

/** A file's content follows from its owner and path, so that only acknowledgements have to be remembered. */
function contentOf(email: string, path: string): Buffer {
  const seed = createHash("sha256").update(`${email} ${path}`).digest();
  const length = SIZES[(seed[0] ?? 0) % SIZES.length] ?? 0;
  return Buffer.alloc(length, seed);
}

class User {
  readonly email: string;
  readonly #cluster: Cluster;
  readonly acknowledged: string[] = [];
  #made = 0;
  unknown = 0;
  isOn = true;

  constructor(email: string) {
    this.email = email;
    const own = join(folder, email);
    const sessions = new SessionCache(join(own, "credentials"));
    const identity = new IdentityHolder(sessions, systemClock);
    identity.hold({ username: email, idToken: `mock-jwt.${email}`, expiresAtMs: undefined });
    const profile = {
      metaservers: metaservers.split(","),
      ca: undefined,
      mock: true,
      idp: undefined,
      fileserver: undefined,
    };
    const { signal } = new AbortController();
    const cache = new RouteCache(join(own, "routes.json"), systemClock);
    this.#cluster = new Cluster({
      profile,
      identity,
      sessions,
      router: new Router({ profile, identity, cache, signal }),
      signal,
      random: systemRandom,
      installationId: () => Promise.resolve("partitions"),
      clock: systemClock,
      patienceMs: PATIENCE_MS,
    });
  }

  /** Writes one file after the other. */
  async work(): Promise<void> {
    while (this.isOn) {
      await this.write();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async write(): Promise<boolean> {
    const path = `/f${this.#made++}`;
    const bytes = contentOf(this.email, path);
    try {
      await this.#cluster.run("", LONG, (server) =>
        server.files.uploadFile(parts(path, bytes), { ...server.stream, timeoutMs: PATIENCE_MS }),
      );
      this.acknowledged.push(path);
      return true;
    } catch {
      this.unknown++;
      return false;
    }
  }

  /** Returns whether the file has its acknowledged content; undefined without an answer. */
  async check(path: string): Promise<boolean | undefined> {
    try {
      const got: Uint8Array[] = [];
      await this.#cluster.run("", SHORT, async ({ files, stream }) => {
        got.length = 0;
        for await (const { part } of files.downloadFile({ path }, { ...stream, timeoutMs: PATIENCE_MS }))
          if (part.case === "chunk") got.push(part.value.data);
      });
      return Buffer.compare(Buffer.concat(got), contentOf(this.email, path)) === 0;
    } catch (error) {
      return isGroveError(error, "NO_SUCH_PATH") ? false : undefined;
    }
  }

  async share(user: string, isOn: boolean): Promise<boolean> {
    try {
      await this.#cluster.run("", SHORT, async ({ files, unary }) => {
        if (isOn) await files.share({ path: "/", user }, unary);
        else await files.unshare({ path: "/", user }, unary);
      });
      return true;
    } catch {
      return false;
    }
  }
}

async function* parts(path: string, bytes: Buffer): AsyncGenerator<object> {
  yield { part: { case: "header", value: { path, size: BigInt(bytes.length), sizeKnown: true } } };
  yield { part: { case: "chunk", value: { offset: 0n, data: bytes } } };
}

/** Returns whether a MetaServer says where this user's root lives, over a new connection. */
async function canNavigate(address: string, email: string): Promise<boolean> {
  const channel = new GrpcChannel({ addresses: [address] });
  try {
    const reply = await createClient(MetaServer, channel).navigate(
      { path: "/" },
      { metadata: { authorization: `Bearer mock-jwt.${email}` }, timeoutMs: NAVIGATE_LIMIT_MS },
    );
    return reply.address !== "";
  } catch {
    return false;
  } finally {
    channel.close();
  }
}

const users = emails.split(",").map((email) => new User(email));

interface Asked {
  readonly ask: "begin" | "probe" | "share" | "verify" | "counts";
  readonly from?: number;
  readonly to?: number;
  readonly isOn?: boolean;
}

async function answer({ ask, from = 0, to = 0, isOn = false }: Asked): Promise<unknown> {
  if (ask === "begin") {
    const made = await Promise.all(users.map((user) => user.write()));
    if (!made.every(Boolean)) return false;
    for (const user of users) void user.work();
    return true;
  }
  if (ask === "probe") {
    const routes = users.flatMap(({ email }) => metaservers.split(",").map((at) => canNavigate(at, email)));
    const all = await Promise.all([...routes, ...users.map((user) => user.write())]);
    return all.every(Boolean);
  }
  if (ask === "share") return users[from]?.share(users[to]?.email ?? "", isOn);
  if (ask === "verify") {
    const wrong: string[] = [];
    for (const user of users) {
      user.isOn = false;
      for (const path of user.acknowledged)
        if ((await user.check(path)) !== true) wrong.push(`${path} of ${user.email}`);
    }
    return wrong;
  }
  return {
    acknowledged: users.reduce((sum, user) => sum + user.acknowledged.length, 0),
    unknown: users.reduce((sum, user) => sum + user.unknown, 0),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as Asked & { readonly id: number };
  void answer(asked).then((value) =>
    process.stdout.write(`${JSON.stringify({ id: asked.id, value: value ?? null })}\n`),
  );
}
process.exit(0);
