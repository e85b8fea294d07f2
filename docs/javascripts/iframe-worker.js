// Browsers start no worker from file://. There, a worker is a hidden frame with the same script, so that search works.
(() => {
  if (location.protocol !== "file:") return;
  window.Worker = class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const address = new URL(url, location.href).href;
      const folder = address.slice(0, address.lastIndexOf("/") + 1);
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.append(frame);
      const inner = frame.contentWindow;
      const page = inner.document;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...scripts) => scripts.reduce((before, script) => before.then(() => new Promise((done, fail) => {
        const tag = page.createElement("script");
        tag.src = new URL(script, folder).href;
        tag.onload = done;
        tag.onerror = fail;
        page.body.append(tag);
      })), Promise.resolve());
      this.inner = inner;
      const tag = page.createElement("script");
      tag.src = address;
      tag.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.deliver(data));
      };
      page.body.append(tag);
    }
    deliver(data) {
      this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
    }
    postMessage(data) {
      this.ready ? this.deliver(data) : this.waiting.push(data);
    }
    set onmessage(listen) {
      this.addEventListener("message", listen);
    }
    terminate() {}
  };
})();
