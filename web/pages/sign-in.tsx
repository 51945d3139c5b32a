// The sign-in of operators: a password field, and the reason of a refusal.
import { Alert, Button, PasswordInput } from "@mantine/core";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { ApiProblem } from "../live/api.ts";
import { signIn, useSession } from "../live/session.ts";

/** The page at "/sign-in"; `back` in the address is the next page, on this console only. */
export function Page(): ReactNode {
  const [search] = useSearchParams();
  const [, navigate] = useLocation();
  const session = useSession();
  const [password, setPassword] = useState("");
  const [refusal, setRefusal] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const refused = refusalText(search.get("refused"));
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setRefusal(undefined);
    try {
      await signIn(password);
      navigate(ownPath(search.get("back")), { replace: true });
    } catch (error) {
      setRefusal(error instanceof ApiProblem ? error.message : "Signing in failed.");
      setBusy(false);
    }
  };
  return (
    <div style={{ maxWidth: 360 }}>
      <h1>Sign in as operator</h1>
      <p className="quiet">
        Operators see users and quotas, run actions and read logs. A session lasts twelve hours.
      </p>
      {session?.default_password === true ? (
        <Alert color="yellow" variant="outline" mb="md" title="The built-in password is in force">
          It works from this machine only. Make one of your own with <code>grove admin hash-password</code>.
        </Alert>
      ) : null}
      {session?.identity_provider === true ? (
        <>
          {refused === undefined ? null : (
            <Alert color="red" variant="outline" mb="md" role="alert">
              {refused}
            </Alert>
          )}
          {/* The provider's page comes next, so this is a link, not a request. */}
          <Button component="a" href="/api/auth/idp" mb="md" variant="default">
            Sign in with your identity provider
          </Button>
        </>
      ) : null}
      <form onSubmit={(event) => void submit(event)}>
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          name="password"
          required
          autoFocus
          value={password}
          error={refusal}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <Button type="submit" mt="md" loading={isBusy} disabled={password === ""}>
          Sign in
        </Button>
      </form>
    </div>
  );
}

/** The outcome of a sign-in at the identity provider, in words; the address has only a code. */
function refusalText(why: string | null): string | undefined {
  switch (why) {
    case null:
      return undefined;
    case "not_operator":
      return "The identity provider knows you, and you are no operator of this console. Ask whoever runs it.";
    case "limited":
      return "Too many sign-ins from your address were refused. Wait a few minutes and try again.";
    case "away":
      return "The identity provider does not answer. Try again in a moment, or use the password.";
    case "needs_tls":
      return "Over plain HTTP everybody on the way could read your session: use HTTPS, or the console's own machine.";
    default:
      return "Signing in at the identity provider failed. Try again.";
  }
}

/** A path of this console, never another host. */
function ownPath(path: string | null): string {
  return path !== null && /^\/(?![/\\])/.test(path) ? path : "/";
}
