// One person at a time in a browser: its pages share one cookie, so earlier ones would act for the next.
import { useEffect, useEffectEvent } from "react";
import { forgetUploads } from "./cut-uploads.ts";

const KEY = "grove-person";

/** Notes who is signed in, for the browser's other pages; what it keeps of somebody else goes. */
export function notePerson(name: string): void {
  // A session ends without a word to this page: by its age, or from another browser.
  if (localStorage.getItem(KEY) !== name) forgetUploads();
  localStorage.setItem(KEY, name);
}

/** Calls back when another page of the browser names somebody else, or nobody after a sign-out. */
export function useOnePerson(name: string, onOther: () => void): void {
  const call = useEffectEvent(onOther);
  useEffect(() => {
    const look = ({ key, newValue }: StorageEvent): void => {
      if (key === KEY && newValue !== name) call();
    };
    addEventListener("storage", look);
    return () => removeEventListener("storage", look);
  }, [name]);
}

/** Forgets who it was, with the names of uploads that the next person need not read. */
export function forgetPerson(): void {
  forgetUploads();
  localStorage.removeItem(KEY);
}
