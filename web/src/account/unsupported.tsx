// The page where the browser gives no means to encrypt: plain HTTP on a network.
import { moreTexts } from "../texts/later.js";
import { Frame } from "./frame.js";

/** Why nothing works here, and what to do. */
export function Unsupported() {
  return (
    <Frame title={moreTexts.unsupported.title} isWide>
      <p>{moreTexts.unsupported.why}</p>
      <h2>{moreTexts.unsupported.what}</h2>
      <ul class="steps">
        {moreTexts.unsupported.steps.map((step) => <li key={step}>{step}</li>)}
      </ul>
    </Frame>
  );
}
