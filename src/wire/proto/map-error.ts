// Turns a handler's error into a gRPC status with D1's reason, details and plain trailers.
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { isGroveError } from "#base/errors.ts";
import { ErrorInfoSchema, RetryInfoSchema } from "#wire/framing/gen/google/rpc/error_details_pb.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { type ErrorDetail, StatusError } from "#wire/framing/status.ts";
import { errorDetailsOf, grpcCodeOf, trailersOf } from "./status-table.ts";

/**
 * The status of a GroveError (D1); undefined for other errors, which the server answers without their text.
 */
export function mapError(error: unknown): StatusError | undefined {
  if (!isGroveError(error)) return undefined;
  const { reason, domain, metadata } = errorDetailsOf(error);
  const details = [detail(ErrorInfoSchema, { reason, domain, metadata: { ...metadata } })];
  const retryAfterMs = Number(metadata["retry_after_ms"]);
  if (retryAfterMs > 0) {
    const seconds = BigInt(Math.floor(retryAfterMs / 1_000));
    const nanos = Math.round((retryAfterMs % 1_000) * 1e6);
    details.push(detail(RetryInfoSchema, { retryDelay: { seconds, nanos } }));
  }
  return new StatusError(grpcCodeOf(error.code), error.message, {
    details,
    metadata: new Metadata(trailersOf(error)),
    cause: error,
  });
}

function detail<Schema extends DescMessage>(schema: Schema, fields: MessageInitShape<Schema>): ErrorDetail {
  return {
    typeUrl: `type.googleapis.com/${schema.typeName}`,
    value: toBinary(schema, create(schema, fields)),
  };
}
