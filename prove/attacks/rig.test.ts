// The short form of the rig of attacks by frames and by slow clients (F13).
import { testShortForm } from "#prove/short-form.ts";
import { attacks } from "./rig.ts";

testShortForm(attacks);
