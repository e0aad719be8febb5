/** What few programs need, or need once: it is loaded, in one piece, when it is used for the first time. */
export const rare = () => import("./rare.js");
