// The operator's page starts here.
import "../styles/base.css";
import { render } from "preact";
import { texts } from "../texts/en.js";

const root = document.getElementById("root");
if (root) render(<main><h1>{texts.page.title}</h1></main>, root);
