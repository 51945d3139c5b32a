// Tests of a body that is read part by part: how much of it waits, and when its reader is woken.
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { BodyReader } from "./body-reader.ts";
import type { DoorRequest } from "./request-target.ts";

/** A request whose parts come when the test says so, as those of a socket do. */
class SentRequest extends EventEmitter {
  readonly readableEnded = false;
  readonly destroyed = false;
  isFlowing = true;

  pause(): void {
    this.isFlowing = false;
  }

  resume(): void {
    this.isFlowing = true;
  }

  /** Sends parts while they are taken; answers how many. */
  send(part: Uint8Array, times: number): number {
    let sent = 0;
    while (sent < times && this.isFlowing) {
      this.emit("data", part);
      sent++;
    }
    return sent;
  }
}

function reading(): { readonly request: SentRequest; readonly body: BodyReader; arrived: number } {
  const request = new SentRequest();
  const read = { request, arrived: 0, body: undefined as unknown as BodyReader };
  read.body = new BodyReader(request as unknown as DoorRequest, (bytes) => {
    read.arrived += bytes;
  });
  return read;
}

test("of a body in chunks of one byte about a thousand wait, and its reader goes on after half of them", async () => {
  const { request, body } = reading();
  const first = body.next();
  request.send(Buffer.of(1), 600);
  assert.equal((await first)?.length, 1);
  const sent = request.send(Buffer.of(1), 1_000_000);
  assert.ok(sent > 100 && sent < 1_000, `${sent}`);
  while (body.taken() !== undefined);
  assert.equal(request.isFlowing, true);
});

test("of a body in parts of 64 KiB four wait, and its reader is woken by every second one or the end", async () => {
  const read = reading();
  const { request, body } = read;
  let isWoken = false;
  const first = body.next().finally(() => {
    isWoken = true;
  });
  request.send(Buffer.alloc(65_536), 1);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isWoken, false);
  assert.equal(request.send(Buffer.alloc(65_536), 9), 3);
  assert.equal((await first)?.length, 65_536);
  assert.equal(read.arrived, 4 * 65_536);
  while (body.taken() !== undefined);
  const last = body.next();
  request.send(Buffer.alloc(10), 1);
  request.emit("end");
  assert.equal((await last)?.length, 10);
  assert.equal(await body.next(), undefined);
});
