// One numbered stream of live messages with its last events for clients that reconnect (decision D8).
import type { Clock } from "#base/clock.ts";
import { stringify64 } from "#base/json64.ts";

/** Events of a stream that are kept for reconnecting clients. */
const LIVE_REPLAY_EVENTS = 1_000;
/** The same in bytes; below the buffer of a reader, so that a replay closes no socket. */
const LIVE_REPLAY_BYTES = 524_288;

/** The end of an envelope. */
const CLOSING_BRACE = Buffer.from("}");

/** A message of a topic, with the topic's own number. */
export interface TopicMessage {
  readonly type: string;
  readonly seq: number;
  readonly data: object;
}

/** A message as sent, made once for all readers. `data` is an object, or its JSON. */
function liveMessage(
  type: string,
  place: { readonly seq: number; readonly wallMs: number },
  data: object | Buffer,
): Buffer {
  const head = `{"v":1,"type":${JSON.stringify(type)},"seq":${place.seq},"ts":${place.wallMs / 1000},"data":`;
  if (Buffer.isBuffer(data)) return Buffer.concat([Buffer.from(head), data, CLOSING_BRACE]);
  return Buffer.from(`${head}${stringify64(data)}}`);
}

interface StoredMessage {
  readonly seq: number;
  readonly message: Buffer;
}

/**
 * A stream. Its numbers begin at the wall clock's milliseconds, so those of a restarted console are higher
 * than all before. A client that returns with an old number sees that events are missing.
 */
export class LiveStream {
  readonly #clock: Clock;
  readonly #kept: StoredMessage[] = [];
  #keptBytes = 0;
  #newest: number;
  #completeFrom: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#newest = Math.trunc(clock.wallMs());
    this.#completeFrom = this.#newest;
  }

  /** Number of the newest message. */
  get newest(): number {
    return this.#newest;
  }

  /** The lowest number after which every event is still kept. */
  get completeFrom(): number {
    return this.#completeFrom;
  }

  /** Makes the next message and keeps it for reconnecting clients. */
  event(type: string, data: object): Buffer {
    const message = this.passing(type, data);
    this.#kept.push({ seq: this.#newest, message });
    this.#keptBytes += message.length;
    while (this.#kept.length > LIVE_REPLAY_EVENTS || this.#keptBytes > LIVE_REPLAY_BYTES) {
      const oldest = this.#kept.shift();
      if (oldest === undefined) break;
      this.#keptBytes -= oldest.message.length;
      this.#completeFrom = oldest.seq;
    }
    return message;
  }

  /** Makes the next message without keeping it. `data` is an object, or its JSON. */
  passing(type: string, data: object | Buffer): Buffer {
    this.#newest++;
    return this.beside(type, data);
  }

  /** Makes a message to one socket beside the stream: it carries the newest number and takes none. */
  beside(type: string, data: object | Buffer): Buffer {
    return liveMessage(type, { seq: this.#newest, wallMs: this.#clock.wallMs() }, data);
  }

  /** Makes a message of a topic that is followed here. */
  ofTopic({ type, seq, data }: TopicMessage): Buffer {
    return liveMessage(type, { seq, wallMs: this.#clock.wallMs() }, data);
  }

  /** The kept events after one number, up to another. */
  between(afterSeq: number, upToSeq: number): Buffer[] {
    return this.#kept.filter(({ seq }) => seq > afterSeq && seq <= upToSeq).map(({ message }) => message);
  }
}
