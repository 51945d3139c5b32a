// Messages of the conformance runner on standard input and output: four bytes of length, then protobuf.
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";

/** Reads messages from standard input until its end. */
export async function* readMessages<D extends DescMessage>(
  desc: D,
): AsyncGenerator<MessageShape<D>, void, undefined> {
  let pending = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    pending = Buffer.concat([pending, chunk as Buffer]);
    while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32BE(0)) {
      const end = 4 + pending.readUInt32BE(0);
      const message = fromBinary(desc, pending.subarray(4, end));
      pending = pending.subarray(end);
      yield message;
    }
  }
}

/** Writes one message to standard output. */
export const writeMessage = <D extends DescMessage>(desc: D, init: MessageInitShape<D>): void => {
  const body = toBinary(desc, create(desc, init));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  process.stdout.write(Buffer.concat([head, body]));
};
