// Honest clients during attacks of unproven callers: users of a FileServer, a node and the MetaServer, and
// nodes.
import { create, toBinary } from "@bufbuild/protobuf";
import type { Campaign } from "#prove/campaign.ts";
import { type Door, FrontCaller } from "#prove/front-caller.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import type { ChannelTls } from "#wire/grpc/transport.ts";
import { FileServer, RegisterClientRequestSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import type { HonestTask } from "./honest-side.ts";
import { FILES, META, SIEGE } from "./unproven-place.ts";
import type { UnprovenScene } from "./unproven-scene.ts";

const CALL_LIMIT_MS = 20_000;
/** A node's own timeout for a heartbeat. */
const HEARTBEAT_LIMIT_MS = 5_000;
const OFTEN_MS = 3;
const SELDOM_MS = 100;
/** In short strokes, of which megabytes would take the most processor time. */
const PACED_MEGABYTES_EVERY_MS = 300;
/** Interval of sign-ins with tokens new to the server: some seven a second, from many networks in turn. */
const SIGN_IN_EVERY_MS = 150;
const NETWORKS = 12;
/**
 * Attacks during which newcomers may be refused: before the first answer a newcomer is as unproven as the
 * attacker.
 */
const MEETS_NEWCOMERS: readonly string[] = [SIEGE, "handshakes", "refusals", "frames of no call"];
const USERS_TRIED = 40;
const MEGABYTE = 1_000_000;
const BIG = "/megabyte";

/** All honest tasks. */
export async function honestTasks(
  campaign: Campaign,
  scene: UnprovenScene,
  isPaced: boolean,
): Promise<HonestTask[]> {
  const channelTo = ({ port }: Door, tls?: ChannelTls): GrpcChannel => {
    const channel = new GrpcChannel({
      addresses: [`127.0.0.1:${port}`],
      ...(tls === undefined ? {} : { tls }),
    });
    campaign.atEnd(() => channel.close());
    return channel;
  };
  const roots = createClient(MetaServer, channelTo(scene.meta.door, scene.clientTls));
  const nodes = createClient(MetaServer, channelTo(scene.meta.door, scene.nodeTls));
  const reader = `Bearer ${scene.tokenOf("reader")}`;
  const home = await userOfNode(scene, roots);
  const plain = new Person(channelTo(scene.files.door), "mock-jwt.steady@example.com");
  const over = new Person(channelTo(scene.node.door, scene.clientTls), home);
  const bulky = new Person(channelTo(scene.files.door), "mock-jwt.bulky@example.com");
  for (const person of [plain, over, bulky]) await person.signIn();
  await bulky.calls.createFile({ path: BIG }, bulky.inTime());
  const data = Buffer.alloc(MEGABYTE, 7);
  return [
    {
      name: "GetAttr",
      everyMs: OFTEN_MS,
      isPaced: true,
      once: async () => void (await plain.calls.getAttr({ path: "/" }, plain.inTime())),
      renew: () => plain.signIn(),
    },
    {
      name: "GetAttr over TLS",
      everyMs: OFTEN_MS,
      isPaced: true,
      once: async () => void (await over.calls.getAttr({ path: "/" }, over.inTime())),
      renew: () => over.signIn(),
    },
    {
      name: "writes and reads of a megabyte",
      everyMs: isPaced ? PACED_MEGABYTES_EVERY_MS : SELDOM_MS,
      isPaced: false,
      async once() {
        await bulky.calls.writeFile({ path: BIG, data }, bulky.inTime());
        await bulky.calls.readFile({ path: BIG, length: MEGABYTE }, bulky.inTime());
      },
      renew: () => bulky.signIn(),
    },
    {
      name: "GetRoots",
      everyMs: SELDOM_MS,
      isPaced: false,
      once: async () => void (await roots.getRoots({}, inTime(reader))),
    },
    {
      name: "heartbeats",
      everyMs: SELDOM_MS,
      isPaced: false,
      // Heartbeat of a node that has not registered: the expected answer is that it is unknown.
      once: async () => void (await nodes.heartbeat({ fsId: "n3" }, { timeoutMs: HEARTBEAT_LIMIT_MS })),
    },
    newcomers(scene),
    signIns(scene),
  ];
}

/** A user who signs in again when necessary. */
class Person {
  readonly calls: Client<typeof FileServer>;
  readonly #idToken: string;
  #authorization = "";

  constructor(channel: GrpcChannel, idToken: string) {
    this.calls = createClient(FileServer, channel);
    this.#idToken = idToken;
  }

  async signIn(): Promise<void> {
    const metadata = { authorization: `Bearer ${this.#idToken}` };
    const { sessionToken } = await this.calls.registerClient({}, { metadata, waitForReady: true });
    this.#authorization = `Bearer ${sessionToken}`;
  }

  inTime(): CallOptions {
    return inTime(this.#authorization);
  }
}

const inTime = (authorization: string): CallOptions => ({
  metadata: { authorization },
  timeoutMs: CALL_LIMIT_MS,
});

/** Returns the token of a user whose root lives on the node that is attacked. */
async function userOfNode(scene: UnprovenScene, roots: Client<typeof MetaServer>): Promise<string> {
  for (let count = 0; count < USERS_TRIED; count++) {
    const idToken = scene.tokenOf(`steady${count}`);
    const { roots: found } = await roots.getRoots({}, inTime(`Bearer ${idToken}`));
    if (found[0]?.fsId === "n1") return idToken;
  }
  throw new Error("no root was placed on node n1");
}

/** New connections of a new user of the FileServer. */
function newcomers(scene: UnprovenScene): HonestTask {
  const request = toBinary(RegisterClientRequestSchema, create(RegisterClientRequestSchema));
  let count = 0;
  return {
    name: "new connections",
    everyMs: 2 * SIGN_IN_EVERY_MS,
    isPaced: false,
    mayFailIn: MEETS_NEWCOMERS,
    once: () =>
      visit(scene.files.door, addressOf(count), (caller) =>
        caller.call(`${FILES}RegisterClient`, request, { token: `mock-jwt.new${count++ % 50}@example.com` }),
      ),
  };
}

/** Sign-ins at the MetaServer with tokens that it must ask the provider about. */
function signIns(scene: UnprovenScene): HonestTask {
  let count = 0;
  return {
    name: "sign-ins",
    everyMs: SIGN_IN_EVERY_MS,
    isPaced: false,
    mayFailIn: MEETS_NEWCOMERS,
    once: () =>
      visit(scene.meta.door, addressOf(count), (caller) =>
        caller.call(`${META}GetRoots`, new Uint8Array(), { token: scene.tokenOf(`visitor${count++}`) }),
      ),
  };
}

/** An address of one of several networks, none of which attacks. */
const addressOf = (count: number): string => `127.77.${count % NETWORKS}.9`;

async function visit(
  door: Door,
  from: string,
  ask: (caller: FrontCaller) => ReturnType<FrontCaller["call"]>,
): Promise<void> {
  const caller = await FrontCaller.connect(door, from);
  try {
    const { code, reason } = await ask(caller);
    if (code !== 0) throw new Error(`status ${code}: ${reason}`);
  } finally {
    caller.close();
  }
}
