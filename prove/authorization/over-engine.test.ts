// The short form of the authorization rig, against a node of the shared engine (F9).
import { testShortForm } from "#prove/short-form.ts";
import { authorizationOverEngine } from "./rig.ts";

testShortForm(authorizationOverEngine);
