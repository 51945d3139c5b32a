// The short form of the model, against a node of the shared engine (F8).
import { testShortForm } from "#prove/short-form.ts";
import { modelOverEngine } from "./rig.ts";

testShortForm(modelOverEngine);
