// The operator's page starts here.
import { render } from "preact";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/account.css";
import "../styles/operator.css";
import { followSettings } from "../state/settings.js";
import { OperatorPage } from "./page.js";

followSettings();
const root = document.getElementById("root");
if (root) render(<OperatorPage />, root);
