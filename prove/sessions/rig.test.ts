// The short form of the rig that compares the session table with a list (F11).
import { testShortForm } from "#prove/short-form.ts";
import { sessions } from "./rig.ts";

testShortForm(sessions);
