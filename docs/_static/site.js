// The embedded page is as light or dark as the document around it, also when its button is pressed.
addEventListener("DOMContentLoaded", () => {
  const frames = document.querySelectorAll("iframe.play"), dark = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => {
    const chosen = document.body.dataset.theme, theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
    for (const frame of frames) frame.contentWindow.postMessage({ theme }, "*");
  };
  for (const frame of frames) frame.addEventListener("load", tell);
  new MutationObserver(tell).observe(document.body, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", tell);
  tell();
});
