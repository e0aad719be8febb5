// The operator's page starts here.
import "../styles/base.css";
import { render } from "preact";
import { texts } from "../texts/en.js";

const root = document.getElementById("root");
if (root) render(<main>{texts.page.title}</main>, root);
