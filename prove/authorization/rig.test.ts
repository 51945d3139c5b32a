// The short form of the rig that asks for what callers may not have (F9).
import { testShortForm } from "#prove/short-form.ts";
import { authorization } from "./rig.ts";

testShortForm(authorization);
