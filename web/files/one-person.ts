// One person at a time in a browser: its pages share one cookie, so earlier ones would act for the next.
import { useEffect, useEffectEvent } from "react";

const KEY = "grove-person";

/** Tells the browser's other pages who is signed in; calls back when one of them names somebody else. */
export function useOnePerson(name: string, onOther: () => void): void {
  const call = useEffectEvent(onOther);
  useEffect(() => {
    localStorage.setItem(KEY, name);
    const look = ({ key, newValue }: StorageEvent): void => {
      if (key === KEY && newValue !== null && newValue !== name) call();
    };
    addEventListener("storage", look);
    return () => removeEventListener("storage", look);
  }, [name]);
}

/** Forgets who it was. */
export function forgetPerson(): void {
  localStorage.removeItem(KEY);
}
