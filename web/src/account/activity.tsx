// The log of the account: what the server has written down of logins and changes.
import type { Event } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { useOpen } from "../state/session.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { Loaded, Time, useLoaded } from "./loaded.js";

const PAGE = 50;
const kinds: Readonly<Record<string, string>> = moreTexts.activity.kinds;

/** The section. */
export function Activity() {
  const { client } = useOpen();
  const [shown, setShown] = useState(PAGE);
  const log = useLoaded(async () => {
    const found: Event[] = [];
    for await (const event of client.log()) found.push(event);
    return found;
  });
  return (
    <>
      <p class="muted">{moreTexts.activity.what}</p>
      <Loaded of={log}>
        {(found) => (
          <>
            <div class="scroll">
              <table class="table">
                <thead>
                  <tr>
                    <th scope="col">{moreTexts.activity.when}</th>
                    <th scope="col">{moreTexts.activity.event}</th>
                    <th scope="col">{moreTexts.activity.from}</th>
                  </tr>
                </thead>
                <tbody>
                  {found.slice(0, shown).map(({ id, type, createdAt, address, userAgent }) => (
                    <tr key={id}>
                      <td>
                        <Time at={createdAt} />
                      </td>
                      <td>{Object.hasOwn(kinds, type) ? kinds[type] : type}</td>
                      <td title={userAgent}>
                        <bdi>{address}</bdi>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {found.length > shown && (
              <div class="row">
                <Button onClick={() => setShown(shown + PAGE)}>{moreTexts.activity.more(found.length - shown)}</Button>
              </div>
            )}
          </>
        )}
      </Loaded>
    </>
  );
}
