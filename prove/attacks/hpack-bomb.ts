// Headers that are small on the wire and unpack to more than any call may bring: counts how many a server
// unpacks for one connection.
import { setTimeout as sleep } from "node:timers/promises";
import { FrameFlag, FrameType, hpack, type RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { flood, headersFor, type Kind, open, streamId, times } from "./flood.ts";

const BOMBS = 10;
/**
 * Most that may be unpacked for one connection, at once and per second; without the limit it is thousands.
 */
const UNPACKED_MAX = 1_500;
const UNPACKED_PER_SECOND = 350;
const COUNTED_WITHIN_MS = 10_000;

/**
 * One large entry in the table, and thousands of one-byte references to it. The first connection is counted
 * until its end.
 */
export const hpackBomb: Kind = async (place) => {
  const entry = Buffer.concat([Buffer.from([0x40]), hpack([["x", "a".repeat(3_900)]]).subarray(1)]);
  const block = Buffer.concat([headersFor(place, "GetAttr"), Buffer.alloc(4_000, 0x80 | 62)]);
  const begin = (raw: RawHttp2): Promise<void> =>
    raw.send(
      FrameType.HEADERS,
      FrameFlag.END_HEADERS,
      1,
      Buffer.concat([headersFor(place, "GetAttr"), entry]),
    );
  const volley = (turn: number): Buffer =>
    times(BOMBS, (at) => rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, streamId(turn, at) + 2, block));
  const raw = await open(place);
  const startedMs = performance.now();
  const unpackedMax = (): number =>
    UNPACKED_MAX + (UNPACKED_PER_SECOND * (performance.now() - startedMs)) / 1_000;
  await begin(raw);
  let unpacked = 0;
  for (let turn = 0; !raw.isClosed && performance.now() < startedMs + COUNTED_WITHIN_MS; turn++) {
    await Promise.race([raw.write(volley(turn)), sleep(1_000)]);
    await sleep(0);
    // The end of its stream answers each.
    unpacked += raw.frames.filter(({ type }) => type === FrameType.RST_STREAM).length;
    raw.frames.length = 0;
    if (unpacked > unpackedMax()) break;
  }
  const isEnded = raw.isClosed;
  raw.close();
  if (!isEnded)
    return {
      strokes: unpacked,
      complaint: `${unpacked} headers too large for any call were unpacked for one connection, and it was left alone`,
    };
  const { strokes } = await flood(place, begin, volley);
  return { strokes: strokes + unpacked };
};
