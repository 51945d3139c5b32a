// Calls of a loop that wait for their turn in the main thread: their requests, and their end, come before it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turnEnd } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { systemClock } from "#base/clock.ts";
import { EchoRequestSchema, EchoService } from "#wire/framing/gen/echo_pb.ts";
import { DEFAULT_SERVER_LIMITS } from "#wire/framing/limits.ts";
import { messageBytes, SharedBudget } from "#wire/framing/shared-budget.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { CallPlaces, type PlacedCall, type Places } from "#wire/grpc/call-places.ts";
import { CallScheduler } from "#wire/grpc/call-scheduler.ts";
import { Doorkeeper } from "#wire/grpc/doorkeeper.ts";
import { echoHandlers } from "#wire/grpc/echo-service.ts";
import { type ServedMethod, serveAll } from "#wire/grpc/served-method.ts";
import { UnprovenLoad } from "#wire/grpc/unproven-load.ts";
import { BatchedPort } from "./batched-port.ts";
import { LoopLink, type RemoteConnection } from "./loop-link.ts";
import type { ToLoop } from "./loop-messages.ts";
import { packStatus } from "./packed-status.ts";

/** More than one connection may begin in a turn. */
const CALLS = 100;
const PATH = `/${EchoService.typeName}/Unary`;

function setUp({
  calls = CALLS,
  places = new CallPlaces(DEFAULT_SERVER_LIMITS),
}: {
  calls?: number;
  places?: Places;
} = {}) {
  const limits = DEFAULT_SERVER_LIMITS;
  let begun = 0;
  const methods = new Map<string, ServedMethod>();
  serveAll(methods, EchoService, echoHandlers(), {}, limits);
  const load = new UnprovenLoad(systemClock);
  const toStatus = (error: unknown) => error as StatusError;
  const sent: ToLoop[] = [];
  const link = new LoopLink(
    {
      gate: { judge: () => ({ kind: "user", party: "ada" }), refused: () => [], isNode: () => false },
      door: new Doorkeeper<RemoteConnection>({
        limits,
        clock: systemClock,
        isGated: true,
        isEncrypted: false,
        load,
      }),
      load,
      turns: new CallScheduler(),
      methods,
      callDeps: {
        limits,
        interceptors: [
          (_context, next) => {
            begun++;
            return next();
          },
        ],
        toStatus,
        places,
        replyBytes: new SharedBudget(messageBytes(limits.heldReplyBytes)),
      },
      toStatus,
      turnedAway: { add: () => undefined },
    },
    new BatchedPort<ToLoop>({ postMessage: (batch) => sent.push(...(batch as ToLoop[])) }),
  );
  link.take({ op: "open", connection: 1, key: "k", address: "192.0.2.1", unasked: 0 });
  for (let call = 1; call <= calls; call++) {
    const judge = {
      op: "judge",
      call,
      connection: 1,
      path: PATH,
      timeoutMs: undefined,
      headers: [],
    } as const;
    link.take({ ...judge, isAssumed: true, body: undefined });
  }
  const answers = () => sent.flatMap((message) => (message.op === "answer" ? [message] : []));
  return { link, answers, begunCalls: () => begun };
}

test("every call is answered whose request comes while it waits for its turn", async () => {
  const { link, answers } = setUp();
  const body = toBinary(EchoRequestSchema, create(EchoRequestSchema, { text: "hello" }));
  for (let call = 1; call <= CALLS; call++) link.take({ op: "request", call, body });
  while (answers().length < CALLS) await turnEnd();
  assert.ok(answers().every(({ status }) => status === undefined));
  for (let call = 1; call <= CALLS; call++) link.gone(call);
  assert.equal(link.callCount, 0);
});

test("a call whose half in the loop has ended while it waits for its turn takes no place", async () => {
  const { link, begunCalls } = setUp();
  assert.ok(link.callCount < CALLS);
  for (let call = 1; call <= CALLS; call++) link.gone(call);
  for (let turn = 0; turn < 10; turn++) await turnEnd();
  assert.equal(link.callCount, 0);
  assert.equal(begunCalls(), 0);
});

test("the request of a call that has given way to another meanwhile runs no handler", async () => {
  const placed: PlacedCall[] = [];
  const nothing = (): void => undefined;
  const places = { expect: (call: PlacedCall) => placed.push(call), begin: nothing, leave: nothing };
  const { link, answers, begunCalls } = setUp({ calls: 1, places });
  placed[0]?.cancel(new StatusError(Code.RESOURCE_EXHAUSTED, "another call needs the place"));
  const body = toBinary(EchoRequestSchema, create(EchoRequestSchema, { text: "hello" }));
  link.take({ op: "request", call: 1, body });
  // The loop's half may wait for an answer already.
  while (answers().length < 1) await turnEnd();
  link.gone(1);
  assert.equal(begunCalls(), 0);
  assert.equal(link.callCount, 0);
});

test("a call that is given up while it waits for its turn is answered, and takes no place", async () => {
  const { link, answers } = setUp();
  const status = packStatus(new StatusError(Code.CANCELLED, "the client went away"));
  for (let call = 1; call <= CALLS; call++) {
    link.take({ op: "cancel", call, status });
    link.gone(call);
  }
  for (let turn = 0; turn < 10; turn++) await turnEnd();
  assert.equal(link.callCount, 0);
  // Those that had begun without their request have nothing to answer.
  const given = answers().filter((answer) => answer.status?.code === Code.CANCELLED);
  assert.ok(given.length > 0 && given.length < CALLS);
});
