// Calls to one FileServer for an operator, over TLS or within this machine only (spec 4.3, T9).

import { isIP } from "node:net";
import { isLoopbackAddress } from "#base/network.ts";
import { ProblemError } from "#console/http/route.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { type Attr, OnConflict, type UserState } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  FileServer,
  type SetUserStateResponse,
  type ShowTrashResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** Input of SetQuota. */
export interface QuotaCall {
  /** gRPC address of the node, host:port. */
  readonly address: string;
  readonly username: string;
  readonly quotaBytes: bigint;
  /** Files and directories; 0 removes the entry, undefined keeps it. */
  readonly inodeLimit: number | undefined;
  /** SHA-256 hex of the operator's password (T11). */
  readonly passwordHash: string;
  readonly timeoutMs: number;
}

/**
 * Sets a quota on a node. Rejects with StatusError, and with ProblemError where the password must not be
 * sent.
 */
export type SetQuotaOnNode = (
  call: QuotaCall,
) => Promise<{ readonly success: boolean; readonly error: string; readonly inodeLimit: bigint }>;

/** Input of SetUserState. */
export interface UserStateCall {
  /** gRPC address of the node, host:port. */
  readonly address: string;
  readonly state: UserState;
  /** SHA-256 hex of the operator's password (T11). */
  readonly passwordHash: string;
  readonly timeoutMs: number;
}

/** Sends a decision about a user to a node. Rejects as SetQuotaOnNode does. */
export type SetUserStateOnNode = (
  call: UserStateCall,
) => Promise<Pick<SetUserStateResponse, "applied" | "sessionsEnded" | "state">>;

/**
 * A dialer for nodes with certificates of an authority (PEM); undefined for nodes without TLS, on this
 * machine only.
 */
export function quotaDialer(authority: string | undefined): SetQuotaOnNode {
  return ({ username, quotaBytes, inodeLimit, ...call }) =>
    onNode(authority, call, (files, options) =>
      files.setQuota(
        { username, quotaBytes, ...(inodeLimit === undefined ? {} : { inodeLimit: BigInt(inodeLimit) }) },
        options,
      ),
    );
}

/** The same for decisions about users. */
export function userStateDialer(authority: string | undefined): SetUserStateOnNode {
  return ({ state, ...call }) =>
    onNode(authority, call, (files, options) => files.setUserState({ state }, options));
}

/** What a node knows to be decided about a user; undefined for nothing. Rejects as SetQuotaOnNode does. */
export type UserStateOnNode = (
  call: Pick<UserStateCall, "address" | "passwordHash" | "timeoutMs"> & { readonly username: string },
) => Promise<UserState | undefined>;

/** The same for what nodes know of such decisions. */
export function userStateReader(authority: string | undefined): UserStateOnNode {
  return ({ username, ...call }) =>
    onNode(
      authority,
      call,
      async (files, options) => (await files.listUserStates({ username }, options)).states[0],
    );
}

/** Input of a call about a user's trash. */
export interface TrashCall {
  /** gRPC address of the node, host:port. */
  readonly address: string;
  readonly username: string;
  /** Shown to the user. */
  readonly reason: string;
  /** SHA-256 hex of the operator's password (T11). */
  readonly passwordHash: string;
  readonly timeoutMs: number;
}

/** A user's trash on a node. Rejects as SetQuotaOnNode does. */
export interface TrashOnNode {
  readonly show: (
    call: TrashCall & { readonly pageSize: number; readonly pageToken: string },
  ) => Promise<Pick<ShowTrashResponse, "items" | "nextPageToken">>;
  readonly restore: (
    call: TrashCall & { readonly trashId: string; readonly renames: boolean },
  ) => Promise<Pick<Attr, "path">>;
}

/** The same for a user's trash. */
export function trashDialer(authority: string | undefined): TrashOnNode {
  return {
    show: ({ username, reason, pageSize, pageToken, ...call }) =>
      onNode(authority, call, (files, options) =>
        files.showTrash({ root: username, operator: { reason }, pageSize, pageToken }, options),
      ),
    restore: ({ username, reason, trashId, renames, ...call }) => {
      const onConflict = renames ? OnConflict.RENAME : OnConflict.FAIL;
      return onNode(authority, call, (files, options) =>
        files.restoreFile({ root: username, operator: { reason }, trashId, onConflict }, options),
      );
    },
  };
}

async function onNode<T>(
  authority: string | undefined,
  { address, passwordHash, timeoutMs }: Pick<QuotaCall, "address" | "passwordHash" | "timeoutMs">,
  ask: (files: Client<typeof FileServer>, options: CallOptions) => Promise<T>,
): Promise<T> {
  if (authority === undefined && !isThisMachine(address)) {
    throw new ProblemError(
      "NODE_ERROR",
      "the operator's password is sent to other machines only over TLS: start the console with -tls_ca",
      { reason: "TLS_REQUIRED" },
    );
  }
  // Operators call rarely: a pooled connection would often be stale.
  const channel = new GrpcChannel({
    addresses: [address],
    limits: { connectMs: timeoutMs },
    ...(authority === undefined ? {} : { tls: { ca: authority } }),
  });
  try {
    const options = { metadata: { "x-admin-password-hash": passwordHash }, timeoutMs };
    return await ask(createClient(FileServer, channel), options);
  } finally {
    channel.close();
  }
}

function isThisMachine(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(":")).replaceAll(/^\[|\]$/g, "");
  return host === "localhost" || (isIP(host) !== 0 && isLoopbackAddress(host));
}
