// Tests that docs/budgets.md has the program's limits.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import * as base from "#base/limits.ts";
import { SIGN_IN_PLACES_MAX, USER_NOTICE_BOOK_MAX } from "#console/alerts/user-notice-book.ts";
import * as door from "#door/http/door-limits.ts";
import { ARCHIVE_ENTRIES_MAX, ARCHIVE_NAMES_MAX_LENGTH } from "#door/pages/archive.ts";
import * as pages from "#door/pages/limits.ts";
import { UNKNOWN_SESSIONS_PER_NETWORK } from "#door/session/known-sessions.ts";
import { SIGN_INS_PER_NETWORK } from "#door/session/sign-in.ts";
import { HANDED_ON_MAX_BYTES } from "#door/tree/downloads.ts";
import { WRONG_VISITS_PER_MINUTE } from "#door/tree/link-visits.ts";
import { VISITS_KEPT, VISITS_KEPT_PER_NETWORK } from "#door/tree/visit-room.ts";
import { DOOR_SESSIONS, DOOR_SESSIONS_PER_USER } from "#fileserver/doors/door-sessions.ts";
import { DOOR_SIGN_INS_PER_MINUTE } from "#fileserver/doors/door-sign-in.ts";
import { ARRIVALS_AT_ONCE } from "#fileserver/moves/root-mover.ts";
import { ROUND_BYTES } from "#fileserver/moves/source-routes.ts";
import {
  REGISTER_PER_MINUTE,
  STREAMS_PER_CONNECTION,
  STREAMS_PER_USER,
} from "#fileserver/operations/service-limits.ts";
import { MOVE_BYTES_PER_SECOND } from "#fileserver/process/node-moves.ts";
import { LARGE_READS_AT_ONCE, LARGE_READS_PER_USER } from "#fileserver/transfers/large-reads.ts";
import { APP_PASSWORDS_PER_USER } from "#metaserver/directory/credential-commands.ts";
import { DOOR_SESSIONS_PER_PERSON } from "#metaserver/directory/door-session-commands.ts";
import { ROOT_MOVES_MAX } from "#metaserver/directory/root-move-rows.ts";
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
import { PROPERTIES_MAX_BYTES } from "#storage/contract/properties.ts";
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
  GETS_AT_ONCE,
  GETS_AT_ONCE_PER_USER,
  READ_AHEAD_BYTES,
  READ_AHEAD_BYTES_PER_USER,
  READ_AHEAD_CHUNKS,
} from "#storage/object-store/chunk-reads.ts";
import {
  STORE_MEMORY_BYTES,
  STORE_MEMORY_BYTES_PER_USER,
  STORE_SPILL_BYTES,
  STORE_SPILL_BYTES_PER_USER,
} from "#storage/object-store/chunk-room.ts";
import { PUTS_AT_ONCE, PUTS_AT_ONCE_PER_USER } from "#storage/object-store/object-chunk-writer.ts";
import { PUTS_AT_ONCE_PER_UPLOAD } from "#storage/object-store/object-upload.ts";
import { READ_CACHE_BYTES, READ_CACHE_ENTRIES } from "#storage/object-store/read-cache.ts";
import { LOCKS_PER_ROOT, LOCKS_PER_SHAREE } from "#storage/writer/lock-commands.ts";
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
const mb = (bytes: number): string => `${text(bytes / 1_000_000)} MB`;
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
  "calls of nodes, and as many that arrive": [text(grpc.NODE_CALLS), `${grpc.CALLS_OF_NODE} a node`],
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
  "bytes of large requests, until their work is done": [
    mib(front.heldRequestBytes),
    mib(front.heldRequestBytes * grpc.BYTES_OF_PARTY),
    kib(grpc.SMALL_MESSAGE_BYTES),
  ],
  "bytes that compressed requests unfold to": [mib(front.heldRequestBytes)],
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
  "app passwords": [text(APP_PASSWORDS_PER_USER)],
  "sessions of browsers at doors": [text(DOOR_SESSIONS_PER_PERSON)],
  "wrong administrator's passwords": [text(base.ADMIN_HASH_FAILURES_PER_WINDOW)],
  "connections of a door": [
    door.DOOR_CONNECTIONS,
    door.DOOR_UNPROVEN_PER_NETWORK,
    door.DOOR_CONNECTIONS_PER_NETWORK,
  ].map(text),
  "requests of a door": [
    door.DOOR_REQUESTS,
    door.DOOR_WAITING,
    door.DOOR_REQUESTS_PER_USER,
    door.DOOR_WAITING_PER_USER,
  ].map(text),
  "listings of a door": [text(door.DOOR_LISTINGS_PER_USER), text(door.DOOR_REQUESTS_PER_USER)],
  "passwords that a door has checked": [text(door.DOOR_CHECKS), text(door.DOOR_CHECKS_PER_NETWORK)],
  "sign-ins of browsers at a door": [text(SIGN_INS_PER_NETWORK)],
  "wrong sessions of browsers at a door": [text(UNKNOWN_SESSIONS_PER_NETWORK)],
  "requests of a door's pages": [
    text(pages.PAGE_REQUESTS),
    text(pages.PAGE_WAITING),
    text(pages.PAGE_REQUESTS_PER_USER),
    text(pages.PAGE_WAITING_PER_USER),
  ],
  "archives of a door's pages": [
    text(ARCHIVE_ENTRIES_MAX),
    text(ARCHIVE_NAMES_MAX_LENGTH),
    text(pages.ARCHIVES_PER_USER),
    text(pages.PAGE_REQUESTS_PER_USER),
  ],
  "searches of a door's pages": [
    text(pages.SEARCH_ENTRIES_MAX),
    text(pages.SEARCH_FOLDERS_MAX),
    text(pages.SEARCH_FOUND_MAX),
    text(pages.SEARCHES_PER_USER),
    text(pages.PAGE_REQUESTS_PER_USER),
  ],
  "wrong passwords at a door": [
    text(door.DOOR_FAILURES_PER_NETWORK),
    `${door.DOOR_FAILURE_WINDOW_MS / 60_000} minutes`,
  ],
  "wrong passwords of a door's connection": [text(door.DOOR_REFUSALS_PER_CONNECTION)],
  "requests of a door's HTTP/1.1 connection in a turn of the event loop": [
    text(door.DOOR_UNPROVEN_REQUESTS_PER_TURN),
  ],
  "requests of a door's HTTP/1.1 connection that wait for those before them": [
    text(door.DOOR_REQUESTS_UNANSWERED),
  ],
  "links and their passwords that open nothing at a door": [`${WRONG_VISITS_PER_MINUTE} a minute`],
  "visits by links that a door keeps": [text(VISITS_KEPT), text(VISITS_KEPT_PER_NETWORK)],
  "headers of a request": [
    text(door.DOOR_HEADERS_MAX),
    text(door.DOOR_HEADERS_MAX_BYTES),
    `${door.DOOR_HEADERS_MS / 1_000} s`,
  ],
  "a body": [text(door.DOOR_PACE_BYTES), `${door.DOOR_PACE_MS / 1_000} s`],
  "an answer": [text(HANDED_ON_MAX_BYTES), `${door.DOOR_PACE_MS / 1_000} s`],
  "a refused body": [mib(door.DOOR_LINGER_BYTES), `${door.DOOR_LINGER_MS / 1_000} s`],
  "streams of an HTTP/2 connection": [text(door.DOOR_STREAMS_PER_CONNECTION), mib(door.DOOR_WINDOW_BYTES)],
  "an idle connection": [`${door.DOOR_IDLE_MS / 1_000} s`],
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
  locks: [text(LOCKS_PER_ROOT), text(LOCKS_PER_SHAREE)],
  "bytes of properties": [kib(PROPERTIES_MAX_BYTES)],
  "ranged writes under way or waiting": [
    RANGE_WRITES_WAITING,
    RANGE_WRITES_WAITING_PER_FILE,
    RANGE_WRITES_WAITING_PER_USER,
  ].map(text),
  "ranged writes that make chunks": [RANGE_WRITES_AT_ONCE, RANGE_WRITES_AT_ONCE_PER_USER].map(text),
  "sorted listings": [SORTED_LISTINGS_AT_ONCE, SORTED_LISTINGS_TOTAL, SORTED_LISTINGS_PER_USER].map(text),
  "bytes of chunks in memory, until the store has them": [
    mb(STORE_MEMORY_BYTES),
    mb(STORE_MEMORY_BYTES_PER_USER),
  ],
  "bytes of chunks in local files, once memory is taken": [
    mb(STORE_SPILL_BYTES),
    mb(STORE_SPILL_BYTES_PER_USER),
  ],
  "chunks put at once": [PUTS_AT_ONCE, PUTS_AT_ONCE_PER_USER, PUTS_AT_ONCE_PER_UPLOAD].map(text),
  "requests for content at once": [GETS_AT_ONCE, GETS_AT_ONCE_PER_USER].map(text),
  "bytes fetched ahead of readers": [
    mb(READ_AHEAD_BYTES),
    mb(READ_AHEAD_BYTES_PER_USER),
    text(READ_AHEAD_CHUNKS),
  ],
  "read cache on the disk": [mb(READ_CACHE_BYTES), text(READ_CACHE_ENTRIES)],
  grants: [base.GRANTS_PER_INODE, base.GRANTS_PER_ROOT].map(text),
  sessions: [base.SESSIONS_GLOBAL, base.SESSIONS_PER_USER].map(text),
  "sessions through doors": [text(DOOR_SESSIONS), text(DOOR_SESSIONS_PER_USER)],
  "sign-ins of doors, renewals too": [`${DOOR_SIGN_INS_PER_MINUTE} a minute`],
  "roots that move": [text(ROOT_MOVES_MAX), `${ARRIVALS_AT_ONCE} at once`],
  "bytes that a node pulls for moves": [
    `${text(MOVE_BYTES_PER_SECOND / 1_000_000)} MB a second`,
    `${text(ROUND_BYTES / 1_000_000)} MB of rows`,
  ],
  "users with a record of their notices": [text(USER_NOTICE_BOOK_MAX), `${SIGN_IN_PLACES_MAX} places`],
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
