// Tests of messages for failed connections: plain against TLS, wrong authority, expired, other name.
import assert from "node:assert/strict";
import { createServer as createNetServer } from "node:net";
import { join } from "node:path";
import { before, test } from "node:test";
import { type Clock, ManualClock, systemClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { type ClientErrorCode, isClientError } from "#client/terminal/client-error.ts";
import { exitCodeOf } from "#client/terminal/exit-codes.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { createClient, GrpcChannel, type GrpcChannelOptions } from "#wire/grpc/client.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { explain } from "./error-text.ts";
import { refusalOf } from "./refusal.ts";

const folder = scratchFolder("connect-failure-");
let ours: Authority;
let theirs: Authority;
const make = (name: string, clock: Pick<Clock, "wallMs">): Promise<Authority> =>
  loadOrCreateAuthority(join(folder, name), { clock });
before(async () => {
  ours = await make("ours", systemClock);
  theirs = await make("theirs", systemClock);
});

/** The message that a client with these settings prints for a server with this certificate. */
async function told(
  server: { readonly authority: Authority; readonly addresses?: readonly string[] } | "plain",
  tls: GrpcChannelOptions["tls"],
): Promise<{ text: string; code: ClientErrorCode }> {
  const issued =
    server === "plain"
      ? undefined
      : await server.authority.issueNodeCertificate({
          id: "n",
          addresses: server.addresses ?? ["127.0.0.1"],
        });
  const grpc = new GrpcServer(
    issued === undefined ? {} : { tls: { cert: issued.certificatePem, key: issued.keyPem } },
  );
  const { port } = await grpc.listen({ host: "127.0.0.1", port: 0 });
  try {
    return await toldBy(`127.0.0.1:${port}`, tls);
  } finally {
    await grpc.close();
  }
}

async function toldBy(
  address: string,
  tls: GrpcChannelOptions["tls"],
): Promise<{ text: string; code: ClientErrorCode }> {
  const channel = new GrpcChannel({
    addresses: [address],
    limits: { connectMs: 2_000 },
    ...(tls === undefined ? {} : { tls }),
  });
  try {
    await createClient(Health, channel).check({});
    throw new Error("it connected");
  } catch (error) {
    const refusal = await refusalOf(error, address);
    assert.ok(isClientError(refusal), String(refusal));
    assert.equal(exitCodeOf(refusal), 7);
    const { what, todo } = explain(refusal);
    assert.ok(todo.length > 10, what);
    return { text: `${what} ${todo}`, code: refusal.code };
  } finally {
    channel.close();
  }
}

test("a plain client at a TLS server is told to name the authority, and the reverse to drop it", async () => {
  assert.match((await told({ authority: ours }, undefined)).text, /may expect TLS.*--ca FILE/s);
  const plain = await told("plain", { ca: ours.certificatePem });
  assert.match(plain.text, /does not speak TLS|closed the connection.*/);
  assert.match(plain.text, /--mock|--ca/);
  assert.equal(plain.code, "NETWORK");
});

test("a server of another authority is not trusted, and the client does not try again", async () => {
  for (const tls of [{ ca: ours.certificatePem }, {}]) {
    const { text, code } = await told({ authority: theirs }, tls);
    assert.match(text, /authority that is not trusted here.*--ca FILE.*do not go on/s);
    assert.equal(code, "SERVER_UNTRUSTED");
  }
});

test("an expired certificate, one that is not valid yet and one for other names are told apart", async () => {
  const old = await make("old", new ManualClock(Date.now() - 100 * DAY_MS));
  const next = await make("next", new ManualClock(Date.now() + 100 * DAY_MS));
  assert.match((await told({ authority: old }, { ca: old.certificatePem })).text, /has expired.*renew/s);
  assert.match((await told({ authority: next }, { ca: next.certificatePem })).text, /not valid yet.*clock/s);
  const other = await told({ authority: ours, addresses: [] }, { ca: ours.certificatePem });
  assert.match(other.text, /for other names.*-host NAME/s);
});

test("nothing that listens, and something that hangs up", async () => {
  const net = createNetServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => net.listen(0, "127.0.0.1", resolve));
  const address = net.address();
  assert.ok(typeof address === "object" && address !== null);
  const at = `127.0.0.1:${address.port}`;
  assert.match((await toldBy(at, undefined)).text, /closed the connection/);
  assert.match((await toldBy(at, { ca: ours.certificatePem })).text, /closed the connection/);
  await new Promise((resolve) => net.close(resolve));
  assert.match((await toldBy(at, undefined)).text, /nothing listens there/);
});
