// The short form of the rig that moves roots under load and kills.
import { testShortForm } from "#prove/short-form.ts";
import { moves } from "./rig.ts";

testShortForm(moves);
