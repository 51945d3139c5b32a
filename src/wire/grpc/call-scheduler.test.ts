// Calls begin in turns, a few per connection, all connections equally; those with waiting calls are not read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { frame } from "#wire/framing/frames.ts";
import { DownloadRequestSchema, EchoService } from "#wire/framing/gen/echo_pb.ts";
import {
  CALLS_PER_TURN,
  CONNECTION_CALLS_PER_TURN,
  COSTLY_HEADERS,
  SHARED_CALLS_PER_TURN,
} from "#wire/framing/limits.ts";
import { type CallLane, CallScheduler, costOf } from "./call-scheduler.ts";
import { message, PATH, setUp, TIMEOUT, until } from "./hostile-lab.ts";
import { GrpcServer } from "./server.ts";

/** Calls in the order of their beginnings, each with its turn. */
class Trial {
  readonly turns = new CallScheduler();
  readonly begun: { lane: string; turn: number }[] = [];
  readonly paused = new Set<string>();
  #turn = 0;

  lane(name: string, isProven = true): CallLane {
    const pause = (): void => void this.paused.add(name);
    const resume = (): void => void this.paused.delete(name);
    return { pause, resume, isProven, waiting: [], cost: 0, turn: 0 };
  }

  call(name: string, lane: CallLane, cost = 1): void {
    const begin = (): void => void this.begun.push({ lane: name, turn: this.#turn });
    if (this.turns.mayBegin(lane, cost)) begin();
    else this.turns.wait(lane, cost, begin);
  }

  /** Runs the next turn of the event loop, with its calls. */
  async next(): Promise<void> {
    this.#turn++;
    await new Promise((resolve) => setImmediate(resolve));
  }

  inTurn(turn: number, name: string): number {
    return this.begun.filter((call) => call.turn === turn && call.lane === name).length;
  }
}

test("a connection begins a few calls in a turn, in their order, and is not read until none of them waits", async () => {
  const trial = new Trial();
  const lane = trial.lane("a");
  for (let i = 0; i < 2 * CONNECTION_CALLS_PER_TURN + 1; i++) trial.call("a", lane);
  assert.equal(trial.begun.length, CONNECTION_CALLS_PER_TURN);
  assert.ok(trial.paused.has("a"));
  // The share of the turn in which they came is used up.
  await trial.next();
  assert.equal(trial.begun.length, CONNECTION_CALLS_PER_TURN);
  await trial.next();
  assert.equal(trial.begun.length, 2 * CONNECTION_CALLS_PER_TURN);
  assert.ok(trial.paused.has("a"));
  await trial.next();
  assert.equal(trial.begun.length, 2 * CONNECTION_CALLS_PER_TURN + 1);
  assert.ok(!trial.paused.has("a"));
});

test("who has one call waits for nobody's hundred: connections take turns, and their sum is bounded", async () => {
  const trial = new Trial();
  const floods = Array.from({ length: 10 }, (_, at) => ({
    name: `flood-${at}`,
    lane: trial.lane(`flood-${at}`),
  }));
  for (const { name, lane } of floods) for (let i = 0; i < 100; i++) trial.call(name, lane);
  assert.ok(trial.begun.length <= CALLS_PER_TURN);
  const honest = trial.lane("honest");
  trial.call("honest", honest);
  await trial.next();
  assert.equal(trial.inTurn(1, "honest"), 1);
  await trial.next();
  const shares = floods.map(({ name }) => trial.inTurn(2, name));
  assert.ok(Math.max(...shares) - Math.min(...shares) <= 1, shares.join());
  assert.equal(trial.begun.filter(({ turn }) => turn === 2).length, SHARED_CALLS_PER_TURN);
  for (let turn = 0; turn < 60; turn++) await trial.next();
  assert.equal(trial.begun.length, 1_001);
  assert.equal(trial.paused.size, 0);
});

test("who waits has a turn, each time, while others come without end", async () => {
  const trial = new Trial();
  const waiting = trial.lane("waiting");
  for (let i = 0; i < 2 * CONNECTION_CALLS_PER_TURN; i++) trial.call("waiting", waiting);
  for (let turn = 0; turn < 4; turn++) {
    for (let i = 0; i < SHARED_CALLS_PER_TURN / 2; i++) trial.call("others", trial.lane(`${turn} ${i}`));
    await trial.next();
  }
  const direct = trial.inTurn(0, "waiting");
  const later = trial.begun.filter(({ lane, turn }) => lane === "waiting" && turn > 0);
  assert.equal(direct, CONNECTION_CALLS_PER_TURN);
  assert.ok(later.length >= 3, `${later.length} began later`);
});

test("who has proven nothing yet has a turn beside connections whose calls fill every one", async () => {
  const trial = new Trial();
  const busy = ["a", "b", "c"].map((name) => ({ name, lane: trial.lane(name) }));
  const fill = (): void => {
    for (const { name, lane } of busy)
      for (let i = lane.waiting.length; i < CALLS_PER_TURN; i++) trial.call(name, lane);
  };
  fill();
  const newcomer = trial.lane("newcomer", false);
  trial.call("newcomer", newcomer);
  trial.call("newcomer", newcomer);
  for (let turn = 0; turn < 3; turn++) {
    await trial.next();
    fill();
  }
  assert.equal(trial.begun.filter(({ lane }) => lane === "newcomer").length, 2);
});

test("a call of many headers counts as several", () => {
  const headers = (strings: number): string[] => Array.from({ length: strings }, () => "x");
  assert.equal(costOf(headers(0)), 1);
  assert.equal(costOf(headers(COSTLY_HEADERS - 2)), 1);
  assert.equal(costOf(headers(COSTLY_HEADERS)), 2);
  const trial = new Trial();
  const lane = trial.lane("a");
  for (let i = 0; i < CONNECTION_CALLS_PER_TURN; i++) trial.call("a", lane, 8);
  assert.equal(trial.begun.length, CONNECTION_CALLS_PER_TURN / 8);
});

test(
  "no turn of a server runs more calls of one connection than it may begin, and all are answered",
  TIMEOUT,
  async (t) => {
    const inTurns = new Map<number, number>();
    let turn = 0;
    const count = (): void => {
      turn++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    t.after(() => clearImmediate(counting));
    const server = new GrpcServer();
    server.addService(EchoService, {
      unary: {
        instant: () => {
          inTurns.set(turn, (inTurns.get(turn) ?? 0) + 1);
          return {};
        },
      },
    });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    t.after(() => server.close());
    const raw = await RawHttp2.connect(port);
    const calls = Array.from({ length: 98 }, (_, at) => [
      rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, at * 2 + 1, grpcHeaders(`${PATH}Unary`)),
      rawFrame(FrameType.DATA, FrameFlag.END_STREAM, at * 2 + 1, message(1)),
    ]);
    await raw.write(Buffer.concat(calls.flat()));
    for (let at = 0; at < 98; at++) {
      const ended = await raw.frame(
        ({ type, flags, streamId }) =>
          type === FrameType.HEADERS && streamId === at * 2 + 1 && (flags & FrameFlag.END_STREAM) !== 0,
      );
      assert.ok(ended !== undefined);
    }
    // Waiting calls may begin right before the next arrivals.
    const most = Math.max(...inTurns.values());
    assert.ok(most <= 2 * CONNECTION_CALLS_PER_TURN, `${most} calls in one turn`);
    raw.close();
  },
);

test("calls that are given up while they wait begin no more", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await RawHttp2.connect(lab.port);
  const cancel = Buffer.from([0, 0, 0, 8]);
  const frames = Array.from({ length: 95 }, (_, at) =>
    rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, at * 2 + 1, grpcHeaders(`${PATH}Collect`)),
  );
  const resets = frames.map((_, at) => rawFrame(FrameType.RST_STREAM, 0, at * 2 + 1, cancel));
  await raw.write(Buffer.concat([...frames, ...resets]));
  const late = rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, 401, grpcHeaders(`${PATH}Unary`));
  await raw.write(Buffer.concat([late, rawFrame(FrameType.DATA, FrameFlag.END_STREAM, 401, message(1))]));
  assert.ok(
    (await raw.frame(({ type, streamId }) => type === FrameType.DATA && streamId === 401)) !== undefined,
  );
  await until(() => lab.server.callCount() === 0);
  raw.close();
});

test(
  "a client that goes away while its downloads wait for their turns leaves nothing behind",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const raw = await RawHttp2.connect(lab.port);
    const size = 1_073_741_824n;
    const request = toBinary(
      DownloadRequestSchema,
      create(DownloadRequestSchema, { size, chunkBytes: 1_048_576 }),
    );
    const wide = rawFrame(FrameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff]));
    const window = rawFrame(FrameType.WINDOW_UPDATE, 0, 0, Buffer.from([0x7f, 0, 0, 0]));
    await raw.write(Buffer.concat([wide, window]));
    raw.stopReading();
    for (let at = 0; at < 20; at++) {
      const id = at * 2 + 1;
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}Download`));
      await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, frame(request, false));
    }
    await until(() => lab.server.callCount() === 20);
    raw.close();
    await until(() => lab.server.callCount() === 0);
    await lab.othersGoOn();
  },
);

test("requests of no bytes that end while they wait are answered like all others", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await RawHttp2.connect(lab.port);
  const ids = Array.from({ length: 2 * CONNECTION_CALLS_PER_TURN }, (_, at) => at * 2 + 1);
  const frames = ids.flatMap((id, at) => [
    rawFrame(
      FrameType.HEADERS,
      FrameFlag.END_HEADERS,
      id,
      grpcHeaders(`${PATH}${at % 2 === 0 ? "Unary" : "Collect"}`),
    ),
    rawFrame(FrameType.DATA, FrameFlag.END_STREAM, id, Buffer.alloc(0)),
  ]);
  await raw.write(Buffer.concat(frames));
  for (const id of ids) {
    const ended = await raw.frame(
      ({ type, flags, streamId }) =>
        type === FrameType.HEADERS && streamId === id && (flags & FrameFlag.END_STREAM) !== 0,
    );
    assert.ok(ended !== undefined, `stream ${id} has no status`);
  }
  raw.close();
});
