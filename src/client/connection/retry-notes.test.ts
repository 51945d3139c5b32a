// Tests of the notes about retries.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import type { Terminal } from "#client/terminal/terminal.ts";
import { RetryNotes } from "./retry-notes.ts";

function caught(isTTY: boolean): { terminal: Terminal; lines: () => string[] } {
  const error = Object.assign(new PassThrough(), { isTTY });
  let text = "";
  error.on("data", (piece: Buffer) => {
    text += piece.toString();
  });
  return { terminal: { error } as unknown as Terminal, lines: () => text.split("\n").slice(0, -1) };
}

test("an outage that many transfers meet is told once in five seconds, another one at once", () => {
  const clock = new ManualClock();
  const { terminal, lines } = caught(false);
  const notes = new RetryNotes(terminal, clock);
  for (let transfer = 0; transfer < 64; transfer++)
    notes.tell("The server does not answer.", { waitMs: 200, leftMs: 60_000 });
  clock.advance(4_999);
  notes.tell("The server does not answer.", { waitMs: 3_000, leftMs: 55_001 });
  clock.advance(1);
  notes.tell("The server does not answer.", { waitMs: 4_750, leftMs: 55_000 });
  notes.tell("The server is full.", { waitMs: 100, leftMs: 55_000 });
  assert.deepEqual(lines(), [
    "The server does not answer. Trying again in 0.2 s, and for 60 s more; Ctrl-C ends it.",
    "The server does not answer. Trying again in 4.8 s, and for 55 s more; Ctrl-C ends it.",
    "The server is full. Trying again in 0.1 s, and for 55 s more; Ctrl-C ends it.",
  ]);
});

test("on a terminal the line takes the place of a progress bar", () => {
  const { terminal, lines } = caught(true);
  new RetryNotes(terminal, new ManualClock()).tell("Busy.", { waitMs: 1_000, leftMs: 60_000 });
  assert.deepEqual(lines(), ["\r\u001b[KBusy. Trying again in 1.0 s, and for 60 s more; Ctrl-C ends it."]);
});
