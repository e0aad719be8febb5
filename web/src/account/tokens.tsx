// Agents' tokens: what each can read and write, when it was used last, and how to make or revoke one.
import { type ApiKey, Locked, type Permission } from "@strongroom/client";
import { unlockReplica } from "@strongroom/client/replica";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { Dialog } from "../components/dialog.js";
import { Icon } from "../components/icon.js";
import { PasswordField } from "../components/passwordField.js";
import { Checkbox, Select } from "../components/select.js";
import { TextField } from "../components/textField.js";
import { remembered } from "../state/device.js";
import { tell } from "../state/notices.js";
import { newClient, useOpen, vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { passwordSentence } from "./faults.js";
import { Fault } from "./frame.js";
import { Loaded, Time, useLoaded } from "./loaded.js";
import { SecretOnce } from "./secretOnce.js";

const ALL: readonly Permission[] = ["read", "write", "delete"];

/** What a key can do, in a sentence. */
function scopeOf({ permissions, vaultUids, collections }: ApiKey, nameOf: (uid: string) => string | undefined): string {
  const allowed = ALL.filter((one) => permissions === null || permissions.includes(one)).map(
    (one) => moreTexts.tokens.can[one],
  );
  const where =
    vaultUids === null
      ? moreTexts.tokens.everything
      : vaultUids.map((uid) => moreTexts.tokens.inVault(nameOf(uid) ?? moreTexts.tokens.goneVault)).join(", ");
  return moreTexts.tokens.scope(allowed.join(", "), where, collections !== null);
}

/** Refuse a password that is not the one of the account, as this device knows it. */
async function checkPassword(password: string): Promise<void> {
  const known = remembered();
  if (!known) throw new Locked();
  const client = newClient(known.server);
  await unlockReplica(client, known.replica, password);
  client.close();
}

/** The section. */
export function Tokens() {
  const { client } = useOpen();
  const names = new Map(useStore(vaults).map(({ uid, name }) => [uid, name]));
  const keys = useLoaded(() => client.apiKeys());
  const [isNew, setNew] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey>();
  const action = useAction();
  const revoke = (): void =>
    void action.run(async () => {
      if (!revoking) return;
      await client.revokeApiKey(revoking.uid);
      setRevoking(undefined);
      keys.again();
      tell(moreTexts.tokens.revoked);
    });
  return (
    <>
      <p class="muted">{moreTexts.tokens.what}</p>
      <div class="row">
        <Button icon="add" onClick={() => setNew(true)}>
          {moreTexts.tokens.make}
        </Button>
      </div>
      <Loaded of={keys}>
        {(found) =>
          found.length ? (
            <ul class="rows">
              {found.map((one) => (
                <li key={one.uid}>
                  <Icon name="key" />
                  <div class="rowText">
                    <p>
                      <bdi>{one.name}</bdi>
                    </p>
                    <p class="small">{scopeOf(one, (uid) => names.get(uid))}</p>
                    <p class="muted small">
                      {moreTexts.tokens.used} <Time at={one.lastUsedAt} /> · {moreTexts.tokens.made}{" "}
                      <Time at={one.createdAt} />
                      {one.expiresAt !== null && (
                        <>
                          {" · "}
                          {moreTexts.tokens.expires} <Time at={one.expiresAt} />
                        </>
                      )}
                    </p>
                  </div>
                  <Button onClick={() => setRevoking(one)}>{moreTexts.tokens.revoke}</Button>
                </li>
              ))}
            </ul>
          ) : (
            <p class="muted">{moreTexts.tokens.none}</p>
          )
        }
      </Loaded>
      {isNew && (
        <NewToken
          onClose={() => {
            setNew(false);
            keys.again();
          }}
        />
      )}
      {revoking && (
        <Confirm
          title={moreTexts.tokens.revokeTitle}
          action={moreTexts.tokens.revoke}
          isDanger
          isBusy={action.isBusy}
          onConfirm={revoke}
          onClose={() => setRevoking(undefined)}
        >
          <p>{moreTexts.tokens.revokeWhy}</p>
          <Fault>{action.fault}</Fault>
        </Confirm>
      )}
    </>
  );
}

/** The dialogue that makes a token. It says exactly what the token will open. */
function NewToken({ onClose }: { onClose: () => void }) {
  const { client } = useOpen();
  const found = useStore(vaults);
  const [name, setName] = useState("");
  const [vault, setVault] = useState("");
  const [collection, setCollection] = useState("items");
  const [isWhole, setWhole] = useState(false);
  const [allowed, setAllowed] = useState<readonly Permission[]>(["read"]);
  const [days, setDays] = useState("30");
  const [token, setToken] = useState<string>();
  const [password, setPassword] = useState("");
  const action = useAction(passwordSentence);
  const isWide = isWhole || days === "0";
  const chosen = found.find(({ uid }) => uid === vault) ?? found[0];
  const called = chosen?.name ?? "";
  const make = async (): Promise<void> => {
    if (isWide) await checkPassword(password);
    const opened = await client.vault(called);
    const expiresAt = days === "0" ? undefined : Date.now() + Number(days) * 86_400_000;
    const options = { permissions: allowed, expiresAt };
    setToken(
      isWhole
        ? await opened.token(name.trim(), options)
        : await opened.collection(collection.trim()).token(name.trim(), options),
    );
  };
  const submit = (): void => {
    if (!name.trim()) return action.refuse(moreTexts.tokens.nameMissing);
    if (!called) return action.refuse(moreTexts.tokens.noVault);
    if (!isWhole && !collection.trim()) return action.refuse(moreTexts.tokens.collectionMissing);
    if (!allowed.length) return action.refuse(moreTexts.tokens.nothingAllowed);
    if (isWide && !password) return action.refuse(texts.logIn.passwordMissing);
    void action.run(make);
  };
  if (token !== undefined) {
    return (
      <Dialog
        title={moreTexts.tokens.readyTitle}
        isWide
        onClose={onClose}
        canClose={false}
        actions={
          <Button kind="primary" onClick={onClose}>
            {texts.common.done}
          </Button>
        }
      >
        <p>{moreTexts.tokens.ready}</p>
        <SecretOnce label={moreTexts.tokens.token} secret={token} />
      </Dialog>
    );
  }
  return (
    <Dialog
      title={moreTexts.tokens.make}
      isWide
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{texts.common.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={action.isBusy}>
            {moreTexts.tokens.submit}
          </Button>
        </>
      }
    >
      <Fault>{action.fault}</Fault>
      <TextField
        label={moreTexts.tokens.name}
        hint={moreTexts.tokens.nameHint}
        value={name}
        onInput={setName}
        maxLength={200}
      />
      <Select
        label={moreTexts.tokens.vault}
        value={chosen?.uid ?? ""}
        onChange={setVault}
        choices={found.map(({ uid, name: one }) => [uid, one] as const)}
      />
      <Select
        label={moreTexts.tokens.reach}
        value={isWhole ? "vault" : "collection"}
        onChange={(next) => setWhole(next === "vault")}
        choices={[
          ["collection", moreTexts.tokens.oneCollection],
          ["vault", moreTexts.tokens.wholeVault],
        ]}
      />
      {!isWhole && (
        <TextField
          label={moreTexts.tokens.collection}
          hint={moreTexts.tokens.collectionHint}
          value={collection}
          onInput={setCollection}
          maxLength={200}
        />
      )}
      <fieldset class="choicesOf">
        <legend>{moreTexts.tokens.allowed}</legend>
        {ALL.map((one) => (
          <Checkbox
            key={one}
            label={moreTexts.tokens.permissions[one]}
            isChecked={allowed.includes(one)}
            onChange={(isOn) => setAllowed(ALL.filter((other) => (other === one ? isOn : allowed.includes(other))))}
          />
        ))}
      </fieldset>
      <Select
        label={moreTexts.tokens.until}
        value={days}
        onChange={setDays}
        choices={["1", "7", "30", "365", "0"].map((one) => [one, moreTexts.tokens.days(Number(one))] as const)}
      />
      {isWide && (
        <PasswordField
          label={moreTexts.askPassword.current}
          autoComplete="current-password"
          value={password}
          onInput={setPassword}
        />
      )}
      <div class="summary">
        <h3>{moreTexts.tokens.summary}</h3>
        <p>
          {moreTexts.tokens.says(
            allowed.map((one) => moreTexts.tokens.can[one]).join(", "),
            called,
            isWhole ? undefined : collection.trim(),
          )}
        </p>
        <p class="muted small">{moreTexts.tokens.serverSees}</p>
      </div>
    </Dialog>
  );
}
