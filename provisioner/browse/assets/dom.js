/* Small helpers: elements from plain data (text is never read as markup), the lookup tables, and links between pages. */
"use strict";
const Site = { data: window.MATRIX };

Site.element = (tag, attributes, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};

Site.table = (caption, columns, rows) => Site.element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
  Site.element("table", {},
    Site.element("caption", {}, caption),
    Site.element("thead", {}, Site.element("tr", {}, columns.map((column) => Site.element("th", { scope: "col" }, column)))),
    Site.element("tbody", {}, rows.map(([first, ...others]) => Site.element("tr", {},
      Site.element("th", { scope: "row" }, first), others.map((cell) => Site.element("td", {}, cell)))))));

Site.link = (route, ...children) => Site.element("a", { href: `#/${route}` }, ...children);
Site.route = (...parts) => parts.map(encodeURIComponent).join("/");
Site.by = (rows, key) => new Map(rows.map((row) => [row[key], row]));
Site.components = Site.by(Site.data.components, "name");
Site.rules = Site.by(Site.data.rules, "name");
Site.gpus = Site.by(Site.data.gpus, "name");
Site.branches = Site.by(Site.data.branches, "branch");
Site.packages = Site.by(Site.data.packages, "name");
/* The notes of each name: packages of a driver are several rows, one for each release of a system. */
Site.notes = new Map();
for (const note of Site.data.notes) Site.notes.set(note.name, [...(Site.notes.get(note.name) || []), note]);

Site.title = (component) => (Site.components.get(component) || { title: component }).title;
Site.release = (component, version) => ((Site.components.get(component) || {}).releases || []).find((one) => one.version === version);
Site.isAddress = (text) => /^https?:\/\//.test(text);
Site.announce = (text) => { document.getElementById("announcer").textContent = text; };

/* One source: what it is, where in it, when it was read, and whether it is the artefact itself. */
Site.source = (key) => {
  const one = Site.data.citations[key];
  if (!one) return Site.element("li", {}, key);
  const title = one.url && Site.isAddress(one.url) ? Site.element("a", { href: one.url, rel: "noreferrer" }, one.title) : one.title;
  return Site.element("li", {},
    Site.element("span", { class: one.measured ? "badge measured" : "badge" }, one.measured ? "measured" : "read"),
    title, one.where ? `, ${one.where}` : "", one.read ? ` (${one.read})` : "", " ",
    Site.link(Site.route("sources", key), "what else it says", Site.element("span", { class: "quiet" }, `: ${key}`)));
};
Site.sources = (keys) => (keys && keys.length ? Site.element("ul", { class: "sources", "aria-label": "Sources" }, [...new Set(keys)].map(Site.source)) : null);

Site.pairs = (pairs) => Site.element("dl", { class: "facts" },
  pairs.filter(([, value]) => value !== undefined && value !== "" && value !== null).map(([name, value]) => [Site.element("dt", {}, name), Site.element("dd", {}, value)]));

/* `{cuda: ">=13"}` in words, each component a link to its page. */
Site.needs = (needs) => Object.entries(needs || {}).flatMap(([name, text], index) => [
  index ? "; " : "", Site.components.has(name) ? Site.link(Site.route("components", name), name) : name, ` ${text}`]);
