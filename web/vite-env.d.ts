// What the bundler adds to the pages: its own types, and the style sheet that is made of the theme.
/// <reference types="vite/client" />
declare module "virtual:theme.css";
