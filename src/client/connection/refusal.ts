// Turns the status of a call into the server's refusal: its code, message and numbers (decision D1).
import { GroveError } from "#base/errors.ts";
import { REQUEST_ID_HEADER } from "#base/request-scope.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { Code, codeName, type StatusError } from "#wire/framing/status.ts";
import type { ConnectFailure } from "#wire/grpc/connect-failure.ts";
import { errorCodeOf, REASON_TRAILER } from "#wire/proto/status-table.ts";

/** Trailers of D1 that repeat numbers of the details, with their metadata keys. */
const NUMBER_TRAILERS: readonly (readonly [trailer: string, key: string])[] = [
  ["svc-used-bytes", "used"],
  ["svc-quota-bytes", "quota"],
  ["svc-free-bytes", "free_bytes"],
  ["svc-usable-bytes", "usable_bytes"],
  ["svc-offset", "offset"],
  ["svc-address", "address"],
  ["svc-retry-after-ms", "retry_after_ms"],
  [REQUEST_ID_HEADER, "request_id"],
];

/** True for an error of the room grpc, recognized by name so that the room need not be loaded. */
export function isStatusError(error: unknown): error is StatusError {
  return error instanceof Error && error.name === "StatusError";
}

/** True where no server has looked at the call, such as after a failure to connect: it may be sent again. */
export function wasUnseen(failure: unknown): boolean {
  return failure instanceof ClientError && failure.cause instanceof Error && isConnectFailure(failure.cause);
}

/** The refusal behind a failed call; other errors unchanged. `peer` is the server, for the message. */
export async function refusalOf(error: unknown, peer: string): Promise<unknown> {
  if (!isStatusError(error)) return error;
  const code = errorCodeOf(error.metadata.get(REASON_TRAILER)) ?? (await reasonOfDetails(error));
  if (code !== undefined) {
    return new GroveError(code, error.message, { metadata: await metadataOf(error), cause: error });
  }
  return withoutReason(error, peer, requestMetadata(error));
}

/** The id of the call in the server's log, so that an operator can find it. */
function requestMetadata(error: StatusError): Record<string, string> {
  const id = error.metadata.get(REQUEST_ID_HEADER);
  return id === undefined ? {} : { request_id: id };
}

/** Calls that ended without Grove's own reason: the network, a library, or a foreign server. */
function withoutReason(
  error: StatusError,
  peer: string,
  metadata: Record<string, string>,
): ClientError | GroveError {
  switch (error.code) {
    case Code.CANCELLED:
      return new ClientError("CANCELLED", "cancelled", { cause: error });
    case Code.UNAVAILABLE:
      if (error.cause instanceof Error && isConnectFailure(error.cause)) {
        return unconnected(error.cause, peer);
      }
      return new ClientError("NETWORK", `the server ${peer} does not answer (${error.message})`, {
        cause: error,
      });
    case Code.DEADLINE_EXCEEDED:
      return new ClientError("NETWORK", `the server ${peer} did not answer in time`, { cause: error });
    case Code.UNAUTHENTICATED:
      return new ClientError("SIGN_IN_NEEDED", error.message, { cause: error });
    case Code.PERMISSION_DENIED:
      return new ClientError("SERVER_DENIED", error.message, { cause: error });
    case Code.UNIMPLEMENTED:
      return new GroveError("NOT_IMPLEMENTED", "this server cannot do that", { cause: error });
    case Code.RESOURCE_EXHAUSTED:
      // Never read as quota (decision D1): a message was too large or there were too many calls.
      return new ClientError("SERVER_LIMIT", `the server ${peer} refused the call: ${error.message}`, {
        cause: error,
      });
    case Code.NOT_FOUND:
      return new GroveError("NO_SUCH_PATH", error.message, { cause: error });
    default:
      return new ClientError(
        "SERVER_BROKEN",
        `the server ${peer} failed: ${codeName(error.code)}, ${error.message || "without a message"}`,
        { todo: "Try again; if it stays so, tell the administrator of the cluster.", metadata, cause: error },
      );
  }
}

/** Recognized by name for the same reason as a StatusError. */
function isConnectFailure(error: Error): error is ConnectFailure {
  return error.name === "ConnectFailure";
}

/** What to do about a server that cannot be reached or authenticated. */
const TODO_OF_FAILURE: Readonly<Partial<Record<ConnectFailure["kind"], string>>> = {
  "unknown-host": "Check the name of the server.",
  closed:
    "If the cluster uses TLS, name its authority with --ca FILE, or sign in again with 'grove login --cluster FILE'; else try again.",
  "no-tls":
    "If the cluster is a mock one, sign in with 'grove login --mock EMAIL'; else check the port, and ask the administrator.",
  "no-http2":
    "Check the port: this is none of Grove's gRPC ports, or it expects TLS (then name the authority with --ca FILE).",
  "not-trusted":
    "Name the authority of the cluster with --ca FILE (its ca.crt). If you did, somebody else answers at this address: do not go on.",
  expired: "The administrator must renew the server's certificate ('grove ca list' shows them all).",
  "not-yet-valid": "Check the clock of this machine, and then the server's.",
  "wrong-name":
    "Use a name that the certificate has, or have the administrator issue it for this one ('grove ca issue -host NAME').",
};
const UNTRUSTED: readonly ConnectFailure["kind"][] = [
  "not-trusted",
  "expired",
  "not-yet-valid",
  "wrong-name",
];

function unconnected(failure: ConnectFailure, peer: string): ClientError {
  const code = UNTRUSTED.includes(failure.kind) ? "SERVER_UNTRUSTED" : "NETWORK";
  const todo = TODO_OF_FAILURE[failure.kind];
  const what = code === "NETWORK" ? "cannot be reached" : "is not trusted";
  return new ClientError(code, `the server ${peer} ${what}: ${failure.message}`, {
    ...(todo === undefined ? {} : { todo }),
    cause: failure,
  });
}

async function reasonOfDetails(error: StatusError): Promise<GroveError["code"] | undefined> {
  return errorCodeOf((await errorInfoOf(error))?.reason);
}

async function metadataOf(error: StatusError): Promise<Record<string, string>> {
  const metadata: Record<string, string> = { ...(await errorInfoOf(error))?.metadata };
  for (const [trailer, key] of NUMBER_TRAILERS) {
    const value = error.metadata.get(trailer);
    if (value !== undefined) metadata[key] ??= value;
  }
  return metadata;
}

/** The ErrorInfo among the details; its decoder is loaded only for refusals. */
async function errorInfoOf(
  failed: StatusError,
): Promise<{ reason: string; metadata: Record<string, string> } | undefined> {
  const detail = failed.details.find(({ typeUrl }) => typeUrl.endsWith("/google.rpc.ErrorInfo"));
  if (detail === undefined) return undefined;
  const [{ fromBinary }, { ErrorInfoSchema }] = await Promise.all([
    import("@bufbuild/protobuf"),
    import("#wire/framing/gen/google/rpc/error_details_pb.ts"),
  ]);
  try {
    return fromBinary(ErrorInfoSchema, detail.value);
  } catch {
    // Broken details must not hide their refusal.
    return undefined;
  }
}
