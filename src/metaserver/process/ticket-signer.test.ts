// Tests that a MetaServer signs tickets while its folder takes no new key.
import assert from "node:assert/strict";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import type { Ticket } from "#security/tickets/ticket.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { openTicketSigner, TICKET_KEY_LIFE_MS } from "./ticket-signer.ts";

test("a key at its end signs on where no new one can be written, and is replaced once one can", async () => {
  const folder = join(scratchFolder("signer-"), "data");
  await mkdir(folder, { mode: 0o700 });
  const clock = new ManualClock();
  const signer = await openTicketSigner(folder, { clock, random: systemRandom });
  const ids = (): string[] => signer.publicKeys().map(({ id }) => id);
  const [first] = ids();
  clock.advance(TICKET_KEY_LIFE_MS);
  // A file in the folder's place takes no key, as a full disk does not.
  await rename(folder, `${folder}-away`);
  await writeFile(folder, "");
  assert.ok(await signer.sign({} as Ticket));
  assert.deepEqual(ids(), [first]);
  await rm(folder);
  await rename(`${folder}-away`, folder);
  assert.ok(await signer.sign({} as Ticket));
  assert.equal(ids().length, 2);
  assert.equal(ids()[1], first);
});
