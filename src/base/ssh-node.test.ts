// Valid stored data of a node that is reached over SSH, on both sides of every rule.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "./errors.ts";
import {
  checkedHostKey,
  checkedSshNode,
  SSH_ARGUMENTS_MAX,
  SSH_TEXT_MAX_BYTES,
  type SshNode,
} from "./ssh-node.ts";

const ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJzQ0fUkmCMLkqvhMVrHzQ1aXKLF0rXMqmUJ0yJIlhYr";

const NODE: SshNode = {
  id: "n1",
  host: "n1.example.com",
  port: 22,
  user: "grove",
  hostKey: ED25519,
  repository: "grove",
  services: {},
};

function refused(facts: object): void {
  const node = { ...NODE, ...facts };
  assert.throws(
    () => checkedSshNode(node),
    (error) => isGroveError(error, "BAD_ARGUMENT"),
    JSON.stringify(facts),
  );
}

test("places and users that ssh could take for options, or for several words, are refused (E-02)", () => {
  for (const host of ["n1", "10.0.0.1", "2001:db8::1", "a.b-c.example"]) {
    assert.equal(checkedSshNode({ ...NODE, host }).host, host);
  }
  for (const host of [
    "",
    "-n1",
    "n1 -x",
    "n1;x",
    "a@b",
    "n1:22",
    "[::1]",
    "$(x)",
    "a..b",
    "fe80::1%eth0",
    "n1\n",
  ])
    refused({ host });
  for (const port of [1, 65_535]) assert.equal(checkedSshNode({ ...NODE, port }).port, port);
  for (const port of [0, -1, 65_536, 1.5, Number.NaN]) refused({ port });
  for (const user of ["grove", "_svc-2", "a".repeat(32)])
    assert.equal(checkedSshNode({ ...NODE, user }).user, user);
  for (const user of ["", "-l", "Root", "a b", "a@b", "a".repeat(33), "a\n", "1a"]) refused({ user });
  for (const id of ["", "-n", "N1", "n 1", "n1/.."]) refused({ id });
});

test("folders and files are paths without a way up, a home folder's sign or control characters (E-02)", () => {
  for (const repository of ["grove", "/srv/my grove", "a/..b/c"]) {
    assert.equal(checkedSshNode({ ...NODE, repository }).repository, repository);
  }
  for (const repository of [
    "",
    "-C",
    "~/grove",
    "../x",
    "a/../b",
    "a/..",
    "a\nb",
    "a\0",
    "x".repeat(SSH_TEXT_MAX_BYTES + 1),
  ]) {
    refused({ repository });
    refused({ services: { fileserver: { logFile: repository } } });
    refused({ services: { fileserver: { cwd: repository } } });
    refused({ services: { fileserver: { argv: ["x"], pidFile: repository } } });
  }
});

test("a host key is one of the kinds that it names, and loses its comment (D20)", () => {
  assert.equal(checkedHostKey(`${ED25519} root@n1`), ED25519);
  for (const key of [
    "",
    "ssh-ed25519",
    ED25519.replace("ssh-ed25519", "ssh-rsa"),
    `${ED25519}\nssh-ed25519 AAAA`,
    `@cert-authority * ${ED25519}`,
    `* ${ED25519}`,
    "ssh-dss AAAAB3NzaC1kc3MAAACBAJzQ0fUkmCMLkqvhMVrHzQ1aXKLF0rXMqmUJ0yJIlhYr",
    ED25519.slice(0, 30),
  ]) {
    refused({ hostKey: key });
  }
});

test("a service's program is a list of bounded words with a file for its pid, and its variables hold no secret (2.9)", () => {
  const service = (facts: object) => ({
    services: { admin: { argv: ["x"], pidFile: "p", ...facts } },
  });
  const most = Array.from({ length: SSH_ARGUMENTS_MAX }, () => "x".repeat(SSH_TEXT_MAX_BYTES));
  const kept = checkedSshNode({ ...NODE, ...service({ argv: most, env: { A_1: "$(x); 'y'" } }) });
  assert.deepEqual(kept.services.admin, { argv: most, pidFile: "p", env: { A_1: "$(x); 'y'" } });
  refused(service({ argv: [...most, "x"] }));
  refused(service({ argv: ["x".repeat(SSH_TEXT_MAX_BYTES + 1)] }));
  refused(service({ argv: [] }));
  refused(service({ argv: ["-x"] }));
  refused(service({ argv: ["x", "a\nb"] }));
  refused(service({ argv: "x" }));
  refused(service({ argv: undefined }));
  refused(service({ env: { "A=B": "" } }));
  refused(service({ env: { LD_x: "\0" } }));
  for (const name of ["ADMIN_PASSWORD", "ADMIN_PASSWORD_HASH", "IDP_CLIENT_SECRET", "SVC_METRICS_TOKEN"])
    refused(service({ env: { [name]: "x" } }));
  refused(service({ shell: "x" }));
  refused({ services: { sshd: {} } });
});
