// Log in, and the ways to the other pages without an account on this device.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { PasswordField } from "../components/passwordField.js";
import { Waiting } from "../components/progress.js";
import { defaultServer } from "../state/device.js";
import { logIn, logInWithPasskey } from "../state/session.js";
import { texts } from "../texts/en.js";
import { useAction } from "./action.js";
import { Fault, Form, Frame } from "./frame.js";
import { EmailField, type LoginSubpage, isEmail, ServerField, type Typed } from "./loginFields.js";
import { SignUp } from "./signUp.js";

const LATER = {
  signUp: async () => SignUp,
  recover: async () => (await import("./recover.js")).Recover,
  moveIn: async () => (await import("./moveIn.js")).MoveIn,
} as const;

const hasPasskeys = typeof PublicKeyCredential !== "undefined";

/** The page where there is no account on this device, or where the email is needed. */
export function LogIn({ onBack }: { onBack?: () => void }) {
  const [typed, setTyped] = useState<Typed>({ email: "", server: defaultServer() });
  const [page, setPage] = useState<keyof typeof LATER>();
  const [loaded, setLoaded] = useState<{ Page: LoginSubpage }>();
  const failed = useAction();
  useEffect(() => {
    setLoaded(undefined);
    if (page) void failed.run(async () => setLoaded({ Page: await LATER[page]() }));
  }, [page]);
  if (page && loaded) return <loaded.Page typed={typed} onTyped={setTyped} onBack={() => setPage(undefined)} />;
  if (page)
    return (
      <Frame title={texts.common.name}>
        {failed.fault ? <Fault>{failed.fault}</Fault> : <Waiting label={texts.common.loading} />}
      </Frame>
    );
  return <LogInForm typed={typed} onTyped={setTyped} onPage={setPage} onBack={onBack} />;
}

interface FormProps {
  typed: Typed;
  onTyped: (typed: Typed) => void;
  onPage: (page: keyof typeof LATER) => void;
  onBack: (() => void) | undefined;
}

function LogInForm({ typed, onTyped, onPage, onBack }: FormProps) {
  const [password, setPassword] = useState("");
  const action = useAction();
  const { email, server } = typed;
  const submit = (): void => {
    if (!isEmail(email)) return action.refuse(email.trim() ? texts.logIn.emailWrong : texts.logIn.emailMissing);
    if (!password) return action.refuse(texts.logIn.passwordMissing);
    void action.run(() => logIn(server, email.trim(), password));
  };
  return (
    <Frame title={texts.logIn.title} below={<p class="muted small">{texts.logIn.trust}</p>}>
      <Form onSubmit={submit}>
        <Fault>{action.fault}</Fault>
        <ServerField typed={typed} onTyped={onTyped} />
        <EmailField typed={typed} onTyped={onTyped} isFirst />
        <PasswordField
          label={texts.common.password}
          autoComplete="current-password"
          value={password}
          onInput={setPassword}
        />
        <Button type="submit" kind="primary" isBusy={action.isBusy}>
          {texts.logIn.submit}
        </Button>
        {action.isBusy && (
          <p class="hint" role="status">
            {texts.logIn.working}
          </p>
        )}
      </Form>
      <div class="choices">
        {hasPasskeys && (
          <Button
            kind="secondary"
            icon="key"
            isDisabled={action.isBusy}
            onClick={() => void action.run(() => logInWithPasskey(server))}
          >
            {texts.logIn.passkey}
          </Button>
        )}
        {onBack ? (
          <Button kind="plain" onClick={onBack}>
            {texts.common.back}
          </Button>
        ) : (
          <Button kind="plain" onClick={() => onPage("signUp")}>
            {texts.logIn.signUp}
          </Button>
        )}
        <Button kind="plain" onClick={() => onPage("recover")}>
          {texts.logIn.recover}
        </Button>
        {!onBack && (
          <Button kind="plain" onClick={() => onPage("moveIn")}>
            {texts.logIn.moveIn}
          </Button>
        )}
      </div>
    </Frame>
  );
}
