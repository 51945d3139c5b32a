// Large requests count while their handlers run: a client cannot pile them up before a busy disk.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { frame, MessageBudget } from "#wire/framing/frames.ts";
import { EchoService, UploadRequestSchema } from "#wire/framing/gen/echo_pb.ts";
import { Decompressor } from "#wire/framing/gzip.ts";
import { MessageInbox } from "#wire/framing/inbox.ts";
import { DEFAULT_SERVER_LIMITS } from "#wire/framing/limits.ts";
import { PartyBytes, SharedBudget } from "#wire/framing/shared-budget.ts";
import { UnfoldedRoom } from "#wire/framing/unfolded-room.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { MIB, TIMEOUT, until } from "./hostile-lab.ts";
import { GrpcServer } from "./server.ts";
import { FIELD } from "./sliced.fixture.ts";
import { SlicedInbox } from "./sliced.ts";

/** Half of these are one user's: two of the requests below. */
const LIMITS = { heldRequestBytes: 16 * MIB };
const small = new Uint8Array(60_000);
const data = new Uint8Array(3.9 * MIB);

for (const compress of [false, true]) {
  const kind = compress ? "unfolded" : "large";
  test(`${kind} requests wait for room while others are worked on`, TIMEOUT, async (t) => {
    const begun: (() => void)[] = [];
    const server = new GrpcServer({ limits: LIMITS });
    server.addService(EchoService, {
      unary: async (request) => {
        if (request.data.length <= small.length) return {};
        await new Promise<void>((resolve) => begun.push(resolve));
        return {};
      },
    });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
    t.after(async () => {
      channel.close();
      await server.close();
    });
    const client = createClient(EchoService, channel);
    const end = new AbortController();
    const calls = Array.from({ length: 5 }, () => client.unary({ data }, { compress }));
    const givenUp = client.unary({ data }, { compress, signal: end.signal }).catch(() => "given up");
    await until(() => begun.length === 2);
    await until(() => server.callCount() === 6);
    // Small ones go on, and take the time in which others would begin.
    for (let at = 0; at < 150; at++) await client.unary({ data: small }, { compress: true });
    assert.equal(begun.length, 2);
    end.abort();
    assert.equal(await givenUp, "given up");
    for (let ended = 0; ended < 5; ended++) {
      await until(() => begun.length > ended);
      begun[ended]?.();
    }
    await Promise.all(calls);
    assert.equal(begun.length, 5);
  });
}

test("a stream that waits for its next message holds no room for the last one", async () => {
  const body = toBinary(
    UploadRequestSchema,
    create(UploadRequestSchema, { part: { case: "chunk", value: { offset: 0n, data } } }),
  );
  const message = frame(gzipSync(body), true);
  const budget = new SharedBudget({ total: 16 * MIB, perParty: 16 * MIB, spare: 0, modest: 16 * MIB });
  const deps = () => ({
    stream: { pause: () => undefined, resume: () => undefined },
    limits: DEFAULT_SERVER_LIMITS,
    budget: new MessageBudget(128 * MIB),
    unfolder: new Decompressor(DEFAULT_SERVER_LIMITS),
    room: new UnfoldedRoom(new PartyBytes(budget, "ada")),
    encoding: "gzip",
  });
  for (const inbox of [
    new MessageInbox(UploadRequestSchema, deps()),
    new SlicedInbox(UploadRequestSchema, FIELD, deps()),
  ]) {
    inbox.push(message);
    assert.notEqual(await inbox.next(), null);
    assert(budget.used > data.length);
    const next = inbox.next();
    assert.equal(budget.used, 0);
    inbox.end();
    assert.equal(await next, null);
  }
});
