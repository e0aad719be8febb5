// Log out: everything of the account is removed from this browser. What was not sent is named first.
import { Confirm } from "../components/confirm.js";
import { tell } from "../state/notices.js";
import { logOut } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { texts } from "../texts/en.js";
import { useAction } from "./action.js";
import { Fault } from "./frame.js";

/** The question. */
export function LogOutDialog({ onClose }: { onClose: () => void }) {
  const { pending } = useStore(syncStatus);
  const action = useAction();
  const confirm = (): void =>
    void action.run(async () => {
      const isTold = await logOut();
      tell(isTold ? texts.logOut.done : texts.logOut.notTold, isTold ? {} : { kind: "fault" });
    });
  return (
    <Confirm
      title={texts.logOut.title}
      action={texts.logOut.submit}
      isDanger={pending > 0}
      isBusy={action.isBusy}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>{texts.logOut.open}</p>
      {pending > 0 && <p class="warningBox">{texts.logOut.pending(pending)}</p>}
      <Fault>{action.fault}</Fault>
    </Confirm>
  );
}
