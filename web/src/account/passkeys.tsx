// Passkeys: each logs in and is a second factor, and one with PRF can open the account without the password.
import type { ListedPasskey, NewPasskey } from "@strongroom/client";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Icon } from "../components/icon.js";
import { Menu, type MenuItem } from "../components/menu.js";
import { TextField } from "../components/textField.js";
import { remember, remembered } from "../state/device.js";
import { askFactor } from "../state/factor.js";
import { tell } from "../state/notices.js";
import { saveAgain, useOpen } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { AskPassword } from "./askPassword.js";
import { Loaded, Time, useLoaded } from "./loaded.js";
import { RecoveryCodeSheet } from "./recoveryCodes.js";

const authenticator = async () => (await import("@strongroom/client/passkeys")).browserAuthenticator;

/** What is being done with a passkey. */
type Doing = { readonly what: "unlock" | "lock" | "delete"; readonly passkey: ListedPasskey };

/** The section. */
export function PasskeysSection() {
  const { client } = useOpen();
  const passkeys = useLoaded(() => client.passkeys.list());
  const [isNew, setNew] = useState(false);
  const [doing, setDoing] = useState<Doing>();
  const [added, setAdded] = useState<NewPasskey>();
  const itemsOf = (passkey: ListedPasskey): MenuItem[] => [
    passkey.unlocks
      ? { label: moreTexts.passkeys.lock, icon: "lock", run: () => setDoing({ what: "lock", passkey }) }
      : { label: moreTexts.passkeys.unlock, icon: "key", run: () => setDoing({ what: "unlock", passkey }) },
    { label: texts.common.delete, icon: "trash", isDanger: true, run: () => setDoing({ what: "delete", passkey }) },
  ];
  const run = async (password: string): Promise<void> => {
    if (!doing) return;
    const { what, passkey } = doing;
    if (what === "unlock") await unlockWith(passkey, password);
    else if (what === "lock") await client.passkeys.disableUnlock(passkey, password, { code: askFactor });
    else await client.passkeys.delete(passkey, password, { code: askFactor });
    await saveAgain();
    passkeys.again();
    tell(moreTexts.passkeys.done[what]);
  };
  const unlockWith = async (passkey: ListedPasskey, password: string): Promise<void> => {
    await client.passkeys.enableUnlock(passkey, password, await authenticator());
    const known = remembered();
    if (known) remember({ ...known, hasPasskey: true });
  };
  return (
    <>
      <p class="muted">{moreTexts.passkeys.what}</p>
      <div class="row">
        <Button icon="add" onClick={() => setNew(true)}>
          {moreTexts.passkeys.add}
        </Button>
      </div>
      <Loaded of={passkeys}>
        {(found) =>
          found.length ? (
            <ul class="rows">
              {found.map((one) => (
                <li key={one.credentialId}>
                  <Icon name="key" />
                  <div class="rowText">
                    <p>
                      <bdi>{one.name || moreTexts.passkeys.unknown}</bdi>
                      {one.unlocks && <span class="tag">{moreTexts.passkeys.unlocks}</span>}
                    </p>
                    <p class="muted small">
                      {moreTexts.passkeys.used} <Time at={one.lastUsedAt} />
                    </p>
                  </div>
                  <Menu label={moreTexts.passkeys.actions(one.name)} items={itemsOf(one)} />
                </li>
              ))}
            </ul>
          ) : (
            <p class="muted">{moreTexts.passkeys.none}</p>
          )
        }
      </Loaded>
      {isNew && (
        <Add
          onClose={() => setNew(false)}
          onAdded={(made) => {
            setAdded(made);
            passkeys.again();
          }}
          onUnlock={unlockWith}
        />
      )}
      {added?.recoveryCodes && <RecoveryCodeSheet codes={added.recoveryCodes} onClose={() => setAdded(undefined)} />}
      {doing && (
        <AskPassword
          title={moreTexts.passkeys.titles[doing.what]}
          action={texts.common.next}
          isDanger={doing.what === "delete"}
          run={run}
          onClose={() => setDoing(undefined)}
        >
          <p>{moreTexts.passkeys.whys[doing.what]}</p>
        </AskPassword>
      )}
    </>
  );
}

interface AddProps {
  onClose: () => void;
  onAdded: (made: NewPasskey) => void;
  onUnlock: (passkey: ListedPasskey, password: string) => Promise<void>;
}

/** Add a passkey; where it can, it opens the account at once. */
function Add({ onClose, onAdded, onUnlock }: AddProps) {
  const { client } = useOpen();
  const [name, setName] = useState("");
  const add = async (password: string): Promise<void> => {
    const made = await client.passkeys.add(name.trim(), password, await authenticator(), { code: askFactor });
    if (made.hasPrf)
      await onUnlock(made.passkey, password).catch(() => tell(moreTexts.passkeys.notUnlocking, { kind: "fault" }));
    await saveAgain();
    onAdded(made);
    tell(moreTexts.passkeys.added);
  };
  return (
    <AskPassword
      title={moreTexts.passkeys.add}
      action={texts.common.next}
      missing={() => (name.trim() ? undefined : moreTexts.passkeys.nameMissing)}
      run={add}
      onClose={onClose}
    >
      <p>{moreTexts.passkeys.addWhy}</p>
      <TextField
        label={moreTexts.passkeys.name}
        hint={moreTexts.passkeys.nameHint}
        value={name}
        onInput={setName}
        maxLength={100}
      />
    </AskPassword>
  );
}
