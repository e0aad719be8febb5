// Items of other password managers in, all items out: the formats of the command line.
import { items } from "@strongroom/client/items";
import { PasswordNeeded } from "@strongroom/client/items/errors";
// Not from the module above: the first load has that one, and needs no formats.
import {
  guessFormat,
  makePlan,
  READ_FORMATS,
  type ReadFormat,
  readItems,
} from "@strongroom/client/items/formats/table";
import type { Plan } from "@strongroom/client/items/formats/plan";
import { useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { PasswordField } from "../components/passwordField.js";
import { Progress } from "../components/progress.js";
import { Select } from "../components/select.js";
import { textAt } from "../items/members.js";
import { putOff } from "../state/device.js";
import { tell } from "../state/notices.js";
import { vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useAction } from "./action.js";
import { type Exported, ExportForm, inFolder } from "./exportForm.js";
import { chooseFile } from "./files.js";
import { Fault } from "./frame.js";

const AT_ONCE = 200; // items in one transaction
const HEAD = 4096; // bytes that tell a format

/** The section. */
export function Transfer() {
  return (
    <>
      <Import />
      <section class="stack section">
        <h3>{moreTexts.transfer.out}</h3>
        <Export />
      </section>
    </>
  );
}

/** An import: a file, a dry run that says what will come, then the items. */
function Import() {
  const found = useStore(vaults);
  const [vault, setVault] = useState("");
  const [file, setFile] = useState<File>();
  const [format, setFormat] = useState<ReadFormat>("bitwarden");
  const [password, setPassword] = useState<string>(); // asked for once the file says that it is encrypted
  const [plan, setPlan] = useState<Plan>();
  const [done, setDone] = useState<readonly [number, number | undefined]>();
  const action = useAction();
  const into = found.find(({ uid }) => uid === vault) ?? found[0];
  const forget = (): void => {
    setPlan(undefined);
    setDone(undefined);
  };
  const choose = async (): Promise<void> => {
    const chosen = await chooseFile(".json,.csv,.xml,.1pux,.zip,.env,text/plain");
    if (!chosen) return;
    forget();
    setFile(chosen);
    setPassword(undefined);
    const guessed = guessFormat(chosen.name, new Uint8Array(await chosen.slice(0, HEAD).arrayBuffer()));
    if (guessed) setFormat(guessed);
  };
  const look = async (): Promise<void> => {
    if (!file || !into) return;
    forget();
    setDone([0, undefined]);
    try {
      const read = readItems(format, file, { password });
      setPlan(
        await makePlan(read, items(into), (count) => {
          putOff();
          setDone([count, undefined]);
        }),
      );
    } catch (fault) {
      if (fault instanceof PasswordNeeded) setPassword((before) => before ?? "");
      throw fault;
    } finally {
      setDone(undefined);
    }
  };
  const take = async (): Promise<void> => {
    if (!plan || !into) return;
    for (let at = 0; at < plan.new.length; at += AT_ONCE) {
      putOff(); // it locks when nothing goes on any more
      setDone([at, plan.new.length]);
      await items(into).createMany(plan.new.slice(at, at + AT_ONCE));
    }
    tell(moreTexts.transfer.taken(plan.new.length));
    forget();
    setFile(undefined);
  };
  return (
    <section class="stack narrow">
      <h3>{moreTexts.transfer.in}</h3>
      <p class="muted">{moreTexts.transfer.inWhat}</p>
      <div class="row">
        <Button icon="file" onClick={() => void action.run(choose)}>
          {moreTexts.transfer.choose}
        </Button>
        {file && (
          <span class="clip">
            <bdi>{file.name}</bdi>
          </span>
        )}
      </div>
      {file && (
        <>
          <Select
            label={moreTexts.transfer.format}
            value={format}
            onChange={(next) => {
              setFormat(next);
              forget();
            }}
            choices={READ_FORMATS.map((one) => [one, moreTexts.transfer.formats[one]] as const)}
          />
          <Select
            label={moreTexts.transfer.into}
            value={into?.uid ?? ""}
            onChange={(next) => {
              setVault(next);
              forget();
            }}
            choices={found.map(({ uid, name }) => [uid, name] as const)}
          />
          {password !== undefined && (
            <PasswordField
              label={moreTexts.transfer.filePassword}
              autoComplete="off"
              value={password}
              onInput={setPassword}
            />
          )}
        </>
      )}
      <Fault>{action.fault}</Fault>
      {file && !plan && (
        <div class="row">
          <Button kind="primary" isBusy={action.isBusy} onClick={() => void action.run(look)}>
            {moreTexts.transfer.look}
          </Button>
        </div>
      )}
      {plan && <Preview plan={plan} />}
      {done && <Progress label={moreTexts.transfer.progress(...done)} done={done[0]} total={done[1]} />}
      {plan && (
        <div class="row">
          <Button
            kind="primary"
            isBusy={action.isBusy}
            isDisabled={!plan.new.length}
            onClick={() => void action.run(take)}
          >
            {moreTexts.transfer.take(plan.new.length)}
          </Button>
          <Button onClick={forget}>{texts.common.cancel}</Button>
        </div>
      )}
    </section>
  );
}

/** What would come. */
function Preview({ plan }: { plan: Plan }) {
  return (
    <div class="summary" role="status">
      <h3>{moreTexts.transfer.wouldCome(plan.new.length)}</h3>
      <ul>
        {Object.entries(plan.counts).map(([type, count]) => (
          <li key={type}>{moreTexts.transfer.count(count, textAt(moreTexts.transfer.types, type) ?? type)}</li>
        ))}
      </ul>
      {plan.known > 0 && <p>{moreTexts.transfer.known(plan.known)}</p>}
      {plan.problems.length > 0 && (
        <details>
          <summary>{moreTexts.transfer.problems(plan.problems.length)}</summary>
          <ul>
            {plan.problems.map((sentence, at) => (
              <li key={at}>
                <bdi>{sentence}</bdi>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

/** An export of all items, or of one vault. */
function Export() {
  const found = useStore(vaults);
  const [vault, setVault] = useState("");
  const gather = async (told: (count: number) => void): Promise<readonly Exported[]> => {
    const chosen = found.filter(({ uid }) => !vault || uid === vault);
    const all: Exported[] = [];
    for (const one of chosen) {
      for await (const document of items(one)) {
        all.push([document.uid, chosen.length > 1 ? inFolder(document.value, one.name) : document.value]);
        if (all.length % AT_ONCE === 0) {
          putOff();
          told(all.length);
        }
      }
    }
    return all;
  };
  return (
    <div class="stack narrow">
      <p class="muted">{moreTexts.transfer.outWhat}</p>
      <ExportForm gather={gather}>
        <Select
          label={moreTexts.transfer.which}
          value={vault}
          onChange={setVault}
          choices={[["", moreTexts.transfer.all] as const, ...found.map(({ uid, name }) => [uid, name] as const)]}
        />
      </ExportForm>
    </div>
  );
}
