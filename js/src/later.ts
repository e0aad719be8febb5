// Parts that are loaded when they are used for the first time: each in one piece.

/** What few programs need, or need once. */
export const rare = () => import("./rare.js");
/** Passwords, recovery keys and second factors of an account. */
export const passwords = () => import("./passwords.js");
/** Sessions that outlive a page or a program. */
export const saved = () => import("./saved.js");
