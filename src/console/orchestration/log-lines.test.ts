// Tests the time and the priority that are read from lines of a file (decision D10).
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createLogger } from "#os/logger.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { LogLine } from "#wire/webapi/log-tail.ts";
import { LOG_LINE_MAX_LENGTH, LogLines } from "./log-lines.ts";

const read = (text: string): LogLine[] => new LogLines("file").push(Buffer.from(text));

test("a line that one of our own services has written has its time and priority, whatever its level", async () => {
  const folder = scratchFolder("grove-log-lines-");
  try {
    const file = join(folder, "node.log");
    const beforeMs = Date.now();
    const logger = createLogger({ destination: { file }, level: "debug", fields: { role: "fileserver" } });
    logger.debug("looked", { at: 1 });
    logger.info("serving");
    logger.warn("slow", { text: `of many words ${"x".repeat(LOG_LINE_MAX_LENGTH)}` });
    logger.error("failed", { level: "debug", time: "then" });
    await logger.close();
    const lines = read(readFileSync(file, "utf8"));
    assert.deepEqual(
      lines.map(({ priority }) => priority),
      [7, 6, 4, 3],
    );
    for (const { ts } of lines) assert.ok(ts !== null && ts * 1_000 >= beforeMs && ts * 1_000 <= Date.now());
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("what another program has written, or what only looks like ours, has neither", () => {
  const lines = [
    "2026-11-23 10:00:00 UTC LOG: ready",
    '{"level":"info","msg":"no time"}',
    '{"level":"info","time":"2026-13-99T99:99:99.000Z","event":"no such day"}',
    '{"level":"loud","time":"2026-11-23T10:00:00.000Z","event":"no such level"}',
    ' {"level":"info","time":"2026-11-23T10:00:00.000Z"}',
    "",
  ];
  for (const { ts, priority, message } of read(lines.join("\n"))) {
    assert.deepEqual([ts, priority], [null, null], message);
  }
});

test("lines of the journal are told by the journal", () => {
  const entry = { MESSAGE: '{"level":"warn"}', PRIORITY: "6", __REALTIME_TIMESTAMP: "1795428000000000" };
  const [line] = new LogLines("journal").push(Buffer.from(`${JSON.stringify(entry)}\n`));
  assert.deepEqual(line, { ts: 1_795_428_000, priority: 6, message: '{"level":"warn"}' });
});
