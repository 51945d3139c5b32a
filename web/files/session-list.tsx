// The browsers in which somebody is signed in, and the end of those sessions.
import { type ReactNode, useState } from "react";
import type { SessionFacts } from "#wire/webapi/file-access.ts";
import { door, Refusal } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "./problem.tsx";
import type { Message } from "./toast.tsx";
import { useLoaded } from "./use-loaded.ts";
import { counted, exactTime, timeText } from "./words.ts";

/** What is to end: one session, or all others. */
type Asked = SessionFacts | "others";

/** Shows them. What wants a fresh sign-in is not said twice on one page. */
export function SessionList(props: {
  readonly nowMs: number;
  readonly isOldSignInTold: boolean;
  readonly say: (message: Message) => void;
}): ReactNode {
  const { nowMs, isOldSignInTold, say } = props;
  const [asked, setAsked] = useState<Asked>();
  const own = useLoaded("", () => door.sessions());
  const sessions = own.value?.sessions;
  const isOldSignIn = own.problem instanceof Refusal && own.problem.code === "SIGN_IN_AGAIN";
  const others = sessions?.filter(({ current }) => !current).length ?? 0;
  const end = (which: Asked): Promise<void> => {
    setAsked(undefined);
    return own.run(async () => {
      const { ended } = await door.endSessions(which === "others" ? { others: true } : { id: which.id });
      const what = which === "others" ? counted(ended.length, "other session") : nameOf(which);
      say({ text: `Signed out: ${what}. What it was doing stops within seconds.` });
    });
  };
  return (
    <>
      <h2>Sessions</h2>
      <p className="quiet">
        The browsers in which you are signed in. A sign-in ends after 7 days, or after a day without a use.
        End one that you do not know, and those of a device that is gone.
      </p>
      {isOldSignIn && isOldSignInTold ? (
        <p>They are listed after a fresh sign-in, too.</p>
      ) : (
        <Problem of={own.problem} />
      )}
      {sessions === undefined && own.problem === undefined && <p>Asking …</p>}
      <ul className="rows">
        {sessions?.map((session) => (
          <SessionRow key={session.id} session={session} nowMs={nowMs} onEnd={() => setAsked(session)} />
        ))}
      </ul>
      {others > 0 && (
        <p>
          <button type="button" onClick={() => setAsked("others")}>
            End all others
          </button>
        </p>
      )}
      {asked !== undefined && (
        <EndDialog
          what={asked === "others" ? undefined : asked}
          onEnd={() => void end(asked)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

function SessionRow(props: {
  readonly session: SessionFacts;
  readonly nowMs: number;
  readonly onEnd: () => void;
}): ReactNode {
  const { session, nowMs } = props;
  const { began_ms: beganMs, last_used_ms: lastMs, current: isThis } = session;
  return (
    <li>
      <div>
        <b>{nameOf(session)}</b>
        <span className="quiet">
          Began <span title={exactTime(beganMs)}>{timeText(beganMs, nowMs)}</span> {placeOf(session)}
        </span>
        {isThis ? (
          <span>● This browser</span>
        ) : (
          <span className="quiet">
            Last used <span title={exactTime(lastMs)}>{timeText(lastMs, nowMs)}</span>
          </span>
        )}
      </div>
      {!isThis && (
        <button
          type="button"
          onClick={props.onEnd}
          aria-label={`End the session of ${nameOf(session)} ${placeOf(session)}`}
        >
          End
        </button>
      )}
    </li>
  );
}

/** Asks before the end of a session, or of all others. */
function EndDialog(props: {
  readonly what: SessionFacts | undefined;
  readonly onEnd: () => void;
  readonly onClose: () => void;
}): ReactNode {
  const { what } = props;
  return (
    <Dialog
      title={what === undefined ? "End all other sessions?" : "End this session?"}
      onClose={props.onClose}
    >
      <p>
        {what === undefined
          ? "Every browser but this one will be signed out."
          : `${nameOf(what)} ${placeOf(what)} will be signed out.`}{" "}
        Uploads and downloads under way there stop. App passwords and links stay.
      </p>
      <div className="actions">
        <button type="button" onClick={props.onClose}>
          Cancel
        </button>
        <button type="button" className="danger" onClick={props.onEnd}>
          {what === undefined ? "End all others" : "End the session"}
        </button>
      </div>
    </Dialog>
  );
}

function nameOf({ browser }: SessionFacts): string {
  return browser === "" ? "A browser without a name" : browser;
}

function placeOf({ address }: SessionFacts): string {
  return address === "" ? "from a place that was not kept" : `from ${address}`;
}
