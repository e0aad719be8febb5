// The start of the app.
import { render } from "preact";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/account.css";
import "./styles/items.css";
import "./styles/time.css";
import { App } from "./app.js";
import { followSettings } from "./state/settings.js";
import { followReleases } from "./state/release.js";
import { start } from "./state/session.js";

followSettings();
const root = document.getElementById("root");
if (root) render(<App />, root);
void start();
void followReleases();
