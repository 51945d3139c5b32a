// Visitors by links at one FileServer, through a door of mock mode.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { LINK_VISIT_HEADER, PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import { type Client, createClient } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import {
  type DownloadResponse,
  FileServer,
  type LinkVisitSchema,
  type RegisterClientResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { bytesOf, parts, type TestNode } from "./node.fixture.ts";

/** Where visitors come from unless a test says otherwise. */
export const VISITORS_ADDRESS = "198.51.100.7";

/** A part of a file, and of which request. */
interface Wanted {
  readonly offset?: bigint;
  readonly length?: bigint;
  readonly requestKey?: string;
}

/** A visitor whose link opened something. */
export interface TestVisitor {
  readonly registered: RegisterClientResponse;
  readonly files: Client<typeof FileServer>;
  readonly options: CallOptions;
  download(path: string, wanted?: Wanted): Promise<DownloadResponse[]>;
  read(path: string, wanted?: Wanted): Promise<string>;
  drop(name: string, data: Uint8Array): Promise<unknown>;
}

/** Comes by a link. Rejects as the server refuses. */
export async function visit(
  node: TestNode,
  link: MessageInitShape<typeof LinkVisitSchema>,
  address: string = VISITORS_ADDRESS,
): Promise<TestVisitor> {
  const files = createClient(FileServer, node.channel());
  const registered = await files.registerClient(
    { link: { visitor: "visitor000000001", ...link } },
    { metadata: { [PERSON_ADDRESS_HEADER]: address } },
  );
  const options = {
    metadata: {
      authorization: `Bearer ${registered.sessionToken}`,
      [PERSON_ADDRESS_HEADER]: address,
      [LINK_VISIT_HEADER]: "1",
    },
  };
  const download: TestVisitor["download"] = async (path, wanted = {}) => {
    const replies: DownloadResponse[] = [];
    for await (const reply of files.downloadFile({ path, ...wanted }, options)) replies.push(reply);
    return replies;
  };
  return {
    registered,
    files,
    options,
    download,
    read: async (path, wanted) => bytesOf(await download(path, wanted)).toString(),
    drop: (name, data) => files.uploadFile(toAsync(parts(`/${name}`, data, 1_000_000)), options),
  };
}

async function* toAsync<T>(items: Iterable<T>): AsyncGenerator<T> {
  yield* items;
}
