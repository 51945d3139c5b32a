// Tests of the control plane (spec 5.6, C-07): grpcio with openssl's certificates, plain to hostile.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { groveOk, startCertificateCluster } from "./certificate-cluster.ts";
import { startProgram } from "./processes.ts";

const CALLER = fileURLToPath(new URL("control_caller.py", import.meta.url));
const METHODS = [
  "RegisterFileServer",
  "Heartbeat",
  "ClaimRoot",
  "RootShare",
  "RootUnshare",
  "RenewCertificate",
] as const;

const has = (command: string, ...words: string[]): boolean => {
  try {
    execFileSync(command, words, { stdio: "ignore", timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
};
const python = ["/usr/bin/python3", "python3"].find((name) => has(name, "-c", "import grpc"));
const canRun = python !== undefined && has("openssl", "version");

/** Names that a careless check takes for ours, in the form of openssl's configuration. */
const HOSTILE_NAMES: Readonly<Record<string, string>> = {
  "no-name": "",
  "suffix-only": "DNS:evilcluster.local",
  "two-labels": "DNS:a.n1.cluster.local",
  "no-label": "DNS:cluster.local",
  "longer-end": "DNS:n1.cluster.local.evil.example",
  "fileserver-end": "DNS:fileserver.evil.example",
  "trailing-dot": "DNS:n1.cluster.local.",
  "as-uri": "URI:https://n1.cluster.local",
  "as-email": "email:n1@cluster.local",
  "as-ip": "IP:127.0.0.1",
  "in-uri": "URI:x:DNS:fileserver",
  slash: "DNS:n1.cluster.local/x",
  idn: "DNS:xn--n1-cluster-local.example",
  // Commas and NUL, as the raw bytes of an extension: SEQUENCE { [2] "evil, DNS:fileserver" } and { [2]
  // "fileserver\0.evil" }.
  comma: "DER:3016821465 76696c2c20444e533a66696c65736572766572",
  nul: "DER:3012821066696c65736572766572002e6576696c",
};

test("grpcio with openssl's certificates: the right one is served, every other is UNAUTHENTICATED (spec 5.6)", {
  timeout: 120_000,
  skip: canRun ? false : "needs python3-grpcio and openssl",
}, async (t) => {
  const folder = scratchFolder("grove-e2e-");
  const cluster = await startCertificateCluster(t, folder, 90);
  const ca = join(cluster.caDir, "ca.crt");
  const caKey = join(cluster.caDir, "ca.key");
  /** Runs openssl with fixed words in one text, and separate words that may hold blanks. */
  const openssl = (fixed: string, ...more: string[]): void => {
    execFileSync("openssl", [...fixed.split(" "), ...more], {
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
    });
  };
  const make = async (
    name: string,
    facts: {
      san?: string;
      subject?: string;
      usage?: string;
      extra?: string;
      days?: string[];
      signer?: string[];
    } = {},
  ): Promise<void> => {
    const subject = facts.subject ?? `/CN=${name}`;
    openssl(
      `req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ${name}.key -out ${name}.csr -subj`,
      subject,
    );
    const san = facts.san ?? "DNS:n1.cluster.local";
    const lines = [
      ...(san === ""
        ? []
        : [`subjectAltName=${san.startsWith("DER:") ? `DER:${san.slice(4).replaceAll(" ", "")}` : san}`]),
      ...(facts.usage === undefined ? [] : [`extendedKeyUsage=${facts.usage}`]),
      ...(facts.extra === undefined ? [] : [facts.extra]),
    ];
    await writeFile(join(folder, `${name}.ext`), `${lines.join("\n")}\n`);
    openssl(
      `x509 -req -in ${name}.csr -out ${name}.crt -extfile ${name}.ext -set_serial ${Math.floor(Math.random() * 1e12)}`,
      ...(facts.signer ?? ["-CA", ca, "-CAkey", caKey]),
      ...(facts.days ?? ["-days", "1"]),
    );
  };
  openssl(
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout other-ca.key -out other-ca.crt -subj",
    "/CN=Grove cluster authority",
  );
  await make("good");
  await make("generic", { san: "DNS:fileserver" });
  await make("both-usages", { usage: "serverAuth,clientAuth" });
  await make("other-node", { san: "DNS:n2.cluster.local" });
  const refused: string[] = ["none"];
  const add = async (name: string, facts: Parameters<typeof make>[1]): Promise<void> => {
    await make(name, facts);
    refused.push(name);
  };
  for (const [name, san] of Object.entries(HOSTILE_NAMES)) await add(name, { san });
  await add("common-name-only", { san: "DNS:x.example", subject: "/CN=n1.cluster.local" });
  await add("subject-slash", { san: "", subject: "/CN=x/O=DNS:n1.cluster.local" });
  await add("server-only", { usage: "serverAuth" });
  await add("mail-only", { usage: "emailProtection" });
  await add("authority", { extra: "basicConstraints=critical,CA:TRUE" });
  await add("foreign", { signer: ["-CA", "other-ca.crt", "-CAkey", "other-ca.key"] });
  await add("self-signed", { signer: ["-key", "self-signed.key"] });
  await add("ended", { days: ["-not_before", "20200101000000Z", "-not_after", "20200201000000Z"] }).catch(
    async () => {
      // Before openssl 3.4 an expired certificate is made with negative days.
      await add("ended", { days: ["-days", "-1"] });
    },
  );
  // A revoked certificate, which a real authority of ours publishes.
  await groveOk(["ca", "issue", "n9", "-ca_dir", cluster.caDir, "-out", folder]);
  await groveOk(["ca", "revoke", "n9", "-ca_dir", cluster.caDir]);
  await cluster.metaserver.says(/revocations_read/);
  refused.push("n9");

  const call = (name: string, method: string, node: string): string =>
    name === "none" ? `${name} ${method} ${node} - -` : `${name} ${method} ${node} ${name}.crt ${name}.key`;
  const lines = [
    ...refused.flatMap((name) => METHODS.map((method) => call(name, method, name === "n9" ? "n9" : "n1"))),
    ...METHODS.map((method) => call("other-node", method, "n1")),
    call("good", "RegisterFileServer", "n1"),
    call("good", "Heartbeat", "n1"),
    // A second key for a live id.
    call("both-usages", "Heartbeat", "n1"),
    call("generic", "RegisterFileServer", "n1"),
    call("generic", "Heartbeat", "n1"),
    call("generic", "RegisterFileServer", "g1"),
    call("generic", "Heartbeat", "g1"),
    call("generic", "RenewCertificate", "g1"),
    call("both-usages", "RegisterFileServer", "n1"),
  ];
  const caller = startProgram(python ?? "", [CALLER, cluster.metaserver.address, ca], {
    cwd: folder,
    input: `${lines.join("\n")}\n`,
  });
  const { code, stdout, stderr } = await caller.ended;
  assert.equal(code, 0, stderr);
  const answers = stdout.trim().split("\n");
  assert.equal(answers.length, lines.length);
  const wrong = answers
    .slice(0, (refused.length + 1) * METHODS.length)
    .filter((answer) => !answer.endsWith(" UNAUTHENTICATED CLIENT_CERT_REQUIRED"));
  assert.deepEqual(wrong, []);
  assert.deepEqual(answers.slice((refused.length + 1) * METHODS.length), [
    "good RegisterFileServer OK -",
    "good Heartbeat OK -",
    "both-usages Heartbeat ALREADY_EXISTS NODE_ID_HELD",
    "generic RegisterFileServer UNAUTHENTICATED CLIENT_CERT_REQUIRED",
    "generic Heartbeat UNAUTHENTICATED CLIENT_CERT_REQUIRED",
    "generic RegisterFileServer OK -",
    "generic Heartbeat OK -",
    "generic RenewCertificate UNAUTHENTICATED CLIENT_CERT_REQUIRED",
    "both-usages RegisterFileServer ALREADY_EXISTS NODE_ID_HELD",
  ]);
  t.diagnostic(`${refused.length} kinds of certificates, ${answers.length} calls`);
});
