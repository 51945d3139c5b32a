// Tokens of locks that a request submits, as the metadata of its calls.
import { LOCK_TOKENS_HEADER, LOCK_TOKENS_MAX } from "#base/lock-tokens.ts";
import type { Server } from "#client/connection/cluster.ts";
import type { SubmittedTokens } from "#door/webdav/resource.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";

/** A token as FileServers make them; what a program invents besides is never one. */
const TOKEN = /^[\x21-\x2b\x2d-\x7e]{1,100}$/u;

/** The server with calls that show these tokens. */
export function shownTokens(server: Server, tokens: SubmittedTokens): Server {
  const shown = tokens.filter((token) => TOKEN.test(token)).slice(0, LOCK_TOKENS_MAX);
  if (shown.length === 0) return server;
  const showing = (options: CallOptions): CallOptions => ({
    ...options,
    metadata: { ...(options.metadata as Record<string, string>), [LOCK_TOKENS_HEADER]: shown.join(",") },
  });
  return { ...server, unary: showing(server.unary), stream: showing(server.stream) };
}
