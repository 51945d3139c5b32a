// The connection to one FileServer: its channel, and the session that every call on it carries (spec 5.3).

import { hostname } from "node:os";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { CLIENT_LABEL_MAX_LENGTH } from "#base/limits.ts";
import { requireNeighbour, VERSION } from "#base/version.ts";
import { judgedByClocks } from "#client/signin/clock-refusal.ts";
import type { Profile } from "#client/signin/profile.ts";
import { type Family, familiesOf, openChannel, requireSafeForToken } from "#client/signin/server-address.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { SIGN_IN_CALL_TIMEOUT_MS } from "#client/terminal/limits.ts";
import { Code } from "#wire/framing/status.ts";
import { type Client, createClient, type GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer, type RegisterClientRequestSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { REPLY_DECODERS } from "#wire/proto/listing-decoder.ts";
import { REQUEST_ENCODERS } from "#wire/proto/request-encoders.ts";
import { callMetadata, requestMetadata } from "./call-metadata.ts";
import type { DoorSide } from "./door-side.ts";
import type { IdentityHolder } from "./identity-holder.ts";
import { isStatusError, refusalOf } from "./refusal.ts";
import type { KeptSessions, StoredSession } from "./session-cache.ts";

/** Dependencies of a link. */
export interface LinkDeps {
  readonly profile: Profile;
  readonly identity: Pick<IdentityHolder, "idToken" | "requireUnchanged">;
  readonly sessions: KeptSessions;
  /** The stable random id of this installation (decision D23). */
  readonly installationId: () => Promise<string>;
  readonly signal: AbortSignal;
  /** In a door: in the place of the ID token. */
  readonly door?: DoorSide | undefined;
}

/** A channel and the family that it connects over. */
interface Line {
  readonly channel: GrpcChannel;
  readonly files: Client<typeof FileServer>;
  readonly family: Family | undefined;
}

/** A session together with the channel that it belongs to. */
export interface OpenSession extends StoredSession {
  readonly channel: GrpcChannel;
  readonly files: Client<typeof FileServer>;
}

/** One FileServer. */
export class FileServerLink {
  readonly address: string;
  /** Id of the server, for which a door's tickets are; empty where it is not known. */
  fsId = "";
  readonly #deps: LinkDeps;
  #line: Line | undefined;
  #session: OpenSession | undefined;
  #opening: Promise<OpenSession> | undefined;

  constructor(address: string, deps: LinkDeps) {
    this.address = address;
    this.#deps = deps;
  }

  /** The session in use; undefined where there is none yet. */
  get session(): OpenSession | undefined {
    return this.#session;
  }

  /** The session: the one in use, the one kept on disk, or a new one, which needs a valid ID token. */
  open(): Promise<OpenSession> {
    if (this.#session !== undefined) return Promise.resolve(this.#session);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /**
   * Drops a session that the server refused and registers silently while the ID token is valid (T21, T22).
   */
  async renew(refused: OpenSession, why: string): Promise<void> {
    if (this.#session === refused) {
      this.#session = undefined;
      // All calls that were refused together wait for one registration.
      this.#opening ??= this.#adoptOrRegister(why, refused.token).finally(() => {
        this.#opening = undefined;
      });
    }
    await this.#opening;
  }

  /** A client without a session, for SetQuota with the administrator's password. */
  async filesWithoutSession(): Promise<Client<typeof FileServer>> {
    return (await this.#connect(undefined)).files;
  }

  /** Registers even when a session exists, for `login`. */
  async signIn(): Promise<OpenSession> {
    this.#session = undefined;
    this.#opening ??= this.#register("a session is needed").finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** In a door: goes on with the same session by a fresh ticket; does nothing without a session. */
  async prolong(): Promise<void> {
    if (this.#session === undefined || this.#opening !== undefined) return;
    this.#opening = this.#register("the session goes on")
      .catch((error: unknown) => {
        if (!isGroveError(error, "SESSION_UNKNOWN", "SESSION_EXPIRED", "SESSION_IDLE", "SESSION_EVICTED"))
          throw error;
        // It has ended meanwhile: calls that were refused wait here for another.
        this.#session = undefined;
        return this.#register("the session has ended");
      })
      .finally(() => {
        this.#opening = undefined;
      });
    await this.#opening;
  }

  /** Closes the connection. */
  close(): void {
    this.#line?.channel.close();
  }

  async #open(): Promise<OpenSession> {
    await this.#deps.identity.requireUnchanged();
    const stored = await this.#deps.sessions.readSession(this.address);
    if (stored !== undefined) return this.#use(stored);
    return this.#adoptOrRegister("a session with the server is needed", undefined);
  }

  /**
   * Uses the session that another process of this user has opened, or registers. If every process registered
   * after a server's restart, they would evict one another's sessions (spec 3.4).
   */
  #adoptOrRegister(why: string, refusedToken: string | undefined): Promise<OpenSession> {
    const { sessions } = this.#deps;
    return sessions.whileOpening(this.address, async () => {
      await this.#deps.identity.requireUnchanged();
      const stored = await sessions.readSession(this.address);
      if (stored !== undefined && stored.token !== refusedToken) return this.#use(stored);
      if (stored !== undefined) await sessions.removeSession(this.address);
      return this.#register(why);
    });
  }

  async #use(stored: StoredSession): Promise<OpenSession> {
    const line = await this.#connect(stored.family);
    this.#session = { ...stored, channel: line.channel, files: line.files };
    return this.#session;
  }

  async #connect(wanted: Family | undefined): Promise<Line> {
    if (this.#line !== undefined) return this.#line;
    const [first] = await familiesOf(this.address, wanted);
    if (first === undefined) throw new ClientError("NETWORK", `no address is known for ${this.address}`);
    this.#line = this.#lineOver(first);
    return this.#line;
  }

  #lineOver(addresses: { family: Family | undefined; addresses: readonly string[] }): Line {
    const channel = openChannel(this.#deps.profile, this.address, addresses.addresses);
    const files = createClient(FileServer, channel, REPLY_DECODERS, REQUEST_ENCODERS);
    return { channel, files, family: addresses.family };
  }

  /** By what a door opens sessions: a ticket, or a visitor's link. */
  async #doorsRight(): Promise<MessageInitShape<typeof RegisterClientRequestSchema>> {
    const { door } = this.#deps;
    if (door === undefined) return {};
    if (door.link !== undefined) return { link: door.link.visit };
    return { ticket: await door.ticketFor(this.fsId), renewedSessionToken: this.#session?.token ?? "" };
  }

  /** Opens a session over the first family on which the server answers. */
  async #register(why: string): Promise<OpenSession> {
    const { door } = this.#deps;
    const token = door === undefined ? await this.#deps.identity.idToken(why) : "";
    requireSafeForToken(this.#deps.profile, this.address, token);
    const families = await familiesOf(this.address, this.#line?.family);
    let failure: unknown;
    for (const addresses of families) {
      const present = this.#line;
      const isSame = present !== undefined && present.family === addresses.family;
      const line = isSame ? present : this.#lineOver(addresses);
      try {
        return await this.#registerOver(line, token);
      } catch (error) {
        if (line !== this.#line) line.channel.close();
        failure = error;
        if (!isStatusError(error) || error.code !== Code.UNAVAILABLE) break;
      }
    }
    const refusal = await refusalOf(failure, this.address);
    throw judgedByClocks(refusal, { peer: this.address, token, nowMs: systemClock.wallMs() });
  }

  async #registerOver(line: Line, token: string): Promise<OpenSession> {
    const { door } = this.#deps;
    const renewedSessionToken = door === undefined ? "" : (this.#session?.token ?? "");
    const reply = await line.files.registerClient(
      {
        clientId: await this.#deps.installationId(),
        clientVersion: VERSION,
        deviceName: hostname().slice(0, CLIENT_LABEL_MAX_LENGTH),
        replacedSessionToken: await this.#deps.sessions.replacedToken(this.address),
        ...(await this.#doorsRight()),
      },
      {
        metadata: door === undefined ? callMetadata(token) : { ...requestMetadata(), ...door.callMetadata() },
        timeoutMs: SIGN_IN_CALL_TIMEOUT_MS,
        signal: this.#deps.signal,
      },
    );
    // A renewed session keeps its token, which is not told again.
    const sessionToken = reply.sessionToken === "" ? renewedSessionToken : reply.sessionToken;
    door?.link?.opened(reply.link);
    // The token goes into a header and into a file, so it must be printable ASCII.
    if (!/^[\x21-\x7e]{1,512}$/.test(sessionToken)) {
      throw new ClientError("SERVER_BROKEN", "the session token that was sent is none");
    }
    // A server of 0.1.0 refuses no other version by itself.
    requireNeighbour({ name: `the server ${this.address}`, version: reply.serverVersion }, "this program");
    const session: StoredSession = {
      address: this.address,
      token: sessionToken,
      username: reply.username,
      rootId: reply.rootId,
      expiresAtMs: Number(reply.expiresAt) * 1_000,
      family: line.family,
    };
    await this.#deps.sessions.writeSession(session);
    this.#line = line;
    this.#session = { ...session, channel: line.channel, files: line.files };
    return this.#session;
  }
}
