// Preloaded before a program of Grove: its times pass GROVE_PROOF_TIME_SCALE times faster, in its threads and
// in its database queries too.
import { existsSync } from "node:fs";
import { registerHooks, syncBuiltinESMExports } from "node:module";
import os from "node:os";
import timerPromises from "node:timers/promises";

const scale = Number(process.env["GROVE_PROOF_TIME_SCALE"] ?? 1);
/**
 * The moment at which both times were the same, in unix milliseconds: the same for all processes of a
 * cluster.
 */
const zeroMs = Number(process.env["GROVE_PROOF_TIME_ZERO"] ?? 0);

/** SQL of the product that names the time, and its replacement. */
const TEXTS: readonly { readonly file: string; readonly from: string; readonly to: string }[] = [
  {
    file: "/src/metaserver/directory/postgres-store.ts",
    from: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    to: `CAST(${zeroMs} + (EXTRACT(EPOCH FROM clock_timestamp()) * 1000 - ${zeroMs}) * ${scale} AS BIGINT)`,
  },
  {
    file: "/src/metaserver/directory/postgres-connections.ts",
    from: "SET statement_timeout TO ${POSTGRES_STATEMENT_TIMEOUT_MS}",
    to: `SET statement_timeout TO \${Math.ceil(POSTGRES_STATEMENT_TIMEOUT_MS / ${scale})}`,
  },
  {
    file: "/src/metaserver/directory/postgres-connections.ts",
    from: "SET lock_timeout TO ${POSTGRES_LOCK_TIMEOUT_MS}",
    to: `SET lock_timeout TO \${Math.ceil(POSTGRES_LOCK_TIMEOUT_MS / ${scale})}`,
  },
  {
    file: "/src/metaserver/directory/postgres-connections.ts",
    from: "SET idle_in_transaction_session_timeout TO ${POSTGRES_STATEMENT_TIMEOUT_MS}",
    to: `SET idle_in_transaction_session_timeout TO \${Math.ceil(POSTGRES_STATEMENT_TIMEOUT_MS / ${scale})}`,
  },
];

function scaleDatabaseTimes(): void {
  for (const { file } of TEXTS)
    if (!existsSync(new URL(`../..${file}`, import.meta.url))) throw new Error(`${file} is not there`);
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const texts = TEXTS.filter(({ file }) => url.endsWith(file));
      if (texts.length === 0) return loaded;
      let source = Buffer.from(loaded.source as Uint8Array).toString("utf8");
      for (const { from, to } of texts) {
        if (!source.includes(from)) throw new Error(`${url} does not say: ${from}`);
        source = source.replace(from, () => to);
      }
      return { ...loaded, source };
    },
  });
}

function scaleClocks(): void {
  const real = {
    now: Date.now,
    uptime: process.uptime.bind(process),
    performance: performance.now.bind(performance),
    boot: os.uptime,
    setTimeout: globalThis.setTimeout,
    setInterval: globalThis.setInterval,
    later: timerPromises.setTimeout,
  };
  Date.now = () => Math.trunc(zeroMs + (real.now() - zeroMs) * scale);
  process.uptime = () => real.uptime() * scale;
  performance.now = () => real.performance() * scale;
  os.uptime = () => real.boot() * scale;
  type Callback = (...args: unknown[]) => void;
  Object.assign(globalThis, {
    setTimeout: (callback: Callback, ms = 0, ...args: unknown[]) =>
      real.setTimeout(callback, ms / scale, ...args),
    setInterval: (callback: Callback, ms = 0, ...args: unknown[]) =>
      real.setInterval(callback, ms / scale, ...args),
  });
  timerPromises.setTimeout = ((ms = 0, ...rest: [unknown?, object?]) =>
    real.later(ms / scale, ...rest)) as typeof timerPromises.setTimeout;
  syncBuiltinESMExports();
}

if (scale !== 1) {
  scaleDatabaseTimes();
  scaleClocks();
}
