// A door's way into the cluster: a channel to MetaServers over the door's certificate, and people behind it.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { Profile } from "#client/signin/profile.ts";
import { openChannel } from "#client/signin/server-address.ts";
import type { DoorPeople } from "#door/http/door-people.ts";
import type { LinkVisitors } from "#door/http/link-visitors.ts";
import type { BrowserPeople } from "#door/pages/browser-person.ts";
import { createPeople } from "#door/people/people.ts";
import type { SessionKeeper } from "#door/session/browser-people.ts";
import { LinkVisits } from "#door/tree/link-visits.ts";
import type { TlsMaterial } from "#security/authority/tls-material.ts";
import { createClient, type GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { SignedInPeople } from "./signed-in-people.ts";

/** How a door reaches its cluster. */
export interface ClusterSideDeps {
  /** host:port of each. */
  readonly metaservers: readonly string[];
  /** The certificate in use; undefined in mock mode. */
  readonly tls: () => TlsMaterial | undefined;
  readonly mock: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** People of the cluster. */
export interface ClusterSide extends DoorPeople, BrowserPeople, LinkVisitors, SessionKeeper {
  /** Later connections show the certificate that is in use now. */
  useCertificate(): void;
  close(): void;
}

/** Opens the way; connections are made on first use. */
export function joinPeople({ metaservers, tls, mock, clock, log }: ClusterSideDeps): ClusterSide {
  const profile: Profile = {
    metaservers,
    mock,
    idp: undefined,
    fileserver: undefined,
    get ca() {
      return tls()?.ca;
    },
    get certificate() {
      const material = tls();
      return material === undefined ? undefined : { cert: material.cert, key: material.key };
    },
  };
  let channel: GrpcChannel = openChannel(profile, metaservers[0] ?? "", metaservers);
  let client = createClient(MetaServer, channel);
  const people = createPeople({
    metaServer: {
      issueTicket: (request, options) => client.issueTicket(request, options),
      openDoorSession: (request, options) => client.openDoorSession(request, options),
      endDoorSession: (request, options) => client.endDoorSession(request, options),
      createAppPassword: (request, options) => client.createAppPassword(request, options),
      listAppPasswords: (request, options) => client.listAppPasswords(request, options),
      revokeAppPassword: (request, options) => client.revokeAppPassword(request, options),
      listBrowserSessions: (request, options) => client.listBrowserSessions(request, options),
      endBrowserSessions: (request, options) => client.endBrowserSessions(request, options),
    },
    clock,
  });
  const signedIn = new SignedInPeople({ people, profile, clock, log });
  const visits = new LinkVisits({
    metaServer: { locateRoot: (request, options) => client.locateRoot(request, options) },
    profile,
    clock,
  });
  return {
    open: (key, address) => visits.open(key, address),
    signIn: (credentials, address) => signedIn.signIn(credentials, address),
    openSession: (idToken, browser) => signedIn.openSession(idToken, browser),
    endSession: (secret, everywhere, address) => signedIn.endSession(secret, everywhere, address),
    bySession: (secret, address) => signedIn.bySession(secret, address),
    useCertificate() {
      const old = channel;
      channel = openChannel(profile, metaservers[0] ?? "", metaservers);
      client = createClient(MetaServer, channel);
      old.close();
    },
    close() {
      signedIn.close();
      visits.close();
      channel.close();
    },
  };
}
