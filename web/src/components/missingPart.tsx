// Where a part of the app could not be loaded: the server has a newer release, or cannot be reached.
import { texts } from "../texts/en.js";
import { Button } from "./button.js";

/** It in place of the part, with a button to reload the page. */
export function MissingPart() {
  return (
    <div class="pad stack" role="alert">
      <p>{texts.release.partMissing}</p>
      <div class="row">
        <Button onClick={() => location.reload()}>{texts.release.reload}</Button>
      </div>
    </div>
  );
}
