// Honest cancelling: a nearby client that gives up many calls and opens others at the same moment is served.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { hurriedClock } from "#testing/hurried-clock.ts";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { DEFAULT_SERVER_LIMITS, RESETS_PER_SECOND, STREAMS_PER_PLACE } from "#wire/framing/limits.ts";
import { MIB, message, PATH, setUp, TIMEOUT, until } from "./hostile-lab.ts";

const PLACES = DEFAULT_SERVER_LIMITS.maxConcurrentStreams;
const CANCEL = Buffer.from([0, 0, 0, 8]);

const opened = (index: number, method = "Collect"): Buffer =>
  rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, 2 * index + 1, grpcHeaders(PATH + method));
const givenUp = (index: number): Buffer => rawFrame(FrameType.RST_STREAM, 0, 2 * index + 1, CANCEL);
const many = (from: number, count: number, make: (index: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, at) => make(from + at)));

/** Streams that the server has reset. */
const refused = (raw: RawHttp2): number =>
  raw.frames.filter(({ type }) => type === FrameType.RST_STREAM || type === FrameType.GOAWAY).length;

test(
  "all calls of a connection may be given up and made anew in one write, again and again",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const raw = await RawHttp2.connect(lab.port);
    await raw.write(many(0, PLACES, opened));
    await until(() => lab.server.callCount() === PLACES);
    for (let round = 0; round < 4; round++) {
      await raw.write(
        Buffer.concat([many(round * PLACES, PLACES, givenUp), many((round + 1) * PLACES, PLACES, opened)]),
      );
      // Streams of the next write are seen in another turn of the loop.
      await raw.send(FrameType.PING, 0, 0, Buffer.alloc(8, round + 1));
      await raw.frame(({ type, payload }) => type === FrameType.PING && payload[0] === round + 1);
      await until(() => lab.server.callCount() === PLACES || refused(raw) > 0);
      assert.equal(refused(raw), 0);
    }
    raw.close();
    await until(() => lab.server.callCount() === 0);
  },
);

test("a client that keeps giving up calls at the rate that is allowed is served on", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await RawHttp2.connect(lab.port);
  const inStep = Math.floor((RESETS_PER_SECOND * 0.9) / 20);
  for (let step = 0; step < 60; step++) {
    await raw.write(
      Buffer.concat([many(step * inStep, inStep, opened), many(step * inStep, inStep, givenUp)]),
    );
    await delay(50);
  }
  assert.equal(raw.isClosed, false);
  assert.equal(refused(raw), 0);
  raw.close();
});

test(
  "above its places a connection's calls wait on the server, in their order, and bodies that wait are no flood",
  TIMEOUT,
  async (t) => {
    const places = 3;
    const lab = await setUp(t, { maxConcurrentStreams: places }, hurriedClock(10));
    const raw = await RawHttp2.connect(lab.port);
    const count = places * STREAMS_PER_PLACE;
    await raw.write(many(0, count, opened));
    await until(() => lab.server.callCount() === places);
    const body = message(MIB / 2);
    for (let index = places; index < count; index++) {
      for (let at = 0; at < body.length; at += 16_384) {
        await raw.send(FrameType.DATA, 0, 2 * index + 1, body.subarray(at, at + 16_384));
      }
    }
    // Longer than the interval of the flood watch.
    await delay(400);
    assert.equal(raw.isClosed, false);
    assert.equal(lab.server.callCount(), places);
    // A waiting stream may be given up too; the next ones take their turns.
    await raw.write(givenUp(places));
    const end = (index: number): Promise<void> =>
      raw.send(FrameType.DATA, FrameFlag.END_STREAM, 2 * index + 1, Buffer.alloc(0));
    const answered = (index: number): boolean =>
      raw.frames.some(
        ({ type, streamId, flags }) =>
          type === FrameType.HEADERS && streamId === 2 * index + 1 && (flags & FrameFlag.END_STREAM) !== 0,
      );
    await end(places + 1);
    await end(0);
    await until(() => answered(0) && answered(places + 1));
    assert.equal(answered(places + 2), false);
    for (const index of [1, 2, places + 2]) await end(index);
    await until(() => answered(1) && answered(2) && answered(places + 2));
    await until(() => lab.server.callCount() === 0);
    assert.equal(refused(raw), 0);
    raw.close();
  },
);
