// The root of a group for the quota rig: several members write and remove in it at once.
import { setTimeout as pause } from "node:timers/promises";
import type { Campaign } from "#prove/campaign.ts";
import { answerOf, type ServedNode, type SignedIn } from "#prove/served-node.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

const NAME = "crew";
const MEMBERS = 5;
const LOOK_EVERY_MS = 50;

/** Makes the group, and waits until its node lets all members in; the first of them manages it. */
export async function makeCrew(
  campaign: Campaign,
  node: ServedNode,
  connections: number,
): Promise<{ readonly root: string; readonly members: readonly SignedIn[] }> {
  const channel = new GrpcChannel({ addresses: [node.metaserver ?? ""] });
  campaign.atEnd(() => channel.close());
  const meta = createClient(MetaServer, channel);
  const asAdmin = {
    metadata: { authorization: `Bearer mock-jwt.${node.admin}` },
    waitForReady: true,
  };
  await meta.createGroup({ name: NAME }, asAdmin);
  const root = `${NAME}@group`;
  const members: SignedIn[] = [];
  for (let number = 0; number < MEMBERS; number++) {
    const member = await node.signIn(`member${number}@example.com`, connections);
    const role = number === 0 ? "manage" : "write";
    const value = { username: member.email, role, setBy: "", setAtMs: 0n, untilMs: 0n };
    await meta.changeGroup({ name: NAME, change: { case: "addMember", value } }, asAdmin);
    members.push(member);
  }
  for (const member of members)
    while ((await answerOf(member.calls.listDir({ root, path: "/" }, member))) !== "ok")
      await pause(LOOK_EVERY_MS);
  return { root, members };
}
