// Users who come through a door by app passwords with bounds, for the rig of authorization.
import { PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { ServedNode, SignedIn } from "#prove/served-node.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import type { Visitor } from "./cast.ts";
import type { Bounds, Oracle } from "./oracle.ts";

/** Before a ticket's five minutes are over. */
const RENEW_MS = 120_000;
const AT = "198.51.100.7";

/** A visitor whose session a fresh ticket renews. */
export interface DoorVisitor extends Visitor {
  readonly ticketFor: () => Promise<string>;
  renewedMs: number;
}

/** Makes app passwords of each user with every kind of bounds, and opens a session by each. */
export async function makeVisitors(
  campaign: Campaign,
  node: ServedNode,
  { users, oracle }: { readonly users: readonly SignedIn[]; readonly oracle: Oracle },
): Promise<DoorVisitor[]> {
  const channel = new GrpcChannel({ addresses: [node.metaserver ?? ""] });
  campaign.atEnd(() => channel.close());
  const meta = createClient(MetaServer, channel);
  const fromDoor = { metadata: { [PERSON_ADDRESS_HEADER]: AT } };
  const kinds = users.flatMap((user) => [
    { user, readOnly: true, path: undefined },
    { user, readOnly: false, path: "/t0" },
    { user, readOnly: true, path: "/t1" },
    { user, readOnly: false, path: undefined },
  ]);
  // One after another: guesses of one network are counted while they are under way.
  const visitors: DoorVisitor[] = [];
  for (const [at, { user, readOnly, path }] of kinds.entries()) {
    const { email, calls } = user;
    const folderId = path === undefined ? "" : (await calls.getAttr({ path }, user)).id;
    const bounds: Bounds = { reads: readOnly, folder: (path && oracle.entry(email, path)) || undefined };
    const own = { metadata: { authorization: `Bearer mock-jwt.${email}` }, waitForReady: true };
    const { password } = await meta.createAppPassword({ name: `${at}`, readOnly, folderId }, own);
    const ticketFor = async (): Promise<string> =>
      (await meta.issueTicket({ appPassword: password, fsId: "n1" }, fromDoor)).ticket;
    const { sessionToken: token } = await calls.registerClient({ ticket: await ticketFor() }, fromDoor);
    const metadata = { authorization: `Bearer ${token}`, ...fromDoor.metadata };
    visitors.push({
      email,
      token,
      metadata,
      channels: user.channels,
      calls,
      bounds,
      ticketFor,
      renewedMs: performance.now(),
    });
  }
  return visitors;
}

/** Renews sessions whose tickets end soon. */
export async function renewVisitors(visitors: readonly DoorVisitor[]): Promise<void> {
  for (const visitor of visitors) {
    const nowMs = performance.now();
    if (nowMs - visitor.renewedMs < RENEW_MS) continue;
    const ticket = await visitor.ticketFor();
    const metadata = { [PERSON_ADDRESS_HEADER]: AT };
    await visitor.calls.registerClient({ ticket, renewedSessionToken: visitor.token }, { metadata });
    visitor.renewedMs = nowMs;
  }
}
