// Exchanges decisions about users between node and metadata store: each gives the other what it lacks.
import { firstOfMessage } from "#base/user-state.ts";
import type { KnownUserStates } from "#fileserver/operations/user-operations.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { userStateMessage, userStateOf } from "#wire/proto/user-state-message.ts";

/** The two sides of an exchange. */
export interface Exchange {
  readonly client: Pick<Client<typeof MetaServer>, "exchangeUserStates">;
  readonly fsId: string;
  readonly epoch: bigint;
  readonly timeoutMs: number;
}

/** Sends this node's decisions and takes in the store's. Rejects as calls do; what came before holds. */
export async function exchangeUserStates(
  known: KnownUserStates,
  { client, fsId, epoch, timeoutMs }: Exchange,
): Promise<void> {
  const own = known.list();
  let told = 0;
  let after = "";
  for (let more = true; more || told < own.length; ) {
    const states = firstOfMessage(own.slice(told)).map(userStateMessage);
    told += states.length;
    const answer = await client.exchangeUserStates({ fsId, epoch, states, after }, { timeoutMs });
    await known.learn(answer.states.map(userStateOf));
    after = answer.states.at(-1)?.username ?? after;
    more = answer.more && answer.states.length > 0;
  }
}
