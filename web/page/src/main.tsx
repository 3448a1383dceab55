import { render } from "preact";
import { App } from "./app";
import { fromUrl } from "./store";
import "./style.css";

render(<App />, document.getElementById("app")!);
fromUrl();
performance.mark("interactive");
if (import.meta.env.PROD && "serviceWorker" in navigator) void navigator.serviceWorker.register("./sw.js");
