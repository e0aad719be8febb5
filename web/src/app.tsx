// The shell: which view is shown, the navigation, the keys of the keyboard, what the app says about its state.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Confirm } from "./components/confirm.js";
import { MissingPart } from "./components/missingPart.js";
import { Waiting } from "./components/progress.js";
import { Toasts } from "./components/toast.js";
import { LogIn } from "./account/logIn.js";
import { FactorDialog } from "./account/secondFactor.js";
import { Unlock } from "./account/unlock.js";
import { SyncAlarm, SyncBanner } from "./shell/banner.js";
import { useKeys } from "./shell/keyboard.js";
import { Navigation, TabBar } from "./shell/navigation.js";
import { drafts } from "./items/drafts.js";
import { ItemsView } from "./items/itemsView.js";
import { LazyViews } from "./items/lazyLoading.js";
import { route } from "./state/route.js";
import { lock, session } from "./state/session.js";
import { useStore } from "./state/store.js";
import { texts } from "./texts/en.js";

type View = ComponentType<{ parts: readonly string[] }>;

/** Views that are loaded when they are shown for the first time. */
const LAZY: Record<string, () => Promise<View>> = {
  trash: async () => (await import("./time/trashView.js")).TrashView,
  conflicts: async () => (await import("./time/conflictsView.js")).ConflictsView,
  waiting: async () => (await import("./time/waitingView.js")).WaitingView,
  settings: async () => (await import("./account/settingsView.js")).SettingsView,
};

/** The whole page. */
export function App() {
  const now = useStore(session);
  const { kind } = now;
  return (
    <>
      {kind === "starting" && <Waiting label={texts.common.loading} />}
      {now.kind === "unsupported" && (
        <LazyViews show={({ Unsupported }) => <Unsupported isMisplaced={now.isMisplaced} />} />
      )}
      {kind === "away" && <LogIn />}
      {kind === "locked" && <Unlock />}
      {kind === "open" && <Shell />}
      <FactorDialog />
      <Toasts />
    </>
  );
}

/** The open account. */
function Shell() {
  const { view, parts } = useStore(route);
  const [isHelp, setHelp] = useState(false);
  const [isLocking, setLocking] = useState(false);
  // A key is pressed by mistake more easily than a button: it asks before something that was typed is lost.
  useKeys(
    () => setHelp(true),
    () => (drafts.getSnapshot().size ? setLocking(true) : void lock()),
  );
  return (
    <div class="shell">
      {/* biome-ignore lint/a11y/useValidAnchor: a link to a part of this page, whose fragment is the route */}
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        {texts.shell.skip}
      </a>
      <Navigation view={view} parts={parts} onHelp={() => setHelp(true)} />
      <SyncAlarm />
      <main class="main" id="main" tabIndex={-1} aria-label={texts.shell.content}>
        <h1 class="visuallyHidden">{texts.common.name}</h1>
        {Object.hasOwn(LAZY, view) ? <LazyPage key={view} name={view} parts={parts} /> : <ItemsView parts={parts} />}
      </main>
      <SyncBanner />
      <TabBar view={view} />
      {isLocking && (
        <Confirm
          title={texts.shell.lockTitle}
          action={texts.shell.lock}
          isDanger
          onConfirm={() => void lock()}
          onClose={() => setLocking(false)}
        >
          <p>{texts.shell.lockWhat}</p>
        </Confirm>
      )}
      {isHelp && <LazyViews show={({ KeyboardSheet }) => <KeyboardSheet onClose={() => setHelp(false)} />} />}
    </div>
  );
}

/** A view that is loaded when it is needed. */
function LazyPage({ name, parts }: { name: string; parts: readonly string[] }) {
  const [view, setView] = useState<{ shown: View } | "fault">();
  useEffect(() => {
    LAZY[name]?.().then(
      (shown) => setView({ shown }),
      () => setView("fault"),
    );
  }, [name]);
  if (view === "fault") return <MissingPart />;
  return view ? <view.shown parts={parts} /> : <Waiting label={texts.common.loading} />;
}
