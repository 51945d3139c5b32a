// New keys of the provider, and a new password of the operator.
import assert from "node:assert/strict";
import type { Job } from "./job.ts";
import { PASSWORD, type Site } from "./site.ts";

const NEXT = "another operator's ordinary password";

const admin = (site: Site, verb: string, ...lines: readonly string[]): Promise<string> =>
  site.operatorSays(
    lines,
    "admin",
    "password",
    verb,
    "-password_file",
    site.passwordFile,
    "-meta",
    site.store,
    "-tls_ca",
    site.caFile,
  );

/** A token signed with a new key is accepted at once; after a new password each node reports its own. */
export const newSecrets: Job = {
  title: "a sign-in by a provider's new key works at once, and a new password is told node by node",
  async run(site) {
    site.changeKey();
    const signedIn = await site.person("bob").signIn(0);
    assert.equal(signedIn.code, 0, signedIn.stderr);
    assert.match(await admin(site, "check", PASSWORD), /n1: has it\n/);
    const rotated = await admin(site, "rotate", PASSWORD, NEXT);
    assert.match(rotated, /every operator is signed out/);
    for (const id of ["n1", "n2", "n3"])
      assert.ok(rotated.includes(`${id}: has the password before still`), rotated);
    assert.match(rotated, /nodes are left: put the line of the file into ADMIN_PASSWORD_HASH there/);
    const back = await admin(site, "rotate", NEXT, PASSWORD);
    assert.match(back, /All nodes have it\./, back);
  },
};
