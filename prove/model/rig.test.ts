// The short form of the rig that compares every answer of a FileServer with a model (F8).
import { testShortForm } from "#prove/short-form.ts";
import { model } from "./rig.ts";

testShortForm(model);
