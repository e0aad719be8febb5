// Devices and sessions: what is logged in, and how to end it.
import type { ListedSession } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { Icon } from "../components/icon.js";
import { tell } from "../state/notices.js";
import { useOpen } from "../state/session.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { Fault } from "./frame.js";
import { Loaded, Time, useLoaded } from "./loaded.js";

/** The section. */
export function Devices() {
  const { client } = useOpen();
  const sessions = useLoaded(() => client.sessions());
  const [ending, setEnding] = useState<ListedSession>();
  const action = useAction();
  const end = (): void =>
    void action.run(async () => {
      if (!ending) return;
      await client.endSession(ending.id);
      setEnding(undefined);
      sessions.again();
      tell(moreTexts.devices.ended);
    });
  return (
    <>
      <p class="muted">{moreTexts.devices.what}</p>
      <Loaded of={sessions}>
        {(found) => (
          <ul class="rows">
            {found.map((one) => (
              <li key={one.id}>
                <Icon name="device" />
                <div class="rowText">
                  <p>
                    <bdi>{one.deviceName ?? moreTexts.devices.unnamed}</bdi>
                    {one.current && <span class="tag">{moreTexts.devices.current}</span>}
                  </p>
                  <p class="muted small">
                    {moreTexts.devices.used} <Time at={one.lastUsedAt} />
                    {one.address !== null && (
                      <>
                        {" · "}
                        <bdi>{one.address}</bdi>
                      </>
                    )}
                  </p>
                  {one.userAgent !== null && (
                    <p class="muted small clip" title={one.userAgent}>
                      <bdi>{one.userAgent}</bdi>
                    </p>
                  )}
                </div>
                {!one.current && <Button onClick={() => setEnding(one)}>{moreTexts.devices.end}</Button>}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {ending && (
        <Confirm
          title={moreTexts.devices.endTitle}
          action={moreTexts.devices.end}
          isDanger
          isBusy={action.isBusy}
          onConfirm={end}
          onClose={() => setEnding(undefined)}
        >
          <p>{moreTexts.devices.endWhy}</p>
          <Fault>{action.fault}</Fault>
        </Confirm>
      )}
    </>
  );
}
