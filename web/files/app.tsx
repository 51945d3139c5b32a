// The frame: who is signed in, where things are, and the page that the address names.
import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import type { QuotaFacts, SignedIn } from "#wire/webapi/files.ts";
import { door, Refusal } from "./api.ts";
import { FolderPage } from "./folder-page.tsx";
import { goTo, searchOf, useSearch, type View, viewOf } from "./place-in-address.ts";
import { QuotaBar } from "./quota-bar.tsx";
import { SharedPage } from "./shared-page.tsx";
import { Toast, useMessage } from "./toast.tsx";
import { TrashPage } from "./trash-page.tsx";
import { UploadPanel } from "./upload-panel.tsx";
import { uploads } from "./uploads.ts";

const WHY_BACK: Readonly<Record<string, string>> = {
  away: "The sign-in service does not answer at the moment. Try again in a minute.",
  failed: "That sign-in did not work. Begin again.",
  locked: "Your access is locked. Ask your administrator.",
  not_set_up:
    "Signing in with a browser is not set up here. Ask your administrator; WebDAV works without it.",
};

const PLACES: readonly { readonly view: View; readonly text: string }[] = [
  { view: { kind: "folder", root: "", path: "/" }, text: "My files" },
  { view: { kind: "shared" }, text: "Shared with me" },
  { view: { kind: "trash" }, text: "Trash" },
];

/** The whole page. */
export function App(): ReactNode {
  const [me, setMe] = useState<SignedIn | Refusal>();
  useEffect(() => {
    door.me().then(setMe, setMe);
  }, []);
  if (me === undefined) return <p className="alone">Asking who you are …</p>;
  if (!(me instanceof Refusal)) return <SignedInApp me={me} />;
  return me.code === "SIGN_IN" ? <SignInPage /> : <AwayPage why={me.message} />;
}

function SignInPage(): ReactNode {
  const why = WHY_BACK[new URLSearchParams(location.search).get("refused") ?? ""];
  const to = why === undefined ? location.pathname + location.search : "/";
  return (
    <main className="alone">
      <h1>Your files</h1>
      {why !== undefined && (
        <p className="problem" role="alert">
          ■ {why}
        </p>
      )}
      <p>Sign in to see, upload and share your files.</p>
      <a className="button main" href={`/sign-in?to=${encodeURIComponent(to)}`}>
        Sign in
      </a>
    </main>
  );
}

function AwayPage({ why }: { readonly why: string }): ReactNode {
  return (
    <main className="alone">
      <h1>Your files are not reachable</h1>
      <p role="alert">{why}</p>
      <button type="button" className="main" onClick={() => location.reload()}>
        Try again
      </button>
    </main>
  );
}

function SignedInApp({ me }: { readonly me: SignedIn }): ReactNode {
  const search = useSearch();
  const view = useMemo(() => viewOf(search), [search]);
  const { message, say } = useMessage();
  const [quota, setQuota] = useState<QuotaFacts>();
  const root = view.kind === "folder" ? view.root : "";
  const readQuota = useCallback(() => {
    door.quota(root).then(setQuota, () => undefined);
  }, [root]);
  useEffect(readQuota, [readQuota, view]);
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent): void => {
      if (uploads.view().items.some(({ state }) => state === "sending" || state === "waiting"))
        event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);
  const signOut = async (): Promise<void> => {
    try {
      await door.signOut();
      location.assign("/");
    } catch (error) {
      say({ text: error instanceof Error ? error.message : String(error), isProblem: true });
    }
  };
  const here = view.kind === "folder" ? view : undefined;
  return (
    <div className="frame">
      <a className="skip-link" href="#main">
        To the files
      </a>
      <header className="frame-header">
        <span className="brand">Grove</span>
        <span className="who" title={me.username}>
          {me.username}
        </span>
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </header>
      <nav className="frame-nav" aria-label="Places">
        {PLACES.map(({ view: to, text }) => (
          <a
            key={text}
            href={searchOf(to)}
            aria-current={isAt(view, to) ? "page" : undefined}
            onClick={(event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return;
              event.preventDefault();
              goTo(to);
            }}
          >
            {text}
          </a>
        ))}
        <QuotaBar quota={quota} />
      </nav>
      <main id="main" className="frame-main" tabIndex={-1}>
        {here !== undefined && (
          <FolderPage key={`${here.root} ${here.path}`} here={here} say={say} onChange={readQuota} />
        )}
        {view.kind === "shared" && <SharedPage />}
        {view.kind === "trash" && <TrashPage say={say} onChange={readQuota} />}
      </main>
      <UploadPanel />
      <Toast message={message} say={say} />
    </div>
  );
}

function isAt(view: View, to: View): boolean {
  if (view.kind !== to.kind) return view.kind === "folder" && view.root !== "" && to.kind === "shared";
  return view.kind !== "folder" || view.root === "";
}
