// The text of units: the package's own stay as they are, and others name this program and these folders.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { rootCertificates } from "node:tls";
import type { Answers, Role } from "./answers.ts";
import { planFiles } from "./plan.ts";
import { authorityPem } from "./provider.ts";

const UNITS = new URL("../../packaging/systemd/", import.meta.url);
const template = (name: string): string => readFileSync(new URL(`svc-${name}.service`, UNITS), "utf8");
const ANSWERS: Answers = {
  roles: "fileserver door",
  name: "n2.example.net",
  id: "n2",
  metaserver: "n1.example.net:50050",
  provider: "https://idp.example.net",
  client_id: "grove",
  door_url: "https://files.example.net",
  door_proxy: "127.0.0.1",
};

/** The planned files of a machine by path. */
function planned(data: string, hasPackage: boolean, more: Answers = {}): ReadonlyMap<string, string> {
  const files = planFiles({
    machine: {
      isSystem: true,
      settings: "/etc/grove",
      units: "/etc/systemd/system",
      program: "/usr/local/lib/node_modules/grove/grove",
      hasPackageUnit: () => hasPackage,
    },
    answers: { ...ANSWERS, data, ...more },
    templates: new Map<Role, string>([
      ["fileserver", template("fileserver")],
      ["door", template("door")],
    ]),
    providerCa: undefined,
    clusterCa: undefined,
  });
  return new Map(files.map(({ path, text }) => [path, text]));
}

test("with a package and the usual folder there are environment files alone", () => {
  assert.deepEqual(
    [...planned("/var/lib/grove", true).keys()],
    ["/etc/grove/fileserver.env", "/etc/grove/door.env"],
  );
});

test("with a package and another folder a part of each unit says where the data lies", () => {
  const part =
    planned("/srv/grove", true).get("/etc/systemd/system/svc-fileserver.service.d/50-init.conf") ?? "";
  assert.match(part, /^ReadWritePaths=\/srv\/grove$/m);
  assert.match(
    part,
    /^ExecStart=\nExecStart=\/opt\/grove\/grove fileserver -data \/srv\/grove\/fileserver \$SVC_FLAGS$/m,
  );
});

test("without a package whole units start this program", () => {
  const unit = planned("/var/lib/grove", false).get("/etc/systemd/system/svc-fileserver.service") ?? "";
  const start =
    "/usr/local/lib/node_modules/grove/grove fileserver -data /var/lib/grove/fileserver $SVC_FLAGS";
  assert.ok(unit.includes(`\nExecStart=${start}\n`), unit);
  assert.doesNotMatch(unit, /ReadWritePaths/);
  assert.match(unit, /^ProtectSystem=strict$/m);
});

test("a door's flags name its proxy, its address and its certificate", () => {
  const text = planned("/var/lib/grove", true).get("/etc/grove/door.env") ?? "";
  assert.match(
    text,
    /^SVC_FLAGS=-public_url https:\/\/files\.example\.net -trusted_proxy 127\.0\.0\.1 -metaserver n1/m,
  );
  assert.match(text, /-tls_key \/var\/lib\/grove\/door\/door\.key/);
  assert.doesNotMatch(text, /IDP_|ADMIN_/);
});

test("no answer takes in the lines after it, or divides words: such a one is refused before anything is written", () => {
  const isRefused = { code: "BAD_ARGUMENT" };
  const bad: Answers[] = [
    { client_id: "grove\\" },
    { client_id: '"grove' },
    { client_id: "'grove" },
    { provider: "https://idp.example.net\\" },
    { provider: "https://idp\t.example.net" },
    { roles: "metaserver", store: "/etc/grove/it's" },
  ];
  for (const more of bad) assert.throws(() => planned("/var/lib/grove", true, more), isRefused);
  const text = planned("/var/lib/grove", true, { operator: "o'brien@example.com" }).get(
    "/etc/grove/fileserver.env",
  );
  assert.match(text ?? "", /^SVC_ADMIN_EMAIL=o'brien@example\.com$/m);
});

test("of a file with a certificate and its key the certificate alone is taken", async () => {
  const [certificate = ""] = rootCertificates;
  const key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----";
  const both = `base64:${Buffer.from(`${key}\n${certificate}\n${certificate}`).toString("base64")}`;
  assert.equal(await authorityPem(both), `${certificate}\n${certificate}\n`);
  await assert.rejects(authorityPem(`base64:${Buffer.from(key).toString("base64")}`), {
    code: "BAD_ARGUMENT",
  });
});
