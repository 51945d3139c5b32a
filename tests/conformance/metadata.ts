// Converts metadata from and to the conformance protocol.
import { create } from "@bufbuild/protobuf";
import type { Metadata } from "#wire/framing/metadata.ts";

import { type Header, HeaderSchema } from "./gen/connectrpc/conformance/v1/service_pb.ts";

/** Adds headers of the protocol to metadata of ours. */
export const addHeaders = (headers: readonly Header[], to: Metadata): void => {
  for (const { name, value } of headers) {
    for (const one of value) to.append(name, name.endsWith("-bin") ? Buffer.from(one, "base64") : one);
  }
};

/** The reverse: every name once, with all its values. */
export const headersOf = (metadata: Metadata): Header[] => {
  const names = new Set([...metadata.entries()].map(([name]) => name));
  return [...names].map((name) => create(HeaderSchema, { name, value: [...metadata.getAll(name)] }));
};
