// Programs and devices: the address for WebDAV, app passwords, and sessions of browsers.
import { type ReactNode, useState } from "react";
import type { AppPasswordFacts, MadeAppPassword } from "#wire/webapi/file-access.ts";
import type { SignedIn } from "#wire/webapi/files.ts";
import { door, Refusal } from "./api.ts";
import { AppPasswordDialog } from "./app-password-dialog.tsx";
import { CopyField } from "./copy-field.tsx";
import { forgetPerson } from "./one-person.ts";
import { Problem } from "./problem.tsx";
import { SessionList } from "./session-list.tsx";
import type { Message } from "./toast.tsx";
import { useLoaded } from "./use-loaded.ts";
import { useNow } from "./use-now.ts";
import { momentText, shownName, timeText } from "./words.ts";

/** Shows it. */
export function AccessPage(props: {
  readonly me: SignedIn;
  readonly say: (message: Message) => void;
}): ReactNode {
  const { me, say } = props;
  const nowMs = useNow();
  const [isAsking, setIsAsking] = useState(false);
  const [made, setMade] = useState<MadeAppPassword>();
  const own = useLoaded("", () => door.appPasswords());
  const passwords = own.value?.passwords;
  const isOldSignIn = own.problem instanceof Refusal && own.problem.code === "SIGN_IN_AGAIN";
  const revoke = ({ id, name }: AppPasswordFacts): Promise<void> =>
    own.run(async () => {
      await door.revokeAppPassword(id);
      if (made?.facts.id === id) setMade(undefined);
      say({ text: `${name} cannot sign in any more.` });
    });
  return (
    <div className="narrow">
      <h1>Programs and devices</h1>
      <h2>Your files as a drive</h2>
      <p className="quiet">
        File managers and telephones reach your files by WebDAV: this address, your e-mail address{" "}
        <b>{me.username}</b>, and an app password.
      </p>
      <CopyField label="Address for WebDAV" text={me.webdav_url} />
      <h2>App passwords</h2>
      <p className="quiet">
        One for each program, so that each can be shut out by itself. Never give a program the password with
        which you sign in.
      </p>
      {made !== undefined && (
        <div className="made">
          <CopyField label={`App password of ${made.facts.name}, shown this once`} text={made.password} />
        </div>
      )}
      <Problem of={own.problem} />
      {passwords === undefined && own.problem === undefined && <p>Asking …</p>}
      {passwords?.length === 0 && <p>There is none yet: no program can reach your files.</p>}
      <ul className="rows">
        {passwords?.map((password) => (
          <PasswordRow
            key={password.id}
            password={password}
            nowMs={nowMs}
            onRevoke={() => void revoke(password)}
          />
        ))}
      </ul>
      <p>
        <button type="button" className="main" onClick={() => setIsAsking(true)}>
          Make an app password
        </button>
      </p>
      <SessionList nowMs={nowMs} isOldSignInTold={isOldSignIn} say={say} />
      <SignOutEverywhere />
      {isAsking && (
        <AppPasswordDialog
          onClose={() => setIsAsking(false)}
          onMade={(password) => {
            setMade(password);
            setIsAsking(false);
            own.refresh();
          }}
        />
      )}
    </div>
  );
}

function PasswordRow(props: {
  readonly password: AppPasswordFacts;
  readonly nowMs: number;
  readonly onRevoke: () => void;
}): ReactNode {
  const { password, nowMs } = props;
  const { folder, read_only: isReadOnly, ends_ms: endsMs, last_used_ms: lastMs } = password;
  const name = shownName(password.name);
  const what = `${isReadOnly ? "Reads" : "Reads and writes"} ${folder === "" ? "everything" : shownName(folder)}`;
  return (
    <li>
      <div>
        <b>{name}</b>
        <span className="quiet">
          {what} · {endsMs === 0 ? "no end" : `ends ${momentText(endsMs)}`}
        </span>
        <span className="quiet">
          Made {timeText(password.created_ms, nowMs)} ·{" "}
          {lastMs === 0 ? "never used" : `last used ${timeText(lastMs, nowMs)}`}
        </span>
      </div>
      <button type="button" onClick={props.onRevoke} aria-label={`Revoke ${name}`}>
        Revoke
      </button>
    </li>
  );
}

function SignOutEverywhere(): ReactNode {
  const [problem, setProblem] = useState<unknown>();
  const end = async (): Promise<void> => {
    try {
      await door.signOutEverywhere();
      forgetPerson();
      location.assign("/");
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <>
      <p className="quiet">Or end all of them, this one too; app passwords and links stay.</p>
      <Problem of={problem} />
      <p>
        <button type="button" onClick={() => void end()}>
          Sign out everywhere
        </button>
      </p>
    </>
  );
}
