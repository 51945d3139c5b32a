// Uploads without a header: how long a stream keeps its slot, and its end with the session.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { UPLOAD_HEADER_TIMEOUT_MS } from "#fileserver/operations/abandoned-streams.ts";
import { until } from "#testing/until.ts";
import { Code } from "#wire/framing/status.ts";
import {
  header,
  parts,
  refusal,
  startTestNode,
  type TestNode,
  type TestUser,
  type UploadPart,
} from "./node.fixture.ts";

interface Silent {
  readonly timed: TestNode;
  readonly clock: ManualClock;
  readonly user: TestUser;
  readonly refused: readonly ReturnType<typeof refusal>[];
}

/** Uploads that take all slots of a user and send nothing. */
async function silentUploads(count: number, run: (uploads: Silent) => Promise<void>): Promise<void> {
  const clock = new ManualClock();
  const limits = { registerPerMinutePerAddress: 100, streamsPerUser: count };
  const timed = await startTestNode({ clock, options: { limits } });
  const ended = Promise.withResolvers<void>();
  try {
    const user = await timed.signIn("silent@example.com");
    const upload = async function* (): AsyncGenerator<UploadPart> {
      await ended.promise;
      yield header("/late");
    };
    const refused = Array.from({ length: count }, () => refusal(user.upload(upload())));
    // One more than the slots: when it is refused, all others have one.
    await until(async () => (await refusal(user.upload([header("/no/such")]))).reason === "RATE_LIMITED");
    await run({ timed, clock, user, refused });
  } finally {
    ended.resolve();
    await timed.stop();
  }
}

test("an upload whose header does not come within a minute ends and gives its place back (D15, D17)", async () => {
  await silentUploads(2, async ({ timed, clock, user, refused }) => {
    clock.advance(UPLOAD_HEADER_TIMEOUT_MS - 1);
    const full = await refusal(user.upload(parts("/f", Buffer.alloc(5), 5)));
    assert.equal(full.reason, "RATE_LIMITED");
    clock.advance(1);
    const answers = await Promise.all(refused);
    assert.deepEqual(
      answers.map(({ code }) => code),
      [Code.DEADLINE_EXCEEDED, Code.DEADLINE_EXCEEDED],
    );
    assert.match(answers[0]?.message ?? "", /header comes within 60 s/);
    await user.upload(parts("/f", Buffer.alloc(5), 5));
    assert.equal(timed.node.telemetry.counts().errors, 0);
  });
});

test("an upload that has not sent its header ends with its session (spec 3.4, 5.3)", async () => {
  await silentUploads(1, async ({ timed, user, refused }) => {
    const other = await timed.signIn(user.email);
    await other.call.endSession({ everywhere: true });
    // No clock moves.
    const [first] = await Promise.all(refused);
    assert.deepEqual([first?.code, first?.reason], [Code.UNAUTHENTICATED, "SESSION_UNKNOWN"]);
  });
});
