// What is loaded apart from the list: one item, its editor and history, changes, and dialogues.
export { Unsupported } from "../account/unsupported.js";
export { KeyboardSheet } from "../shell/keyboardSheet.js";
export { HistoryView } from "../time/historyView.js";
export { BulkBar } from "./bulkBar.js";
export { deleteEntries, moveItems, undoLast } from "./changes.js";
export { copyMain } from "./copyMain.js";
export { ItemEditor } from "./itemEditor.js";
export { ItemView } from "./itemView.js";
export { JsonDocument } from "./jsonDocument.js";
export { MoveDialog } from "./moveDialog.js";
export { PlaceDialog } from "./vaultDialogs.js";
