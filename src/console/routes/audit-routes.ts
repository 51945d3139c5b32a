// GET /api/audit: the gathered audit lines of all nodes and of the console, for operators (decision D24).

import { type App, ProblemError } from "#console/http/route.ts";
import type { AuditGathering } from "#console/services/audit-gathering.ts";
import type { AuditCopies, CopyPlace } from "#security/audit/audit-copies.ts";
import {
  ACCUSED,
  CONSOLE_SOURCE,
  type CopiedLine,
  EXPLAINED,
  SUSPECTED,
} from "#security/audit/copied-line.ts";
import { scanCopies } from "#security/audit/scan-copies.ts";
import { type AuditEntry, type AuditQuery, auditChains, auditList, auditQuery } from "#wire/webapi/audit.ts";

/** Bytes of gathered lines that one answer searches; the next page continues there. */
const AUDIT_SCAN_MAX_BYTES = 8_388_608;

/** Dependencies of the routes. */
export interface AuditRoutesDeps {
  readonly copies: AuditCopies;
  readonly gathering: Pick<AuditGathering, "takeOwn" | "chains">;
}

const PAGE_DEFAULT = 100;
/** Assumed bound of clock differences between a line's time and its gathering. */
const CLOCKS_APART_S = 3_600;

/** Registers the routes. */
export function auditRoutes(app: App, { copies, gathering }: AuditRoutesDeps): void {
  app.get(
    "/api/audit",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getAudit",
        summary: "Who did what, the newest first",
        description:
          "Lines of every node's audit log as the console has gathered them, and the console's own.",
        tags: ["audit"],
        querystring: auditQuery,
        response: { 200: auditList },
      },
    },
    async (request) => {
      await gathering.takeOwn();
      return listActs(copies, request.query);
    },
  );
  app.get(
    "/api/audit/chains",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getAuditChains",
        summary: "How far each node's audit log was gathered, and whether it broke",
        tags: ["audit"],
        response: { 200: auditChains },
      },
    },
    () => ({ chains: gathering.chains() }),
  );
}

async function listActs(
  copies: AuditCopies,
  query: AuditQuery,
): Promise<{ entries: AuditEntry[]; next_cursor: string | null }> {
  const { from, to, limit = PAGE_DEFAULT } = query;
  if (from !== undefined && to !== undefined && from > to) {
    throw new ProblemError("QUERY_INVALID", "/query/from: is after /query/to", {
      errors: [{ pointer: "/query/from", code: "too_large", detail: "is after to" }],
    });
  }
  const wanted = filterOf(query);
  const entries: AuditEntry[] = [];
  let isOver = false;
  const next = await scanCopies(copies, placeOf(query.cursor), AUDIT_SCAN_MAX_BYTES, (line) => {
    // A line gathered that long before cannot have a later time.
    isOver = from !== undefined && line.gatheredAt + CLOCKS_APART_S < from;
    if (isOver) return false;
    const entry = wanted.mayPass(line) ? entryOf(line) : undefined;
    if (entry !== undefined && wanted.passes(entry)) entries.push(entry);
    return entries.length < limit;
  });
  // Gathered order; within a page the lines' own times decide, though the clocks differ.
  entries.sort((a, b) => Date.parse(b.time) - Date.parse(a.time));
  return { entries, next_cursor: next === undefined || isOver ? null : `${next.file}.${next.offset}` };
}

function placeOf(cursor: string | undefined): CopyPlace | undefined {
  if (cursor === undefined) return undefined;
  const [file, offset] = cursor.split(".").map(Number);
  return { file: file ?? 0, offset: offset ?? 0 };
}

interface Filter {
  /** A text search before parsing. */
  readonly mayPass: (line: CopiedLine) => boolean;
  readonly passes: (entry: AuditEntry) => boolean;
}

function filterOf(query: AuditQuery): Filter {
  const acts = query.act?.split(",").map(matcherOf);
  const subject = query.subject === undefined ? undefined : matcherOf(query.subject);
  const hints = [query.actor, query.subject]
    .filter((text) => text !== undefined)
    .map((text) => JSON.stringify(text.replace(/\*$/, "")).slice(1, -1));
  const { actor, node, from, to } = query;
  return {
    mayPass: ({ source, text }) =>
      (node === undefined || source === node) &&
      hints.every((hint) => text === undefined || text.includes(hint)),
    passes(entry) {
      const seconds = Math.floor(Date.parse(entry.time) / 1000);
      return (
        (acts === undefined || acts.some((matches) => matches(entry.act))) &&
        (actor === undefined || entry.actor === actor) &&
        (subject === undefined || subject(entry.subject)) &&
        (from === undefined || seconds >= from) &&
        (to === undefined || seconds <= to)
      );
    },
  };
}

/** Matches a text exactly, or by its prefix when the pattern ends with "*". */
function matcherOf(pattern: string): (text: string) => boolean {
  if (!pattern.endsWith("*")) return (text) => text === pattern;
  const beginning = pattern.slice(0, -1);
  return (text) => text.startsWith(beginning);
}

/** The shown entry: known fields of the right types. A node may have written anything. */
function entryOf(line: CopiedLine): AuditEntry | undefined {
  const { source: node, gatheredAt: gathered_at, text, broken } = line;
  if (text === undefined) {
    const time = new Date(gathered_at * 1000).toISOString();
    const about = { actor: CONSOLE_SOURCE, subject: node };
    if (broken?.startsWith(EXPLAINED) === true) {
      const detail = { reason: broken.slice(EXPLAINED.length) };
      return { node, gathered_at, seq: 0, time, ...about, act: "audit.explained", detail };
    }
    // The break of this line is listed since the suspicion.
    if (broken?.startsWith(ACCUSED) === true) return undefined;
    const why = broken?.startsWith(SUSPECTED) === true ? broken.slice(SUSPECTED.length) : broken;
    return {
      node,
      gathered_at,
      seq: 0,
      time,
      ...about,
      act: "audit.broken",
      ...(why === undefined ? {} : { broken: why }),
    };
  }
  const { seq, time, actor, act, subject, request, detail } = JSON.parse(text) as Record<string, unknown>;
  if (typeof seq !== "number" || typeof time !== "string" || typeof act !== "string") return undefined;
  return {
    node,
    gathered_at,
    seq,
    time,
    actor: typeof actor === "string" ? actor : "",
    act,
    subject: typeof subject === "string" ? subject : "",
    ...(typeof request === "string" ? { request } : {}),
    ...(typeof detail === "object" && detail !== null ? { detail: plainOf(detail) } : {}),
  };
}

function plainOf(detail: object): Record<string, string | number | boolean> {
  const plain: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(detail) as [string, unknown][]) {
    if (name === "__proto__") continue;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      plain[name] = value;
  }
  return plain;
}
