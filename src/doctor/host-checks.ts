// Checks a server's host: data folder, disk, ports, the running node's numbers, metadata store.
import { readFile, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { formatBytes } from "#base/bytes.ts";
import { systemClock } from "#base/clock.ts";
import { parse64, parseU64 } from "#base/json64.ts";
import { DISK_RESERVE_BYTES, NODE_LEASE_MS } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { METRICS_PORT_OFFSET, metricsPortOf } from "#base/metrics-port.ts";
import { parseHostPort } from "#base/node-id.ts";
import { openDirectoryReader } from "#metaserver/directory/open-directory.ts";
import { RENEW } from "./certificates.ts";
import { clockFinding } from "./clock-finding.ts";
import { type Check, type Finding, failed, ok, warning } from "./finding.ts";
import { listensBeyondLoopback } from "./listening-sockets.ts";
import { getJson, metricsUrlOf } from "./server-probe.ts";

/** Ports below this need a privilege. */
const FIRST_FREE_PORT = 1_024;
/** Free inodes below which a disk counts as full. */
const INODES_LOW = 100_000;
/** Space above the reserve below which the trash is purged early (D14): the disk is about to be full. */
const SPACE_LOW_BYTES: bigint = 5n * 1_073_741_824n;

/** Files of a FileServer's data folder that only its owner may read. */
const PRIVATE_FILES = ["inodes.db", "quota_config.json", "identity.json"];

/** Checks that a data folder exists and is its owner's alone. */
export function folderCheck(folder: string): Check {
  const name = `data ${folder}`;
  return {
    name,
    async run() {
      const found = await stat(folder).catch(
        (error: unknown) => (error as NodeJS.ErrnoException).code ?? "?",
      );
      if (typeof found === "string") {
        const todo =
          found === "ENOENT"
            ? "Check -data; a server makes its folder when it first starts."
            : "Run this as the user that the server runs as.";
        return [failed(name, `cannot be read (${found})`, todo)];
      }
      if (!found.isDirectory()) return [failed(name, "is no folder", "Check -data.")];
      const own = process.getuid?.();
      const findings: Finding[] = [];
      if ((found.mode & 0o077) !== 0) {
        findings.push(
          failed(
            name,
            "others on this machine may enter it",
            `Make it the server's alone: chmod 700 '${folder}'`,
          ),
        );
      }
      for (const file of PRIVATE_FILES) {
        const inside = await stat(join(folder, file)).catch(() => undefined);
        if (inside !== undefined && inside.uid !== found.uid) {
          findings.push(
            failed(
              name,
              `${file} in it belongs to another user than the folder`,
              `Give it back: chown --reference='${folder}' '${join(folder, file)}'`,
            ),
          );
        }
      }
      if (own !== undefined && own !== 0 && own !== found.uid) {
        findings.push(
          warning(name, "belongs to another user than you", "Run this as the user that the server runs as."),
        );
      }
      return findings.length > 0 ? findings : [ok(name, "is there, and its owner's alone")];
    },
  };
}

/** Checks the disk's room above the reserve, and its inodes (spec 4.6.3). */
export function diskCheck(folder: string, reserveBytes: bigint = DISK_RESERVE_BYTES): Check {
  const name = `disk of ${folder}`;
  return {
    name,
    async run() {
      const disk = await statfs(folder, { bigint: true });
      const freeBytes = disk.bavail * disk.bsize;
      const unusual = reserveBytes === DISK_RESERVE_BYTES ? "" : " instead of 20 GiB";
      const kept = reserveBytes === 0n ? "" : `, ${formatBytes(reserveBytes)}${unusual} of them the reserve`;
      const room = `${formatBytes(freeBytes)} are free${kept}`;
      const findings: Finding[] = [];
      if (freeBytes <= reserveBytes) {
        findings.push(
          failed(name, `${room}: nothing can be written`, "Make room, or move the data to a larger disk."),
        );
      } else if (freeBytes - reserveBytes < SPACE_LOW_BYTES) {
        findings.push(warning(name, room, "Make room soon: trash is being purged for space."));
      } else findings.push(ok(name, room));
      // A file system with dynamic inodes reports 0 of 0.
      if (disk.files > 0n && disk.ffree < BigInt(INODES_LOW)) {
        const what = `${disk.ffree} inodes are left`;
        const todo = "Delete small files, or move the data to a disk with more inodes.";
        findings.push(disk.ffree === 0n ? failed(name, what, todo) : warning(name, what, todo));
      }
      return findings;
    },
  };
}

/** Checks that the quota file can be read (spec 2.1). */
export function quotaFileCheck(folder: string): Check {
  const name = "quota_config.json";
  const todo = "Put back the generation before (quota_config.json.previous) or one from a backup.";
  return {
    name,
    async run() {
      let text: string;
      try {
        text = await readFile(join(folder, name), "utf8");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT")
          return [ok(name, "is not there: everybody has the default quota")];
        return [failed(name, errorText(error), todo)];
      }
      try {
        const { quotas } = parse64(text) as { quotas: Record<string, unknown> };
        const values = Object.values(quotas);
        if (values.some((value) => parseU64(value) === undefined))
          return [failed(name, "holds something that is no quota", todo)];
        return [ok(name, `holds ${values.length} quota${values.length === 1 ? "" : "s"}`)];
      } catch {
        return [failed(name, "cannot be understood", todo)];
      }
    },
  };
}

/** Checks the rule of T6: the metrics port is the gRPC port minus 41000. */
export function portRuleCheck(address: string): Check {
  const name = `port of ${address}`;
  return {
    name,
    run() {
      const { port } = parseHostPort(address);
      const metrics = metricsPortOf(port);
      const todo = `Take a gRPC port from ${METRICS_PORT_OFFSET + FIRST_FREE_PORT} up, such as 50051.`;
      if (metrics < 1)
        return Promise.resolve([
          failed(name, `leaves no metrics port: it must be above ${METRICS_PORT_OFFSET}`, todo),
        ]);
      if (metrics < FIRST_FREE_PORT) {
        return Promise.resolve([warning(name, `its metrics port ${metrics} needs a privilege`, todo)]);
      }
      return Promise.resolve([ok(name, `leaves metrics on ${metrics}`)]);
    },
  };
}

/** Checks a running FileServer: readiness, drift, clock, and who may read users' metrics (T8). */
export function nodeCheck(name: string, address: string, metricsToken: string | undefined): Check {
  return {
    name,
    async run(signal) {
      const url = metricsUrlOf(address);
      let ready: Awaited<ReturnType<typeof getJson>>;
      try {
        ready = await getJson(`${url}/ready`, signal);
      } catch (error) {
        return [
          failed(
            name,
            `its metrics do not answer on ${url} (${errorText(error)})`,
            "See that it runs, that -listen is the server's, and what its log says.",
          ),
        ];
      }
      const findings = [readyFinding(name, ready.body)];
      if (ready.dateMs !== undefined) {
        // Its header holds whole seconds, the fraction cut off.
        findings.push(clockFinding(`clock of ${name}`, ready.dateMs + 500 - systemClock.wallMs()));
      }
      const { body } = await getJson(`${url}/metrics`, signal, metricsToken);
      findings.push(...metricsFindings(name, body));
      const bare = metricsToken === undefined ? body : (await getJson(`${url}/metrics`, signal)).body;
      findings.push(exposureFinding(name, address, "per_user_storage" in bare));
      return findings;
    },
  };
}

function readyFinding(name: string, body: Readonly<Record<string, unknown>>): Finding {
  if (body["ready"] === true) return ok(name, "runs, and takes calls");
  const reasons = Array.isArray(body["reasons"])
    ? body["reasons"].map(String).join("; ")
    : "without a reason";
  const isBroken = reasons.includes("storage failed") || reasons.includes("fenced");
  return isBroken
    ? failed(name, `takes no calls: ${reasons}`, "Look at its disk and its log, then restart it.")
    : warning(name, `takes no calls at present: ${reasons}`, "Wait, or look at its log.");
}

function metricsFindings(name: string, body: Readonly<Record<string, unknown>>): Finding[] {
  const findings: Finding[] = [];
  findings.push(driftFinding(`drift of ${name}`, body, systemClock.wallMs()));
  const skewMs = body["clock_skew_ms"];
  if (typeof skewMs === "number") findings.push(clockFinding(`metaserver's clock (seen by ${name})`, skewMs));
  const daysLeft = body["cert_days_left"];
  if (typeof daysLeft === "number") {
    const what = `the certificate in use has ${Math.floor(daysLeft)} days left`;
    const certificate = `certificate of ${name}`;
    findings.push(
      daysLeft < 0
        ? failed(certificate, what, RENEW)
        : daysLeft < 14
          ? warning(certificate, what, RENEW)
          : ok(certificate, what),
    );
  }
  const [free, reserve] = [parseU64(body["disk_free_bytes"]), parseU64(body["reserve_bytes"])];
  if (reserve !== undefined) findings.push(reserveFinding(`reserve of ${name}`, reserve));
  if (free !== undefined && reserve !== undefined && free <= reserve) {
    findings.push(
      failed(
        `disk of ${name}`,
        `${formatBytes(free)} are free, which is not above its reserve of ${formatBytes(reserve)}: nothing can be written`,
        "Make room, or move the data to a larger disk.",
      ),
    );
  }
  if (body["storage_failed"] === true)
    findings.push(
      failed(
        `storage of ${name}`,
        "a flush to its disk has failed",
        "Look at the disk (dmesg), then restart the FileServer.",
      ),
    );
  return findings;
}

/** Compares the reserve with the specification's (spec 1.2, 4.6.3). */
function reserveFinding(name: string, reserveBytes: bigint): Finding {
  const usual = formatBytes(DISK_RESERVE_BYTES);
  if (reserveBytes === DISK_RESERVE_BYTES) return ok(name, `${usual} of its disk are kept free`);
  return warning(
    name,
    `${formatBytes(reserveBytes)} of its disk are kept free, not the ${usual} that every node should keep`,
    "Start it without -reserve, unless this is a trial or its disk is too small.",
  );
}

/**
 * The result of the recount of files, trash and unfinished uploads (D16); uncounted ones are not reported as
 * equal.
 */
export function driftFinding(name: string, body: Readonly<Record<string, unknown>>, nowMs: number): Finding {
  const [bytes, ended] = [parseU64(body["quota_drift_bytes"]), body["recount_last_pass_unix"]];
  const counters = Number(body["drifted_counters"] ?? 0);
  const when = typeof ended === "number" ? `counted ${agoOf(nowMs - ended * 1_000)}` : "being counted";
  if ((bytes ?? 0n) > 0n || counters > 0) {
    const off = `${counters} of its counters are off, by ${formatBytes(bytes ?? 0n)}`;
    return failed(name, `${when}: ${off}`, "Stop it and run: grove fsck -data DIR -repair");
  }
  if (bytes === undefined || typeof ended !== "number") return ok(name, "not counted yet");
  return ok(name, `${when}: its counters agree with what it stores`);
}

function agoOf(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  if (minutes < 1) return "just now";
  if (minutes < 120) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ago` : `${Math.floor(hours / 24)} days ago`;
}

function exposureFinding(name: string, address: string, tellsOfUsers: boolean): Finding {
  const what = `metrics of ${name}`;
  if (!tellsOfUsers) return ok(what, "tell of single users only with SVC_METRICS_TOKEN");
  const { port } = parseHostPort(address);
  const isOpen = listensBeyondLoopback(metricsPortOf(port)) ?? !/^(?:127\.|localhost|\[?::1)/.test(address);
  if (!isOpen) return ok(what, "can be read from this machine only");
  return warning(
    what,
    "tell whoever reaches the port how much every user stores",
    "Set SVC_METRICS_TOKEN, or close the port to the outside.",
  );
}

/** Checks that the metadata store can be used (D19). The URL is never shown: it may hold a password. */
export function storeCheck(url: string): Check {
  const name = "metadata store";
  return {
    name,
    async run() {
      const path = /^sqlite:(.+)$/s.exec(url)?.[1];
      if (path !== undefined && (await stat(path).catch(() => undefined)) === undefined) {
        return [
          failed(
            name,
            `${path} is not there`,
            "Check -data and -meta; the metaserver makes it when it first starts.",
          ),
        ];
      }
      try {
        const directory = await openDirectoryReader(url, { clock: systemClock });
        try {
          const nodes = await directory.nodes();
          const live = nodes.filter((node) => node.live).length;
          const what = `answers; ${live} of ${nodes.length} nodes live`;
          return live < nodes.length
            ? [
                warning(
                  name,
                  what,
                  `Not heard of for ${NODE_LEASE_MS / 1_000} s: ${nodes
                    .filter((node) => !node.live)
                    .map((node) => node.fsId)
                    .join(", ")}`,
                ),
              ]
            : [ok(name, what)];
        } finally {
          await directory.close();
        }
      } catch (error) {
        return [failed(name, errorText(error), "See that the database runs and that -meta names it.")];
      }
    },
  };
}
