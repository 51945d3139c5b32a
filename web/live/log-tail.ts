// The end of a log, and its new lines while it is followed.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { LogLine, LogTail } from "#wire/webapi/log-tail.ts";
import { call } from "./api.ts";
import { followTopic } from "./topic-socket.ts";

/** Lines that a page keeps while it follows. */
const KEPT = 5_000;

/** The shown part of a log. */
export interface ShownLog {
  readonly tail: LogTail | undefined;
  readonly lines: readonly LogLine[];
  readonly isReading: boolean;
  /** The reason why following has ended. */
  readonly ended: string | undefined;
  readonly error: Error | null;
  readonly readAgain: () => void;
}

interface Followed {
  readonly key: string;
  readonly lines: readonly LogLine[];
  readonly ended: string | undefined;
}

const NOTHING: Followed = { key: "", lines: [], ended: undefined };

/** GET /api/logs/tail for a node and a service; new lines come over the socket. */
export function useLogTail(requested: {
  readonly node: string;
  readonly service: string;
  readonly lines: number;
  readonly isFollowing: boolean;
}): ShownLog {
  const { node, service, lines, isFollowing } = requested;
  const key = JSON.stringify([node, service, isFollowing]);
  const [state, setState] = useState<Followed>({ ...NOTHING, key });
  // Lines of another log are dropped.
  const { lines: followed, ended } = state.key === key ? state : NOTHING;
  const query = useQuery({
    queryKey: ["logs", node, service, lines],
    queryFn: ({ signal }) =>
      call<LogTail>(`/api/logs/tail?${new URLSearchParams({ node, service, lines: String(lines) })}`, {
        signal,
      }),
    enabled: node !== "",
  });
  const { refetch } = query;
  useEffect(() => {
    if (!isFollowing || node === "") return;
    let isFirst = true;
    const add = (more: readonly LogLine[], why: string | undefined): void =>
      setState((before) => {
        const known = before.key === key ? before.lines : [];
        return { key, lines: [...known, ...more].slice(-KEPT), ended: why };
      });
    return followTopic({
      request: () => ({ type: "subscribe", node, service }),
      onMessage: ({ type, data }) => {
        if (type === "error") return add([], (data as { detail: string }).detail);
        if (type !== "log.lines") return;
        const { lines: more, ended: why } = data as { lines: LogLine[]; ended?: string };
        // Lines between the tail and the first followed one may be missing.
        if (isFirst) void refetch();
        isFirst = false;
        add(more, why);
      },
      onLost: () => {
        isFirst = true;
      },
    });
  }, [key, node, service, isFollowing, refetch]);
  return {
    tail: query.data,
    lines: query.data === undefined ? [] : joined(query.data.lines, followed),
    isReading: query.isFetching,
    ended,
    error: query.error,
    readAgain: () => {
      setState({ ...NOTHING, key });
      void refetch();
    },
  };
}

/** Joins a tail with followed lines; lines of both appear once. */
export function joined(tail: readonly LogLine[], followed: readonly LogLine[]): readonly LogLine[] {
  if (followed.length === 0) return tail;
  const isSame = (a: LogLine | undefined, b: LogLine | undefined): boolean =>
    a !== undefined && b !== undefined && a.message === b.message && a.ts === b.ts;
  for (let from = 0; from < tail.length; from++) {
    const common = Math.min(tail.length - from, followed.length);
    let at = 0;
    while (at < common && isSame(tail[from + at], followed[at])) at++;
    if (at === common) return [...tail, ...followed.slice(common)].slice(-KEPT);
  }
  return [...tail, ...followed].slice(-KEPT);
}
