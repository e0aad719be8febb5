// What a replica needs after it was opened and shown: syncs, and what comes of them. It is loaded when it is used.
export { updateDevice } from "./afterRestore.js";
export { undecidedBlobs, undecidedConflicts } from "./conflicts.js";
export { keepContents } from "./keepContents.js";
export { useOwn } from "./ownKeyring.js";
export { refusedChanges } from "./refused.js";
export { unlockFrom } from "./start.js";
export { runSync } from "./sync.js";
export { watch } from "./watch.js";
