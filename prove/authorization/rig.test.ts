// The short form of the rig of authorization (F9).
import { testShortForm } from "#prove/short-form.ts";
import { authorization } from "./rig.ts";

testShortForm(authorization);
