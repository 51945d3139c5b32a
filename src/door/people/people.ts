// Who somebody is at a door: MetaServers judge the app password, and give tickets for FileServers.

import type { Clock } from "#base/clock.ts";
import { PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import type { Scope } from "#security/tickets/scope.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import type {
  AppPassword,
  BrowserSession,
  CreateAppPasswordResponse,
  IssueTicketResponse,
  MetaServer,
} from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** A ticket with less left is asked for anew: sessions are prolonged once a minute, and must not end before. */
const RENEW_LEFT_MS = 120_000;
const CALL_TIMEOUT_MS = 10_000;
/** Characters of a browser's own name that are sent on. */
const USER_AGENT_MAX_LENGTH = 512;
/** FileServers for which a person's tickets are kept. */
const TICKETS_PER_PERSON = 64;

/** What an app password is to be. */
export interface AppPasswordWish {
  readonly name: string;
  readonly readOnly: boolean;
  /** Id and path of the folder below which it holds; empty for all. */
  readonly folderId: string;
  readonly folderPath: string;
  /** Unix milliseconds; 0 for no end. */
  readonly endsMs: number;
}

/**
 * A person's app passwords, for the browser's session that asks. Calls reject as those to a MetaServer do: with
 * NOT_OWNER where the sign-in is older than ten minutes.
 */
export interface OwnAppPasswords {
  make(wish: AppPasswordWish): Promise<Pick<CreateAppPasswordResponse, "appPassword" | "password">>;
  list(): Promise<readonly AppPassword[]>;
  revoke(which: string): Promise<void>;
}

/** A person's sessions of browsers, for the one that asks. Calls reject as those about app passwords do. */
export interface OwnSessions {
  /** At most 20, the one that began last first. */
  list(): Promise<readonly BrowserSession[]>;
  /** Ends one by its id, or all but the one that asks without an id; returns those that ended. */
  end(id?: string): Promise<readonly BrowserSession[]>;
}

/** Somebody whom a MetaServer has recognised. */
export interface Person {
  readonly username: string;
  /** "app:" and the id of the app password, or "browser:" and the session's. */
  readonly credential: string;
  /** Wall time until which a browser's sign-in is recent, in unix milliseconds; 0 for an app password. */
  readonly recentUntilMs: number;
  readonly scope: Scope;
  /** Address of the person, as the door sees it. */
  readonly address: string;
  /**
   * A ticket for one FileServer, good for at least two minutes more. Rejects as calls to a MetaServer do: with
   * TOKEN_REJECTED once the password has ended.
   */
  ticketFor(fileServerId: string): Promise<string>;
  /** Metadata with which a MetaServer answers GetRoots and Navigate for the person. */
  routeMetadata(): Record<string, string>;
  /** Metadata that every call to a FileServer needs beside the session's token. */
  callMetadata(): Record<string, string>;
  readonly appPasswords: OwnAppPasswords;
  readonly sessions: OwnSessions;
}

/** Recognises people by their app passwords, and by sessions of browsers. */
export interface People {
  /**
   * The person behind an app password or a session's secret, for somebody at an address. Rejects with a StatusError whose reason is
   * TOKEN_REJECTED, RATE_LIMITED, USER_DISABLED, CLIENT_CERT_REQUIRED, or that no MetaServer answers.
   */
  identify(secret: string, address: string): Promise<Person>;
  /** Opens a browser's session for an ID token. Rejects as calls to a MetaServer do. */
  openSession(
    idToken: string,
    browser: { readonly address: string; readonly userAgent: string },
  ): Promise<{ readonly secret: string; readonly username: string; readonly endsMs: number }>;
  /** Ends a browser's session, or all of its person's. */
  endSession(secret: string, everywhere: boolean, address: string): Promise<void>;
}

/** Dependencies of a door's people. */
export interface PeopleDeps {
  /** Of MetaServers, over the door's certificate. */
  readonly metaServer: Pick<
    Client<typeof MetaServer>,
    | "createAppPassword"
    | "endBrowserSessions"
    | "endDoorSession"
    | "issueTicket"
    | "listAppPasswords"
    | "listBrowserSessions"
    | "openDoorSession"
    | "revokeAppPassword"
  >;
  readonly clock: Pick<Clock, "steadyMs">;
}

interface KeptTicket {
  readonly ticket: string;
  readonly untilMs: number;
}

/** Makes the port over a client of MetaServers. Nothing is kept here beyond the person that it returns. */
export function createPeople({ metaServer, clock }: PeopleDeps): People {
  return {
    async openSession(idToken, { address, userAgent }) {
      const request = { idToken, userAgent: userAgent.slice(0, USER_AGENT_MAX_LENGTH) };
      const { secret, username, endsMs } = await metaServer.openDoorSession(request, optionsOf(address));
      return { secret, username, endsMs: Number(endsMs) };
    },
    async endSession(secret, everywhere, address) {
      await metaServer.endDoorSession({ secret, everywhere }, optionsOf(address));
    },
    async identify(secret, address) {
      const ask = (fsId: string): Promise<IssueTicketResponse> =>
        metaServer.issueTicket({ appPassword: secret, fsId }, optionsOf(address));
      const { username, credential, readOnly, folderId, recentUntilMs } = await ask("");
      const tickets = new Map<string, KeptTicket>();
      const asking = new Map<string, Promise<string>>();
      const fresh = async (fsId: string): Promise<string> => {
        const askedMs = clock.steadyMs();
        const { ticket, ticketLifeMs } = await ask(fsId);
        if (tickets.size >= TICKETS_PER_PERSON) tickets.clear();
        tickets.set(fsId, { ticket, untilMs: askedMs + ticketLifeMs - RENEW_LEFT_MS });
        return ticket;
      };
      return {
        username,
        credential,
        recentUntilMs: Number(recentUntilMs),
        scope: {
          access: readOnly ? "read" : "write",
          folderId: folderId === "" ? undefined : folderId,
        },
        address,
        async ticketFor(fsId) {
          const kept = tickets.get(fsId);
          if (kept !== undefined && clock.steadyMs() < kept.untilMs) return kept.ticket;
          let pending = asking.get(fsId);
          if (pending === undefined) {
            pending = fresh(fsId).finally(() => asking.delete(fsId));
            asking.set(fsId, pending);
          }
          return pending;
        },
        routeMetadata: () => ({
          authorization: `Bearer ${secret}`,
          [PERSON_ADDRESS_HEADER]: address,
        }),
        callMetadata: () => ({ [PERSON_ADDRESS_HEADER]: address }),
        appPasswords: ownAppPasswords(metaServer, secret, address),
        sessions: ownSessions(metaServer, secret, address),
      };
    },
  };
}

function ownAppPasswords(
  metaServer: PeopleDeps["metaServer"],
  secret: string,
  address: string,
): OwnAppPasswords {
  const options = optionsOf(address, { authorization: `Bearer ${secret}` });
  return {
    make: ({ endsMs, ...wish }) => metaServer.createAppPassword({ ...wish, endsMs: BigInt(endsMs) }, options),
    list: async () => (await metaServer.listAppPasswords({}, options)).appPasswords,
    async revoke(which) {
      await metaServer.revokeAppPassword({ which }, options);
    },
  };
}

function ownSessions(metaServer: PeopleDeps["metaServer"], secret: string, address: string): OwnSessions {
  const options = optionsOf(address, { authorization: `Bearer ${secret}` });
  return {
    list: async () => (await metaServer.listBrowserSessions({}, options)).sessions,
    async end(id) {
      const which =
        id === undefined ? ({ case: "others", value: true } as const) : ({ case: "id", value: id } as const);
      return (await metaServer.endBrowserSessions({ which }, options)).ended;
    },
  };
}

function optionsOf(address: string, more: Readonly<Record<string, string>> = {}): CallOptions {
  return { timeoutMs: CALL_TIMEOUT_MS, metadata: { ...more, [PERSON_ADDRESS_HEADER]: address } };
}
