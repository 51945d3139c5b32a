// Tests of the environment variables of sign-in: values, defaults and errors.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { readIdentitySettings, requireServable } from "./sign-in-variables.ts";

test("nothing set gives the specification's defaults (spec 5.9)", () => {
  for (const env of [
    {},
    { IDP_CLIENT_ID: "", SVC_AUTH_MOCK: "", SVC_ADMIN_EMAIL: "", ADMIN_PASSWORD: "", IDP_ISSUER: "" },
  ]) {
    assert.deepEqual(readIdentitySettings(env), {
      clientId: undefined,
      clientSecret: undefined,
      redirectUri: "http://localhost:38485/logincallback",
      mock: false,
      adminEmail: undefined,
      adminPasswordHash: undefined,
      adminPassword: undefined,
      useIdpAuth: true,
      issuer: undefined,
      hostedDomain: undefined,
      allowAudienceList: false,
      authUrl: undefined,
      tokenUrl: undefined,
      tokeninfoUrl: undefined,
      warnings: ["IDP_CLIENT_ID is not set: nobody can sign in"],
    });
  }
});

test("each variable reaches its setting (spec 5.9, D21, D23)", () => {
  const settings = readIdentitySettings({
    IDP_CLIENT_ID: "client-1",
    IDP_CLIENT_SECRET: " se cret ",
    IDP_REDIRECT_URI: "http://127.0.0.1:38485/logincallback",
    SVC_AUTH_MOCK: "1",
    SVC_ADMIN_EMAIL: "Admin@Example.com",
    ADMIN_PASSWORD_HASH: "h",
    ADMIN_PASSWORD: " p ",
    USE_IDP_AUTH: "1",
    IDP_ISSUER: "https://idp.example",
    IDP_HOSTED_DOMAIN: "Example.com",
    IDP_ALLOW_AUD_LIST: "1",
    IDP_AUTH_URL: "https://idp.example/auth",
    IDP_TOKEN_URL: "https://idp.example/token",
    IDP_TOKENINFO_URL: "https://idp.example/tokeninfo",
  });
  assert.deepEqual(settings, {
    clientId: "client-1",
    clientSecret: " se cret ",
    redirectUri: "http://127.0.0.1:38485/logincallback",
    mock: true,
    adminEmail: "admin@example.com",
    adminPasswordHash: "h",
    adminPassword: " p ",
    useIdpAuth: true,
    issuer: "https://idp.example",
    hostedDomain: "example.com",
    allowAudienceList: true,
    authUrl: "https://idp.example/auth",
    tokenUrl: "https://idp.example/token",
    tokeninfoUrl: "https://idp.example/tokeninfo",
    warnings: [],
  });
});

test("only true and 1 switch mock mode on; what looks like it warns (C-06)", () => {
  for (const value of ["true", "1"]) assert.equal(readIdentitySettings({ SVC_AUTH_MOCK: value }).mock, true);
  for (const value of ["TRUE", "True", "yes", "on", " 1", "1 ", "true\n", "01", "t", "2"]) {
    const { mock, warnings } = readIdentitySettings({ SVC_AUTH_MOCK: value });
    assert.equal(mock, false, JSON.stringify(value));
    assert.ok(warnings.some((warning) => warning.startsWith("SVC_AUTH_MOCK")));
  }
  for (const value of ["false", "0", ""]) {
    const { mock, warnings } = readIdentitySettings({
      SVC_AUTH_MOCK: value,
      IDP_CLIENT_ID: "c",
      IDP_ISSUER: "https://i",
    });
    assert.deepEqual([mock, warnings], [false, []]);
  }
});

test("a list as aud is allowed by true and 1 alone, and any other value warns (spec 5.2.2)", () => {
  const read = (value: string) =>
    readIdentitySettings({ IDP_ALLOW_AUD_LIST: value, IDP_CLIENT_ID: "c", IDP_ISSUER: "https://i" });
  for (const value of ["true", "1"]) assert.equal(read(value).allowAudienceList, true);
  for (const value of ["", "0", "false"])
    assert.deepEqual([read(value).allowAudienceList, read(value).warnings], [false, []]);
  assert.equal(read("yes").allowAudienceList, false);
  assert.match(read("yes").warnings[0] ?? "", /^IDP_ALLOW_AUD_LIST has a value other/);
});

test("USE_IDP_AUTH=0 starts only with mock mode, everything else starts (D24)", () => {
  assert.throws(
    () => requireServable(readIdentitySettings({ USE_IDP_AUTH: "0", IDP_CLIENT_ID: "c" })),
    (error) => isGroveError(error, "BAD_ARGUMENT") && error.message.includes("USE_IDP_AUTH"),
  );
  requireServable(readIdentitySettings({ USE_IDP_AUTH: "0", SVC_AUTH_MOCK: "1" }));
  requireServable(readIdentitySettings({ USE_IDP_AUTH: "1" }));
  requireServable(readIdentitySettings({}));
});

test("a wrong value is an error that names the variable and not the value (C-13)", () => {
  for (const [name, value] of [
    ["IDP_CLIENT_ID", "client-with-blank "],
    ["IDP_ISSUER", "idp.example"],
    ["IDP_AUTH_URL", "ftp://secret-idp.example"],
    ["IDP_TOKEN_URL", "https://user:secret-pass@idp.example"],
    ["IDP_TOKENINFO_URL", "not a secret url"],
    ["IDP_REDIRECT_URI", "localhost:38485/secret"],
    ["SVC_ADMIN_EMAIL", "nobody"],
  ] as const) {
    assert.throws(
      () => readIdentitySettings({ [name]: value }),
      (error) =>
        isGroveError(error, "BAD_ARGUMENT") && error.message.includes(name) && !error.message.includes(value),
    );
  }
});

test("plain http to another machine, and a client id without a provider, are warned of", () => {
  const warned = (env: Record<string, string>): readonly string[] => readIdentitySettings(env).warnings;
  assert.match(
    warned({ IDP_CLIENT_ID: "c", IDP_ISSUER: "http://10.0.0.1:8090" })[0] ?? "",
    /^IDP_ISSUER is not https/,
  );
  for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"]) {
    assert.deepEqual(warned({ IDP_CLIENT_ID: "c", IDP_ISSUER: `http://${host}:8090` }), []);
  }
  assert.match(warned({ IDP_CLIENT_ID: "c" })[0] ?? "", /neither IDP_ISSUER nor IDP_TOKENINFO_URL/);
});
