// Types of the bundler, and of the style sheet that it makes from the theme.
/// <reference types="vite/client" />
declare module "virtual:theme.css";
