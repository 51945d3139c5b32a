// A cluster over real TLS with an authority, two FileServers and doors, for tests of who doors speak for.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { ManualClock } from "#base/clock.ts";
import { PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import { createPeople, type Person } from "#door/people/people.ts";
import { startTestNode, type TestNode } from "#fileserver/process/node.fixture.ts";
import { type Cluster, startCluster } from "#metaserver/process/enrolment.fixture.ts";
import { until } from "#testing/until.ts";
import { StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel, type GrpcChannelOptions } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

type Tls = NonNullable<GrpcChannelOptions["tls"]>;

/** The network of the people in these tests. */
export const AT = "198.51.100.7";
/** Metadata that tells it. */
export const FROM: { readonly [PERSON_ADDRESS_HEADER]: string } = { [PERSON_ADDRESS_HEADER]: AT };

/** A door, with clients over its certificate. */
export interface TestDoor {
  readonly tls: Tls;
  readonly meta: ReturnType<typeof metaClient>;
  /** Of the node "n1", or another. */
  files(node?: TestNode): ReturnType<typeof filesClient>;
  person(appPassword: string): Promise<Person>;
}

/** The cluster. */
export interface DoorsUnderTest {
  readonly cluster: Cluster;
  readonly clock: ManualClock;
  readonly n1: TestNode;
  readonly n2: TestNode;
  door(id: string): Promise<TestDoor>;
  /** A client with a certificate or none. */
  files(tls: Tls): ReturnType<typeof filesClient>;
  /** Options of a call with an ID token of now. */
  signedIn(email: string): CallOptions;
  password(email: string, wish?: object): Promise<string>;
  /** Lines of a node's audit log with a text, once there are so many. */
  audited(node: TestNode, act: string, count: number): Promise<readonly string[]>;
}

const metaClient = (channel: GrpcChannel) => createClient(MetaServer, channel);
const filesClient = (channel: GrpcChannel) => createClient(FileServer, channel);

/** Starts it. */
export async function startDoors(t: TestContext): Promise<DoorsUnderTest> {
  const cluster = await startCluster(t, { takesMockTokens: true });
  const { clock, authority, port } = cluster;
  const ca = authority.certificatePem;
  const channels: GrpcChannel[] = [];
  const channel = (address: string, tls: Tls): GrpcChannel => {
    const made = new GrpcChannel({ addresses: [address], tls });
    channels.push(made);
    return made;
  };
  const startNode = async (id: string): Promise<TestNode> => {
    const issued = await authority.issueNodeCertificate({
      id,
      names: ["localhost"],
      addresses: ["127.0.0.1"],
    });
    const node = await startTestNode({
      clock,
      options: {
        id,
        name: id,
        // The port that was taken may be too low for a registered one; these tests know the way.
        advertise: `${id}.example.net:50051`,
        metaservers: [`127.0.0.1:${port}`],
        tls: { cert: issued.certificatePem, key: issued.keyPem, ca },
      },
    });
    t.after(() => node.stop());
    return node;
  };
  t.after(() => {
    for (const made of channels) made.close();
  });
  const n1 = await startNode("n1");
  const n2 = await startNode("n2");
  await until(async () => {
    if ((await cluster.directory.nodes()).length === 2) return true;
    clock.advance(1_000);
    return false;
  }, "the nodes' registration");
  const user = metaClient(channel(`127.0.0.1:${port}`, { ca }));
  const signedIn: DoorsUnderTest["signedIn"] = (email) => {
    const iat = Math.floor(clock.wallMs() / 1_000);
    const claims = { email, iss: "https://idp.example", sub: `s-${email}`, iat };
    const token = Buffer.from(JSON.stringify(claims)).toString("base64url");
    return { metadata: { authorization: `Bearer mock-jwt.${token}` } };
  };
  return {
    cluster,
    clock,
    n1,
    n2,
    signedIn,
    files: (tls) => filesClient(channel(n1.address, tls)),
    async door(id) {
      const issued = await authority.issueDoorCertificate(id);
      const tls = { ca, cert: issued.certificatePem, key: issued.keyPem };
      const meta = metaClient(channel(`127.0.0.1:${port}`, tls));
      const people = createPeople({ metaServer: meta, clock });
      return {
        tls,
        meta,
        files: (node = n1) => filesClient(channel(node.address, tls)),
        person: (appPassword) => people.identify(appPassword, AT),
      };
    },
    password: async (email, wish = {}) =>
      (await user.createAppPassword({ name: "laptop", ...wish }, signedIn(email))).password,
    audited: ({ dataFolder }, act, count) =>
      until(async () => {
        clock.advance(1_000);
        const folder = join(dataFolder, "audit");
        const names = (await readdir(folder)).filter((name) => name.endsWith(".log")).toSorted();
        const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
        const lines = texts.join("").split("\n");
        const found = lines.filter((line) => line.includes(act));
        return found.length >= count ? found : undefined;
      }, `${count} audit lines of ${act}`),
  };
}

/** Options of a call with a session's token, as a door makes it. */
export function session(token: string): CallOptions {
  return { metadata: { authorization: `Bearer ${token}`, ...FROM } };
}

/** Asserts that something is there. */
export function present<T>(value: T | undefined): T {
  assert.ok(value !== undefined);
  return value;
}

/** The reason of a refusal, or "OK" where there was none. */
export async function reasonOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "OK";
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error));
    return error.metadata.get("svc-reason") ?? error.message;
  }
}

/** The ID token by which a person opens a session of a browser. */
export function idTokenOf(doors: Pick<DoorsUnderTest, "signedIn">, email: string): string {
  const { authorization = "" } = (doors.signedIn(email).metadata ?? {}) as Record<string, string>;
  return authorization.replace("Bearer ", "");
}
