// A client without faults beside the attacks, which must be served as if there were none.
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

const WITHIN_MS = 20_000;
const FILE_BYTES = 64;

/** One user with a kept connection. */
export class HonestClient {
  readonly #channel: GrpcChannel;
  readonly #client: Client<typeof FileServer>;
  readonly #consoleUrl: string | undefined;
  #authorization = "";
  #count = 0;

  /** @param console host:port of a console that must be healthy as well */
  constructor(fileserver: string, console?: string) {
    this.#channel = new GrpcChannel({ addresses: [fileserver] });
    this.#client = createClient(FileServer, this.#channel);
    this.#consoleUrl = console === undefined ? undefined : `http://${console}/health`;
  }

  /** Writes a file, reads it back and deletes it; returns undefined, or the step that failed. */
  async isServed(): Promise<string | undefined> {
    const path = `/honest-${this.#count++}`;
    const data = Buffer.alloc(FILE_BYTES, this.#count % 256);
    try {
      const metadata = { authorization: await this.#signIn() };
      const options = { metadata, timeoutMs: WITHIN_MS };
      await this.#client.createFile({ path, data }, options);
      const read = await this.#client.readFile({ path, length: FILE_BYTES }, options);
      if (!data.equals(read.data)) return "it read other bytes than it wrote";
      await this.#client.deleteFile({ path }, options);
      if (this.#consoleUrl === undefined) return undefined;
      const answer = await fetch(this.#consoleUrl, { signal: AbortSignal.timeout(WITHIN_MS) });
      await answer.arrayBuffer();
      return answer.status === 200 ? undefined : `the console's /health answers ${answer.status}`;
    } catch (error) {
      return String(error);
    }
  }

  close(): void {
    this.#channel.close();
  }

  async #signIn(): Promise<string> {
    if (this.#authorization === "") {
      const metadata = { authorization: "Bearer mock-jwt.honest@example.com" };
      const { sessionToken } = await this.#client.registerClient({}, { metadata, timeoutMs: WITHIN_MS });
      this.#authorization = `Bearer ${sessionToken}`;
    }
    return this.#authorization;
  }
}
