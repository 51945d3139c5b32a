// With whom a file or folder is shared, and sharing it with one more person.
import { type ReactNode, useState } from "react";
import { door, type Place, Refusal } from "./api.ts";
import { TextDialog } from "./dialog.tsx";

/** The dialog. */
export function ShareDialog(props: {
  readonly name: string;
  readonly place: Place;
  readonly shared: readonly string[];
  readonly onChange: () => void;
  readonly onClose: () => void;
}): ReactNode {
  const [shared, setShared] = useState(props.shared);
  const [problem, setProblem] = useState<string>();
  const run = async (act: () => Promise<unknown>): Promise<void> => {
    try {
      await act();
      setProblem(undefined);
      props.onChange();
    } catch (error) {
      const isOld = error instanceof Refusal && error.message.includes("sign-in of the last ten minutes");
      const text = isOld
        ? "Sharing needs a fresh sign-in: sign out, sign in, and share within ten minutes."
        : error instanceof Error
          ? error.message
          : String(error);
      throw new Error(text, { cause: error });
    }
  };
  const end = async (user: string): Promise<void> => {
    try {
      await run(() => door.unshare(props.place, user));
      setShared((before) => before.filter((other) => other !== user));
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <TextDialog
      title={`Share ${props.name}`}
      label="E-mail address"
      type="email"
      first=""
      button="Share"
      onClose={props.onClose}
      act={async (user) => {
        await run(() => door.share(props.place, user));
        setShared((before) => [...new Set([...before, user.toLowerCase()])]);
      }}
    >
      <p className="quiet">They can read and write it. What they store there counts in your space.</p>
      {shared.length === 0 ? (
        <p>It is shared with nobody.</p>
      ) : (
        <ul className="people">
          {shared.map((user) => (
            <li key={user}>
              <span>{user}</span>
              <button type="button" onClick={() => void end(user)} aria-label={`Stop sharing with ${user}`}>
                Stop
              </button>
            </li>
          ))}
        </ul>
      )}
      {problem !== undefined && (
        <p className="problem" role="alert">
          ■ {problem}
        </p>
      )}
    </TextDialog>
  );
}
