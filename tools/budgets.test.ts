// Tests that docs/budgets.md has the program's limits.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import * as base from "#base/limits.ts";
import { LARGE_READS_AT_ONCE, LARGE_READS_PER_USER } from "#fileserver/operations/large-reads.ts";
import {
  REGISTER_PER_MINUTE,
  STREAMS_PER_CONNECTION,
  STREAMS_PER_USER,
} from "#fileserver/operations/service-limits.ts";
import {
  TOKEN_VERIFICATIONS_IN_FLIGHT,
  TOKEN_VERIFICATIONS_OF_STRANGERS,
  TOKEN_VERIFICATIONS_PER_ADDRESS,
  TOKEN_VERIFICATIONS_PER_NETWORK,
  TOKEN_VERIFICATIONS_WAITING,
  TOKEN_VERIFICATIONS_WAITING_PER_ADDRESS,
  TOKEN_VERIFICATIONS_WAITING_PER_NETWORK,
} from "#security/identity/verification-places.ts";
import { UPLOADS_IN_FLIGHT_BYTES, UPLOADS_IN_FLIGHT_BYTES_PER_USER } from "#storage/chunks/upload-budget.ts";
import {
  COPIES_AT_ONCE,
  COPIES_PER_USER,
  COPIES_WAITING,
  COPIES_WAITING_PER_USER,
  COPY_SLICES_AT_ONCE,
} from "#storage/local/copy-runner.ts";
import {
  RANGE_WRITES_WAITING,
  RANGE_WRITES_WAITING_PER_FILE,
  RANGE_WRITES_WAITING_PER_USER,
} from "#storage/local/range-lines.ts";
import { RANGE_WRITES_AT_ONCE, RANGE_WRITES_AT_ONCE_PER_USER } from "#storage/local/range-writer.ts";
import {
  SORTED_LISTINGS_AT_ONCE,
  SORTED_LISTINGS_PER_USER,
  SORTED_LISTINGS_TOTAL,
} from "#storage/local/sorted-listings.ts";
import { DIRECTORY_DEPTH_MAX } from "#storage/metadata/tree-heights.ts";
import {
  STORAGE_BATCH_COMMANDS,
  STORAGE_QUEUE_BYTES,
  STORAGE_QUEUE_COMMANDS,
  STORAGE_SHARED_BATCH_COMMANDS,
} from "#storage/writer/write-queue.ts";
import * as grpc from "#wire/framing/limits.ts";

const { DEFAULT_SERVER_LIMITS: front } = grpc;
const MIB = 1_048_576;
const text = (value: number): string => value.toLocaleString("en-US");
const mib = (bytes: number): string => `${text(bytes / MIB)} MiB`;
const kib = (bytes: number): string => `${text(bytes / 1_024)} KiB`;

/** Values that a row of that name must have. */
const ROWS: Readonly<Record<string, readonly string[]>> = {
  "handshakes, before TLS": [
    grpc.HANDSHAKES_OF_ALL,
    grpc.HANDSHAKES_OF_NETWORK,
    grpc.HANDSHAKES_OF_SITE,
  ].flatMap(({ burst, perSecond }) => [text(burst), text(perSecond)]),
  connections: [front.maxConnections, front.unprovenConnections, front.maxConnectionsPerAddress].map(text),
  "connections of nodes": [text(grpc.NODE_CONNECTIONS)],
  "calls in progress": [
    front.maxCalls,
    front.spareCalls,
    grpc.MODEST_CALLS,
    front.unprovenCalls,
    front.callsPerParty,
    front.unprovenCallsPerNetwork,
  ].map(text),
  "calls of nodes": [text(grpc.NODE_CALLS), `${grpc.CALLS_OF_NODE} a node`],
  "requests still arriving": [text(grpc.ARRIVING_CALLS), `${front.requestMs / 1_000} s each`],
  "calls on one connection": [text(STREAMS_PER_CONNECTION)],
  "calls begun in a turn of the loop": [
    grpc.CALLS_PER_TURN,
    grpc.SHARED_CALLS_PER_TURN,
    grpc.CONNECTION_CALLS_PER_TURN,
    grpc.UNPROVEN_CALLS_PER_TURN,
  ].map(text),
  "bytes read in a turn of the loop, where several bring some": [
    kib(grpc.READ_BYTES_PER_TURN),
    kib(grpc.READ_BYTES_PER_TURN_MIN),
  ],
  "bytes of large requests": [
    mib(front.heldRequestBytes),
    mib(front.heldRequestBytes * grpc.BYTES_OF_PARTY),
    kib(grpc.SMALL_MESSAGE_BYTES),
  ],
  "bytes of large replies": [
    mib(front.heldReplyBytes),
    mib(front.heldReplyBytes * grpc.BYTES_OF_PARTY),
    mib(front.heldPerConnectionBytes),
  ],
  "size of a request": [kib(grpc.SMALL_REQUEST.receiveMessageBytes), mib(base.RECEIVE_MESSAGE_MAX_BYTES)],
  "fields of a request": [text(grpc.SMALL_REQUEST.receiveFields)],
  "work for nothing: refusals, frames of no call, calls given up": [
    grpc.UNPROVEN_LOAD_OF_ALL,
    grpc.UNPROVEN_LOAD_OF_NETWORK,
  ].flatMap(({ burst, perSecond }) => [mib(burst), perSecond >= MIB ? mib(perSecond) : kib(perSecond)]),
  "refused calls on a connection": [text(grpc.REFUSALS_PER_CONNECTION)],
  "verifications of tokens in flight": [
    TOKEN_VERIFICATIONS_IN_FLIGHT,
    TOKEN_VERIFICATIONS_OF_STRANGERS,
    TOKEN_VERIFICATIONS_PER_ADDRESS,
    TOKEN_VERIFICATIONS_PER_NETWORK,
  ].map(text),
  "verifications that wait, 10 s at most": [
    TOKEN_VERIFICATIONS_WAITING,
    TOKEN_VERIFICATIONS_WAITING_PER_ADDRESS,
    TOKEN_VERIFICATIONS_WAITING_PER_NETWORK,
  ].map(text),
  "sign-ins": [text(REGISTER_PER_MINUTE)],
  "wrong administrator's passwords": [text(base.ADMIN_HASH_FAILURES_PER_WINDOW)],
  "inodes of a root": [text(base.DEFAULT_INODE_LIMIT)],
  "levels of a tree": [text(DIRECTORY_DEPTH_MAX)],
  "uploads and downloads": [text(STREAMS_PER_USER)],
  "downloads that are read 1 MiB at a time, others 256 KiB": [
    text(LARGE_READS_AT_ONCE),
    text(LARGE_READS_PER_USER),
  ],
  "bytes of uploads on their way to the disk": [
    mib(UPLOADS_IN_FLIGHT_BYTES),
    mib(UPLOADS_IN_FLIGHT_BYTES_PER_USER),
  ],
  "changes that wait for the writer": [
    text(STORAGE_QUEUE_COMMANDS),
    mib(STORAGE_QUEUE_BYTES),
    text(STORAGE_BATCH_COMMANDS),
    text(STORAGE_SHARED_BATCH_COMMANDS),
  ],
  "copies under way, waiting": [COPIES_AT_ONCE, COPIES_WAITING, COPIES_PER_USER, COPIES_WAITING_PER_USER].map(
    text,
  ),
  "slices of copies before the writer": [text(COPY_SLICES_AT_ONCE)],
  "ranged writes under way or waiting": [
    RANGE_WRITES_WAITING,
    RANGE_WRITES_WAITING_PER_FILE,
    RANGE_WRITES_WAITING_PER_USER,
  ].map(text),
  "ranged writes that make chunks": [RANGE_WRITES_AT_ONCE, RANGE_WRITES_AT_ONCE_PER_USER].map(text),
  "sorted listings": [SORTED_LISTINGS_AT_ONCE, SORTED_LISTINGS_TOTAL, SORTED_LISTINGS_PER_USER].map(text),
  grants: [base.GRANTS_PER_INODE, base.GRANTS_PER_ROOT].map(text),
  sessions: [base.SESSIONS_GLOBAL, base.SESSIONS_PER_USER].map(text),
};

test("the table of budgets says the numbers that are in force", async () => {
  const document = await readFile(new URL("../docs/budgets.md", import.meta.url), "utf8");
  for (const [name, numbers] of Object.entries(ROWS)) {
    const row = document.split("\n").find((line) => line.startsWith(`| ${name} |`));
    assert.ok(row !== undefined, `there is no row "${name}"`);
    for (const number of numbers) {
      assert.match(row, new RegExp(`(?<![\\d,])${number}(?![\\d,]\\d)`), `${name}: ${number}`);
    }
  }
});
