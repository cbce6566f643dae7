/* The reader's own files: a lock as layers, a fleet as a heat map, two locks side by side. Nothing leaves the page. */
"use strict";
Site.mine = { locks: [], hosts: [], problems: [], chosen: 0, other: 1 };

Site.answers = {
  yes: { mark: "✓", word: "runs", colour: "n" },
  ask: { mark: "?", word: "ask provision check", colour: "p" },
  no: { mark: "×", word: "does not run", colour: "no" },
  all: { mark: "", word: "", colour: "u" },
};
Site.answerMark = (verdict) => Site.element("span", { class: `mark ${Site.answers[verdict].colour}`, "aria-hidden": "true" }, Site.answers[verdict].mark);

Site.basisWords = { native: "by native support", "minor-version": "by minor-version compatibility", "forward-compat": "by forward compatibility" };

/* Hosts with the same facts are judged once. */
Site.fleet = (lock, hosts) => {
  const judged = new Map();
  return hosts.map((host) => {
    const key = JSON.stringify(host.facts);
    if (!judged.has(key)) judged.set(key, Site.judge(lock, host.facts));
    return { host, ...judged.get(key) };
  });
};

/* Keep a lock, once; another one of the same file name, such as an earlier version, has a number behind it. */
Site.addLock = (lock, text) => {
  const { locks } = Site.mine;
  if (locks.some((one) => one.text === text && one.file === lock.name)) return;
  const same = locks.filter((one) => one.file === lock.name).length;
  locks.push({ ...lock, text, file: lock.name, name: same ? `${lock.name} (${same + 1})` : lock.name });
};

Site.addFiles = async (files, done) => {
  for (const file of files) {
    try {
      if (file.size > Site.fileLimit) throw new Error(`it has ${file.size} bytes, the limit is ${Site.fileLimit}`);
      const text = await file.text();
      const found = Site.readFile(file.name, text);
      for (const lock of found.locks) Site.addLock(lock, text);
      Site.mine.hosts.push(...found.hosts);
    } catch (error) {
      Site.mine.problems.push(`${file.name} is left out, as it is read neither as a lock, a host profile nor a roster: ${String(error.message || error).split("\n")[0]}`);
    }
  }
  done();
};

Site.pages.mine = () => {
  const holder = Site.element("div", { id: "mine-result" });
  const input = Site.element("input", { id: "mine-files", type: "file", multiple: true, accept: ".toml,.yaml,.yml,.json,.csv" });
  const show = () => Site.tellMine(holder, show);
  const take = (files) => { Site.mine.problems = []; return Site.addFiles([...files], show); };
  input.addEventListener("change", () => take(input.files));
  const zone = Site.element("div", { class: "drop", id: "mine-drop" },
    Site.field("mine-files", "Files", input),
    Site.element("p", { class: "soft" }, "Drop them here, or choose them: a lock (", Site.element("code", {}, "pylock.*.toml"), "), a host profile (YAML), a roster (CSV or JSON), or ",
      Site.element("code", {}, "kubectl get nodes -o json"), ". They are read in this page and sent nowhere: the page may not connect to anything."));
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => { event.preventDefault(); zone.classList.remove("over"); take(event.dataTransfer.files); });
  show();
  return [Site.element("h1", {}, "My lock, my host, my fleet"), zone, holder];
};

Site.tellMine = (holder, again) => {
  const { locks, hosts, problems } = Site.mine;
  const lock = locks[Math.min(Site.mine.chosen, locks.length - 1)];
  const parts = problems.map((text) => Site.element("p", { class: "problem", role: "alert" }, text));
  if (locks.length || hosts.length) {
    const forget = Site.element("button", { type: "button", onclick: () => { Site.mine = { locks: [], hosts: [], problems: [], chosen: 0, other: 1 }; again(); } }, "Forget these files");
    const number = hosts.reduce((sum, one) => sum + one.count, 0);
    parts.push(Site.element("p", {}, `${locks.length} ${locks.length === 1 ? "lock" : "locks"}, ${number} ${number === 1 ? "host" : "hosts"}. `, forget));
  }
  if (lock && locks.length > 1) {
    const choose = Site.select("mine-lock", locks.map((one, index) => [String(index), one.name]), String(Site.mine.chosen));
    choose.addEventListener("change", () => { Site.mine.chosen = Number(choose.value); again(); });
    parts.push(Site.element("div", { class: "controls" }, Site.field("mine-lock", "Lock", choose)));
  }
  if (lock) {
    const judged = Site.fleet(lock, hosts);
    const single = judged.length === 1 ? judged[0] : null;
    if (single) parts.push(...Site.tellVerdict(lock, single));
    for (const stack of single ? [single.stack] : lock.platforms) parts.push(...Site.tellLayers(lock, stack, single));
    if (judged.length > 1) parts.push(...Site.tellFleet(lock, judged));
  } else if (hosts.length) parts.push(...Site.tellHosts(hosts));
  if (locks.length > 1) parts.push(...Site.tellPair(again));
  holder.replaceChildren(...parts.flat(3).filter(Boolean));
  if (locks.length || hosts.length || problems.length) Site.announce(holder.textContent.slice(0, 300));
};

Site.command = (text) => Site.element("code", { class: "command", tabindex: "0" }, text);
Site.checkCommand = (lock) => Site.command(`provision check ${lock.file} --host HOST.yaml`);

Site.tellVerdict = (lock, judged) => {
  const answer = Site.answers[judged.verdict];
  const sentence = { yes: `${lock.name} runs on ${judged.host.name}.`, no: `${lock.name} does not run on ${judged.host.name}.`, ask: `This page cannot tell whether ${lock.name} runs on ${judged.host.name}.` }[judged.verdict];
  return [Site.element("p", { class: judged.verdict === "no" ? "verdict no" : "verdict", id: "mine-verdict" }, Site.answerMark(judged.verdict), sentence),
    ...Site.tellReasons(judged),
    judged.verdict === "yes" ? Site.element("p", { class: "soft" }, `Assumed: ${judged.assumes.join("; ") || "nothing"}. What the spec asks for, and whether files were edited, is told by:`, Site.checkCommand(lock))
      : Site.element("p", {}, judged.verdict === "ask" ? "To settle it: " : "To see the proof and what would help: ", Site.checkCommand(lock))];
};

Site.tellReasons = (judged) => {
  const item = (one) => Site.element("li", {}, Site.element("span", { class: "badge" }, one.layer), one.rule ? Site.link(Site.route("rules", one.rule), one.text) : one.text);
  const unique = (rows) => [...new Map(rows.map((one) => [`${one.layer} ${one.text}`, one])).values()];
  return [judged.against.length ? Site.element("ul", { class: "found reasons" }, unique(judged.against).map(item)) : null,
    judged.open.length ? [Site.element("p", { class: "soft" }, "Left open:"), Site.element("ul", { class: "found reasons" }, unique(judged.open).map(item))] : null].flat().filter(Boolean);
};

/* The layer of a component or of a fact, by the table that `doctor` and `explain` have, too; "" for what is in none. */
Site.layerOf = (name) => (Site.data.mine.layers.find((row) => row.components.includes(name)) || { name: "" }).name;

/* From the top: what was asked for rests on what is below. The layer that limits is the one whose need decides which hosts remain. */
Site.tellLayers = (lock, stack, judged) => {
  const limit = Site.limitOf(stack, judged);
  const [against, open, facts] = judged ? [judged.against, judged.open, judged.host.facts] : [[], [], {}];
  const gpus = judged ? Site.gpusOf(facts).map((one) => `${one.count} × ${one.name}${one.target && one.target !== one.name ? ` (${one.target})` : ""}`).join(" · ") : "";
  const stated = { driver: Site.asText(Site.asTable(facts.driver).version), kernel: Site.asText(facts.kernel) };
  const version = (name, value) => (name === "pytorch" && stack.stack.pytorch_build ? `${value}+${stack.stack.pytorch_build}` : value);
  const rows = [...Site.data.mine.layers].reverse().flatMap((layer) => {
    const isHere = (name) => (Site.layerOf(name) || "packages") === layer.name;
    const parts = [
      layer.name === "packages" ? `${lock.packages.size} distributions` : "",
      ...Object.entries(stack.stack).filter(([name]) => isHere(name) && !["platform", "pytorch_build"].includes(name)).map(([name, value]) => `${Site.title(name)} ${version(name, value)}`),
      layer.name === "cuda" ? Site.basisWords[stack.basis] || stack.basis : "", layer.name === "system" ? stack.platform : "", layer.name === "gpu" ? gpus : "",
      ...Object.entries(stated).filter(([name, value]) => value && isHere(name)).map(([, value]) => `the host has ${value}`),
      ...Object.entries(stack.needs).filter(([name]) => isHere(name)).map(([name, need]) => `needs ${name} ${need}`),
    ].filter(Boolean);
    const covers = (reason) => Site.layerOf(reason.layer) === layer.name;
    const state = against.some(covers) ? "no" : open.some(covers) ? "ask" : judged ? "yes" : "";
    if (!parts.length && !against.some(covers) && !open.some(covers)) return [];
    return [Site.element("li", { class: `layer ${state}${covers(limit) ? " limit" : ""}` },
      Site.element("span", { class: "layer-title" }, state ? Site.answerMark(state) : "", layer.titles[stack.accelerator] || layer.name),
      Site.element("span", {}, parts.join(" · ")),
      covers(limit) ? Site.element("span", { class: "layer-limit" }, `limits the stack: ${limit.text}`) : "")];
  });
  return [Site.element("h2", {}, `${lock.name} on ${stack.platform}, layer by layer`), Site.element("ol", { class: "layers" }, rows)];
};

Site.limitOf = (stack, judged) => {
  if (judged && judged.against.length) return judged.against[0];
  if (judged && judged.open.length) return judged.open[0];
  const by = Site.floorOf(stack, "driver");
  if (stack.needs.driver) return { layer: "driver", text: by || `the lock needs driver ${stack.needs.driver}` };
  if (stack.needs.gpu) return { layer: "gpu", text: Site.floorOf(stack, "gpu") || "only these GPUs" };
  return { layer: "platform", text: `it is for ${stack.platform}` };
};

/* Hosts without a lock: what runs on a single one is another page's answer, many are counted. */
Site.tellHosts = (hosts) => {
  const ask = Site.element("p", {}, hosts.length === 1 ? "Add a lock to see whether it runs on this host." : "Add a lock to see which of these hosts it runs on.");
  if (hosts.length > 1) return [ask, ...Site.tellFleet(null, hosts.map((host) => ({ host, verdict: "all", against: [], open: [], assumes: [] })))];
  const [{ facts }] = hosts;
  const gpu = Site.gpusOf(facts).map((one) => one.name).find((name) => Site.readGpu(name) !== null);
  const driver = Site.asText(Site.asTable(facts.driver).version).split(".")[0];
  const query = new URLSearchParams(Object.entries({ gpu, driver, platform: Site.asText(facts.platform) }).filter(([, value]) => value));
  return gpu ? [ask, Site.element("p", {}, Site.link(`host?${query}`, `What runs on ${gpu}${driver ? ` with driver ${driver}` : ""}`))] : [ask];
};

/* The fleet as a heat map: kinds of GPUs down, drivers across, in each cell how many hosts run, do not, or have to be asked about;
   without a lock, how many there are. */
Site.tellFleet = (lock, judged) => {
  const kind = (facts) => (Array.isArray(facts.gpus) ? Site.gpusOf(facts).map((one) => `${one.name}${one.target && one.target !== one.name ? ` (${one.target})` : ""}`).join(" + ") || "no GPU" : "GPU not stated");
  const driverOf = (facts) => Site.asText(Site.asTable(facts.driver).version) || "no driver";
  const cells = new Map();
  for (const one of judged) {
    const key = JSON.stringify([kind(one.host.facts), driverOf(one.host.facts)]);
    if (!cells.has(key)) cells.set(key, { yes: 0, ask: 0, no: 0, all: 0, members: [] });
    const cell = cells.get(key);
    cell[one.verdict] += one.host.count;
    cell.members.push(one);
  }
  const keys = [...cells.keys()].map((key) => JSON.parse(key));
  const newest = (one, other) => { const [a, b] = [Site.number(one), Site.number(other)]; return a && b ? Site.compare(b, a) : a ? -1 : b ? 1 : 0; };
  const rows = [...new Set(keys.map(([gpu]) => gpu))].sort();
  const columns = [...new Set(keys.map(([, driver]) => driver))].sort(newest);
  const total = (name) => [...cells.values()].reduce((sum, one) => sum + one[name], 0);
  const body = rows.map((gpu) => Site.element("tr", {}, Site.element("th", { scope: "row" }, gpu), columns.map((driver) => {
    const cell = cells.get(JSON.stringify([gpu, driver]));
    if (!cell) return Site.element("td", {});
    const found = Object.keys(Site.answers).filter((name) => cell[name]);
    const worst = cell.no ? "no" : cell.ask ? "ask" : found[0];
    const counts = found.map((name) => `${cell[name]} ${Site.answers[name].mark}`.trim()).join(" ");
    const spoken = found.map((name) => `${cell[name]} ${{ yes: "run", ask: "open", no: "do not run", all: cell[name] === 1 ? "host" : "hosts" }[name]}`).join(", ");
    return Site.element("td", {}, Site.element("button", { type: "button", class: `fleet-cell ${Site.answers[worst].colour}`, "aria-label": `${gpu}, driver ${driver}: ${spoken}`, "aria-haspopup": "dialog", onclick: () => Site.showHosts(lock, gpu, driver, cell) }, counts));
  })));
  return [Site.element("h2", {}, lock ? `The fleet: ${total("yes")} run, ${total("no")} do not, ${total("ask")} to ask about` : `The fleet: ${total("all")} hosts`),
    Site.element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "The fleet by GPU and driver" },
      Site.element("table", { class: "fleet" }, Site.element("caption", {}, lock ? `Hosts that ${lock.name} runs on (✓), does not run on (×), or that this page cannot tell about (?)` : "Hosts by GPU and driver"),
        Site.element("thead", {}, Site.element("tr", {}, Site.element("th", { scope: "col" }, "GPU"), columns.map((one) => Site.element("th", { scope: "col" }, one)))), Site.element("tbody", {}, body))),
    Site.element("p", { class: "soft" }, lock ? "A cell opens the hosts and the reasons. The same question, decided by the solver: " : "A cell opens the hosts. The fewest stacks that cover them: ",
      Site.command(lock ? `provision check ${lock.file} --hosts INVENTORY` : "provision fleet --hosts INVENTORY"))];
};

Site.showHosts = (lock, gpu, driver, cell) => {
  const groups = new Map();
  for (const one of cell.members) {
    const key = JSON.stringify([one.verdict, one.against, one.open]);
    if (!groups.has(key)) groups.set(key, { ...one, names: [], count: 0 });
    const group = groups.get(key);
    group.names.push(one.host.count > 1 ? `${one.host.name} (${one.host.count})` : one.host.name);
    group.count += one.host.count;
  }
  document.getElementById("evidence-body").replaceChildren(
    Site.element("h2", { id: "evidence-title" }, `${gpu}, driver ${driver}`), lock ? Site.element("p", { class: "soft" }, `under ${lock.name}`) : "",
    ...[...groups.values()].map((group) => Site.element("section", { class: group.verdict === "yes" ? "fact" : "fact against" },
      Site.element("h3", {}, lock ? Site.answerMark(group.verdict) : "", `${group.count} ${group.count === 1 ? "host" : "hosts"}${lock ? `: ${Site.answers[group.verdict].word}` : ""}`),
      Site.element("p", {}, `${group.names.slice(0, 40).join(", ")}${group.names.length > 40 ? ` and ${group.names.length - 40} more` : ""}`), Site.tellReasons(group))));
  const dialog = document.getElementById("evidence");
  dialog.showModal();
  dialog.scrollTop = 0;
};

/* Two locks side by side, component by component and package by package; lines that differ are marked in words too. */
Site.tellPair = (again) => {
  const { locks } = Site.mine;
  const one = locks[Math.min(Site.mine.chosen, locks.length - 1)];
  if (Site.mine.other >= locks.length || locks[Site.mine.other] === one) Site.mine.other = locks.findIndex((lock) => lock !== one);
  const other = locks[Site.mine.other];
  const choose = Site.select("mine-other", locks.flatMap((lock, index) => (lock === one ? [] : [[String(index), lock.name]])), String(Site.mine.other));
  choose.addEventListener("change", () => { Site.mine.other = Number(choose.value); again(); });
  const parts = [];
  for (const left of one.platforms) {
    const right = other.platforms.find((stack) => stack.platform === left.platform);
    if (!right) { parts.push(Site.element("p", {}, `${other.name} is not for ${left.platform}.`)); continue; }
    const table = (stack, lock) => new Map([["accelerator", stack.accelerator], ["runs in", stack.runs], ["basis", stack.basis], ...Object.entries(stack.stack).filter(([name]) => name !== "platform"), ...Object.entries(stack.needs).map(([name, need]) => [`needs ${name}`, need]), ...[...lock.packages].map(([name, version]) => [`package ${name}`, version])]);
    const [here, there] = [table(left, one), table(right, other)];
    const names = [...new Set([...here.keys(), ...there.keys()])];
    const differ = names.filter((name) => (here.get(name) || "") !== (there.get(name) || ""));
    const same = names.length - differ.length;
    const word = (name) => (!here.get(name) ? "only in the second" : !there.get(name) ? "only in the first" : "differs");
    parts.push(Site.element("p", {}, `${left.platform}: ${differ.length} differ, ${same} are the same.`),
      differ.length ? Site.table(`${one.name} and ${other.name} on ${left.platform}, where they differ`, ["", one.name, other.name, ""], differ.map((name) => [name, here.get(name) || "–", there.get(name) || "–", word(name)])) : "");
  }
  return [Site.element("h2", {}, "Two locks side by side"), Site.element("div", { class: "controls" }, Site.field("mine-other", `${one.name} beside`, choose)), ...parts,
    Site.element("p", { class: "soft" }, "Why they differ: ", Site.command(`provision explain --diff ${one.file} ${other.file}`))];
};
