// Style sheets are imported for what they do; the build collects them.
declare module "*.css";
