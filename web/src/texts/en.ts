// Every text that people read, in one place: a translation is one file. One section for each view, in the order in which a
// person meets them. Texts with values are functions.

const counted = (count: number, one: string, many: string): string => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export const texts = {
  /** What the page shows before any script runs. */
  page: {
    title: "strongroom",
    description: "Your passwords, notes and documents, encrypted on this device.",
    noScript: "strongroom decrypts in this browser, by JavaScript, which is switched off here. The command line works without it.",
  },

  common: {
    /** The name of this app. It is the title of the page in every view, and nothing else is. */
    name: "strongroom",
    /** What the list of sessions calls this app. The server can read it. */
    deviceName: "strongroom web app",
    cancel: "Cancel",
    close: "Close",
    dismiss: "Dismiss",
    save: "Save",
    delete: "Delete",
    back: "Back",
    next: "Continue",
    done: "Done",
    copy: "Copy",
    copied: "Copied.",
    undo: "Undo",
    retry: "Try again",
    loading: "Loading…",
    never: "never",
    more: "More",
    email: "Email",
    password: "Password",
    server: "Server",
    showPassword: "Show the password",
    hidePassword: "Hide the password",
    /** Of a list that cannot be shown. */
    notLoaded: "This cannot be shown right now.",
  },

  errors: {
    Unreachable: "The server cannot be reached. Check the connection, or try again in a moment.",
    Unavailable: "The server is busy or is being restarted. Try again in a moment.",
    InvalidCredentials: "The email or the password is wrong.",
    wrongPassword: "The password is wrong.",
    InvalidRefreshToken: "This session has ended. Enter your password to go on.",
    Unauthorized: "This session has ended. Enter your password to go on.",
    Locked: "This session has ended. Enter your password to go on.",
    SecondFactorRequired: "This account asks for a second factor.",
    InvalidSecondFactor: "This code is wrong, or was used already. Each code counts once: wait for the next one.",
    InvalidTicket: "This log-in took too long. Begin again.",
    InvalidPasskey: "This passkey was not accepted. Use one that is registered for this account.",
    CeremonyFailed: "The passkey was not used: it was cancelled, took too long, or is not for this address. Try again, or use the password.",
    PasskeysUnavailable: "This server cannot use passkeys yet. Its operator must set PUBLIC_URL to the address that people open.",
    MethodNotAllowed: "The server is of an older release and cannot do this. Its operator should update it.",
    NotFound: "The server is of an older release and cannot do this. Its operator should update it.",
    InternalError: "The server has a fault of its own. Try again, and tell its operator if it stays.",
    QuotaExceeded: "Your account has no room for this. Delete something, or ask the operator for more. Nothing was changed.",
    StorageFull: "The server’s disk is full. Tell its operator. Nothing was changed.",
    KeyringConflict: "Another device has changed the account at the same moment. Try again.",
    Unsupported: "This browser, or this release of the app, cannot do that. Update the browser, or ask the operator to update the server.",
    /** Another account than the one of this device has logged in. */
    otherAccount: "This browser holds the data of another account. Log that one out first.",
    invalid: (field: string, what: string) => `${field}: ${what}.`,
    other: "Something went wrong in this app. Reload the page; nothing that you saved is lost.",
  },

  unsupported: {
    title: "This page cannot protect your data",
    why: "The browser gives a page the means to encrypt only over HTTPS, or from this machine itself. This address is plain HTTP, and whoever sits on the network between could change the page and read your password.",
    what: "What to do",
    steps: [
      "If you use this server: ask its operator for an address that begins with https://.",
      "If you run this server: put it behind a proxy that makes certificates, such as Caddy. The page docs/operating.md says how, also for a network without access from outside.",
      "For a look now: run ssh -L 3000:127.0.0.1:3000 MACHINE on this computer, with the port of your server, and open http://127.0.0.1:3000.",
    ],
  },

  logIn: {
    title: "Log in",
    submit: "Log in",
    working: "Opening… the password is being derived on this device.",
    passkey: "Use a passkey",
    signUp: "Create an account",
    recover: "I have lost my password",
    serverHint: "The address of your strongroom server.",
    emailMissing: "Enter the email of your account.",
    emailWrong: "This is not an email address.",
    passwordMissing: "Enter your password.",
    trust: "Your password and keys never leave this browser. The code of this page comes from the server: if you cannot trust it for that, use the command line instead.",
  },

  signUp: {
    title: "Create an account",
    submit: "Create the account",
    password: "Master password",
    passwordHint: "Nobody can reset it. Five random words are good.",
    again: "The same password again",
    differs: "The two passwords are not the same.",
    tooShort: "The password is too short: at least 8 characters.",
    invitation: "Invitation code",
    invitationHint: "This server takes new accounts by invitation. Its operator gives you the code.",
    strength: {
      weak: (bits: number) => `Weak: at most ${bits} bits. Whoever copies the server’s data can guess it.`,
      fair: (bits: number) => `Fair: at most ${bits} bits, if it was chosen at random.`,
      strong: (bits: number) => `Strong: at most ${bits} bits, if it was chosen at random.`,
    },
    logIn: "I have an account",
    /** The name of the vault that every account begins with. */
    firstVault: "Personal",
  },

  recoverySheet: {
    title: "Your recovery sheet",
    why: "Nobody can reset a password, because nobody else has a key. If you lose the password, this key opens your account. It is shown once: print it, and keep it where you keep passports.",
    key: "Recovery key",
    account: "Account",
    server: "Server",
    made: "Made on",
    use: "To use it: open the server’s address, choose “I have lost my password”, and enter the email, this key and a new password. A second factor is still asked for. Whoever has this sheet and the second factor can open the account.",
    print: "Print the sheet",
    download: "Save as a text file",
    fileName: "strongroom-recovery.txt",
    confirm: (group: number) => `To confirm that you have it: the ${["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "last"][group] ?? "last"} group of four characters`,
    confirmWrong: "That is not what stands on the sheet. Look at it again.",
    submit: "I have it",
    later: "Do this later",
    laterTitle: "Go on without a recovery key?",
    laterWhy: "The key on this page will not open your account once you go on without it. Without a recovery key, a lost password means that everything is lost. You can make a new one in the settings.",
    working: "Making your recovery key…",
    failed: "The account is made. The recovery key could not be made now: make one in the settings.",
  },

  recover: {
    title: "Use the recovery key",
    why: "The recovery key is on the sheet that you printed. It opens the account, and you set a new password. All other sessions end.",
    key: "Recovery key",
    keyHint: "It begins with SR2. Case, spaces and hyphens do not count.",
    keyMissing: "Enter the recovery key.",
    password: "New master password",
    submit: "Open the account",
    wrong: "This recovery key does not open this account, or not any more.",
  },

  secondFactor: {
    title: "Second factor",
    code: "Code",
    codeHint: "Six digits from your authenticator app, or a recovery code.",
    passkey: "Use a passkey instead",
    submit: "Continue",
  },

  unlock: {
    title: "Locked",
    submit: "Unlock",
    working: "Unlocking…",
    passkey: "Unlock with a passkey",
    changed: "I changed the password on another device",
    logOut: "Log out and remove everything from this browser",
  },

  logOut: {
    title: "Log out",
    submit: "Log out",
    open: "Your account’s data is removed from this browser. It stays on the server and on your other devices.",
    pending: (count: number) => `${counted(count, "change is", "changes are")} not sent yet, and would be lost. Sync first, if you can.`,
    locked: "Everything of this account is removed from this browser. Changes that were not sent are lost; while it is locked, nobody can say whether there are any.",
    notTold: "Logged out here. The server could not be told: end the session in the settings of another device.",
    done: "Logged out.",
  },

  askAgain: {
    title: "Log in again",
    ended: "Your session has ended. What you changed is kept on this device and is sent after you have logged in.",
    changed: "The password was changed on another device. Enter the new one. What you changed here is kept, and is sent afterwards.",
  },

  shell: {
    skip: "Skip to the content",
    navigation: "Navigation",
    content: "Content",
    items: "All items",
    itemsShort: "Items",
    trash: "Trash",
    conflicts: "Conflicts",
    waiting: "Not sent",
    settings: "Settings",
    lock: "Lock",
    vaults: "Vaults",
    keys: "Keyboard",
    list: "List",
    detail: "Detail",
  },

  keyboard: {
    title: "Keyboard",
    keys: [
      ["/", "Search"],
      ["n", "New item"],
      ["j  k", "Next and previous"],
      ["Enter", "Open"],
      ["e", "Edit"],
      ["c", "Copy the password"],
      ["u", "Undo"],
      ["l", "Lock"],
      ["?", "This sheet"],
    ] as const,
  },

  sync: {
    synced: "Everything is synced",
    syncing: "Syncing…",
    pending: (count: number) => `${counted(count, "change", "changes")} not sent`,
    offline: "Offline",
    stopped: "Not syncing",
    first: (done: number, total: number | undefined) =>
      total === undefined ? `Fetching your data: ${done.toLocaleString("en")}` : `Fetching your data: ${done.toLocaleString("en")} of ${total.toLocaleString("en")}`,
    now: "Sync now",
  },

  /** What keeps this device from syncing. */
  trouble: {
    offline: "The server cannot be reached. You can go on: what you change is kept on this device, and is sent later.",
    busy: "The server asks to wait, or has a fault. What you change is kept on this device, and is sent later.",
    wrongServer: "Something else than strongroom answers at this address, perhaps a log-in page of this network. What you change is kept on this device.",
    ended: "Your session has ended. What you change is kept on this device, and is sent after you have logged in again.",
    password: "The server does not accept this password any more: it was changed on another device, or the account was deleted.",
    disabled: "The operator has disabled this account. Nothing of it is lost. Ask the operator of this server.",
    old: "The account uses something that this app does not know. Reload the page, or ask the operator to update the server.",
    other: "Something went wrong while syncing. What you change is kept on this device.",
    rolledBack: "", credentialsRolledBack: "", tampered: "", weak: "",
    enterPassword: "Log in again",
    nothingOverwritten: "Nothing on this device was overwritten, and nothing more is sent or fetched.",
    clientSays: (sentence: string) => `In detail: ${sentence}`,
  },

  /** What the server showed cannot be believed. */
  alarms: {
    rolledBack: {
      title: "The server shows an older state",
      what: "The server showed something older than what this device has seen. It may have been restored from a backup, or somebody replaced its data.",
      next: "Ask the operator whether a backup was restored. If so, open the app on the device that you used last, and try again. If not, do not use this server until that is clear.",
    },
    credentialsRolledBack: {
      title: "The server was restored from an old backup",
      what: "The backup is older than your last change of password or recovery key, so the server knows the password of that time.",
      next: "Change the password in the settings: as the current one, give the password of that time. Then make a new recovery key.",
    },
    tampered: {
      title: "The server sent something that is not yours",
      what: "What the server sent was not made with your keys. It was changed, moved or forged, or the server’s data is damaged.",
      next: "Tell the operator. Your data on this device can still be read. Try again once the operator knows the cause.",
    },
    weak: {
      title: "The server asked for weak protection",
      what: "The server asked for a weaker derivation of your password than is allowed. The password was not used.",
      next: "Tell the operator of the server, and do not enter the password elsewhere until the cause is known.",
    },
  },

  settings: {
    title: "Settings",
    appearance: "Appearance and lock",
  },

  appearance: {
    theme: "Theme",
    themes: { system: "As the system", light: "Light", dark: "Dark" },
    density: "Rows",
    densities: { dense: "Dense", roomy: "Roomy" },
    lock: "Lock",
    lockHint: "Locking deletes the keys from this browser. Everything stays encrypted on this device, and the password opens it again.",
    lockAfter: (minutes: number) => (minutes === 0 ? "When the last tab is closed" : `After ${counted(minutes, "minute", "minutes")} without input`),
  },

  items: {},

  time: {},

  operator: {},
};
