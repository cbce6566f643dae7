/* Which page is shown: the part of the address behind `#`, so that every view can be linked to, also from a file. */
"use strict";

Site.show = (isStart) => {
  const [path, words] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  const dialog = document.getElementById("evidence");
  if (dialog.open) dialog.close();
  const make = Object.hasOwn(Site.pages, page) ? Site.pages[page] : Site.pages.host;
  const main = document.getElementById("main");
  main.replaceChildren(...make(rest, new URLSearchParams(words || "")).flat(2));
  const heading = main.querySelector("h1");
  document.title = `${heading.textContent} · provision matrix`;
  document.querySelectorAll("[data-page]").forEach((link) => {
    if (link.dataset.page === (Object.hasOwn(Site.pages, page) ? page : "host")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  const opened = main.querySelector("details[open]");
  if (opened) opened.scrollIntoView({ block: "center" });
  else if (!isStart) window.scrollTo(0, 0);
  if (!isStart) main.focus({ preventScroll: true });
};

Site.startSearch(document.getElementById("search-form"), document.getElementById("search-text"), document.getElementById("search-list"));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the page, so the link moves the focus itself
  document.getElementById("main").focus();
});
document.getElementById("evidence").addEventListener("click", (event) => {
  if (event.target === event.currentTarget || event.target.closest("a[href^='#']")) event.currentTarget.close();
});
window.addEventListener("hashchange", () => Site.show(false));
Site.show(true);
