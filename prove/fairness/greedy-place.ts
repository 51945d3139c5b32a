// What a greedy user works with: connections, a session, and loops that go on through refusals.

import type { StrokeTime, Struck } from "#prove/attacks/orders.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** The server's address, and the form of the run. */
export interface GreedyPlace extends StrokeTime {
  readonly address: string;
  readonly metricsUrl: string;
  /** True in the short form. */
  readonly isShort: boolean;
}

/** The calls of one connection. */
export type Calls = Client<typeof FileServer>;

/** A user who takes all that the server gives. */
export class Greedy {
  readonly connections: readonly Calls[];
  readonly metadata: { readonly authorization: string };
  readonly #place: GreedyPlace;
  readonly #channels: readonly GrpcChannel[];
  #strokes = 0;

  private constructor(
    place: GreedyPlace,
    channels: readonly GrpcChannel[],
    connections: readonly Calls[],
    token: string,
  ) {
    this.#place = place;
    this.#channels = channels;
    this.connections = connections;
    this.metadata = { authorization: `Bearer ${token}` };
  }

  /** Signs a new user in. */
  static async signIn(place: GreedyPlace, connections = 4): Promise<Greedy> {
    const email = `greedy${Math.floor(Math.random() * 1e9)}@example.com`;
    const channels = Array.from(
      { length: connections },
      () => new GrpcChannel({ addresses: [place.address] }),
    );
    const calls = channels.map((channel) => createClient(FileServer, channel));
    const metadata = { authorization: `Bearer mock-jwt.${email}` };
    const { sessionToken } = await (calls[0] as Calls).registerClient({}, { metadata, waitForReady: true });
    return new Greedy(place, channels, calls, sessionToken);
  }

  get strokes(): number {
    return this.#strokes;
  }

  /** A connection in turn. */
  calls(at: number): Calls {
    return this.connections[at % this.connections.length] as Calls;
  }

  /** Makes this many calls, some of them at once, for the set-up; throws when one is refused. */
  async all(count: number, atOnce: number, make: (at: number) => Promise<unknown>): Promise<void> {
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let at = next++; at < count; at = next++) await make(at);
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
  }

  /**
   * Repeats a call, some of them at once, until the time is up. The time counts from when the first of each
   * were answered; refusals count as answers.
   */
  async insist(atOnce: number, once: (turn: number) => Promise<unknown>): Promise<Struck> {
    let turn = 0;
    const firsts = Promise.withResolvers<void>();
    this.#place.countFrom(firsts.promise);
    const lane = async (): Promise<void> => {
      while (!this.#place.isOver()) {
        // A pause, so that cheap refusals do not become a flood of the rig's own.
        await once(turn++).catch(() => new Promise((resolve) => setTimeout(resolve, 2)));
        if (++this.#strokes >= atOnce) firsts.resolve();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    this.close();
    return { strokes: this.#strokes };
  }

  close(): void {
    for (const channel of this.#channels) channel.close();
  }
}

/** A way of being greedy. */
export type GreedyKind = (place: GreedyPlace) => Promise<Struck>;

/** Sets up, which the stroke's time does not count; then strikes. */
export const prepared =
  (
    connections: number,
    prepare: (greedy: Greedy, place: GreedyPlace) => Promise<unknown>,
    strike: (greedy: Greedy, place: GreedyPlace) => Promise<Struck>,
  ): GreedyKind =>
  async (place) => {
    const greedy = await Greedy.signIn(place, connections);
    const preparing = prepare(greedy, place);
    place.countFrom(preparing);
    await preparing;
    return strike(greedy, place);
  };
