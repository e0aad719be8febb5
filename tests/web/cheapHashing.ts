// Runs before the app in the build of the tests: Argon2id at a cost that they can afford.
import { hashCheaply } from "../../js/test/cheapHashing.js";

hashCheaply();
