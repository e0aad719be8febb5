// The page where the browser gives no means to encrypt: plain HTTP on a network.
import { texts } from "../texts/en.js";
import { Frame } from "./frame.js";

/** Why nothing works here, and what to do. */
export function Unsupported() {
  return (
    <Frame title={texts.unsupported.title} isWide>
      <p>{texts.unsupported.why}</p>
      <h2>{texts.unsupported.what}</h2>
      <ul class="steps">
        {texts.unsupported.steps.map((step) => <li key={step}>{step}</li>)}
      </ul>
    </Frame>
  );
}
