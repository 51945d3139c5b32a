// Turns what a handler threw into a gRPC status, with D1's reason, details and plain trailers.
import { create, toBinary } from "@bufbuild/protobuf";
import { type GroveError, isGroveError } from "#base/errors.ts";
import { ErrorInfoSchema, RetryInfoSchema } from "#grpc/gen/google/rpc/error_details_pb.ts";
import { Metadata } from "#grpc/metadata.ts";
import { type Code, type ErrorDetail, StatusError } from "#grpc/status.ts";
import { errorDetailsOf, grpcCodeOf, trailersOf } from "#proto/status-table.ts";

const TYPE_PREFIX = "type.googleapis.com/";

/** The status of a GroveError (D1); undefined for anything else, which the server then answers without its text. */
export function mapError(error: unknown): StatusError | undefined {
  if (!isGroveError(error)) return undefined;
  return new StatusError(grpcCodeOf(error.code) as Code, error.message, {
    details: detailsOf(error),
    metadata: new Metadata(trailersOf(error)),
    cause: error,
  });
}

function detailsOf(error: GroveError): ErrorDetail[] {
  const { reason, domain, metadata } = errorDetailsOf(error);
  const info = create(ErrorInfoSchema, { reason, domain, metadata: { ...metadata } });
  const details = [
    { typeUrl: TYPE_PREFIX + ErrorInfoSchema.typeName, value: toBinary(ErrorInfoSchema, info) },
  ];
  const retryAfterMs = Number(error.metadata["retry_after_ms"]);
  if (retryAfterMs > 0) {
    const seconds = Math.floor(retryAfterMs / 1_000);
    const nanos = Math.round((retryAfterMs % 1_000) * 1e6);
    const retry = create(RetryInfoSchema, { retryDelay: { seconds: BigInt(seconds), nanos } });
    details.push({
      typeUrl: TYPE_PREFIX + RetryInfoSchema.typeName,
      value: toBinary(RetryInfoSchema, retry),
    });
  }
  return details;
}
