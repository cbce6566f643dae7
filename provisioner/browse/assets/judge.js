/* Whether the stack of a lock runs on a host: by what the lock itself records, and by the rules of the matrix about hosts.

   A "no" names the row that refuses. A "yes" is given only where everything that the host states was compared; whatever is left open
   is "ask", with the reason. The solver decides in the end: tests hold every yes and every no of this file against it. */
"use strict";

/* Facts that a running driver proves to be good enough for itself (`is_shown_by_driver` of provisioner/components.py). */
Site.shown = new Set([...Site.data.mine.shown, "driver_module", "python_arch", "jetson"]);
/* Guards that hold only where a host states them. */
Site.usuallyNone = new Set(["nvswitch", "mig", "virtualization", "cuda_compat", "jetson", "build", "os"]);
/* What a profile may state and nothing in a container on a running driver depends on. */
Site.indifferent = new Set(["os", "glibc", "kernel_headers", "kernel_gcc", "gcc", "nvcc", "secure_boot", "python_arch"]);
Site.compared = new Set(["platform", "kernel", "driver", "gpus", "container_toolkit", "userspace_driver", "fabric_manager", "nvswitch", "mig", "virtualization", "loaded_modules"]);

/* The GPUs of a host as { target, name, kind, count }; a target of "" is unknown, as is one that no GPU has. */
Site.gpusOf = (facts) => Site.asList(facts.gpus).filter(Site.isTable).map((one) => {
  const name = Site.asText(one.name);
  const product = Site.gpus.get(name) || Site.gpus.get(`NVIDIA ${name}`) || Site.data.gpus.find((gpu) => gpu.name.toLowerCase() === name.toLowerCase());
  const stated = [one.compute_capability, one.gfx].map(Site.asText).find((text) => /^(\d+\.\d+|gfx[0-9a-f]{3,5})$/.test(text));
  const target = stated || (product && (product.compute_capability || product.gfx)) || "";
  return { target, name: name || (product && product.name) || target || "an unnamed GPU", kind: (product && product.kind) || "", count: Site.count(one.count) };
});

Site.judge = (lock, facts) => {
  const against = [];
  const open = [];
  const no = (layer, text, rule) => against.push({ layer, text, ...(rule ? { rule } : {}) });
  const ask = (layer, text) => open.push({ layer, text });
  const platform = Site.asText(facts.platform);
  const stack = platform ? lock.platforms.find((one) => one.platform === platform) : lock.platforms.length === 1 ? lock.platforms[0] : null;
  if (platform && !stack) {
    no("platform", `the lock is for ${lock.platforms.map((one) => one.platform).join(" and ")}, the host is ${platform}`);
    return { verdict: "no", against, open, stack: lock.platforms[0], assumes: [] };
  }
  if (!stack) {
    ask("platform", "the host does not state its platform, and the lock is for several");
    return { verdict: "ask", against, open, stack: lock.platforms[0], assumes: [] };
  }
  if (!platform) ask("platform", "the host does not state its platform");
  Site.judgeRows(stack, ask);
  for (const text of stack.unverified) ask("lock", text);
  if (stack.accelerator !== "cpu") Site.judgeGpus(stack, facts, { no, ask });
  const stated = Object.keys(facts).filter((key) => facts[key] !== null && facts[key] !== "");
  for (const key of stated) if (!Site.compared.has(key) && !Site.indifferent.has(key)) ask(key, `this page does not compare \`${key}\``);
  if (stack.runs !== "container") ask("platform", "the lock installs on the host itself, whose libraries this page does not compare");
  const verdict = against.length ? "no" : open.length ? "ask" : "yes";
  return { verdict, against, open, stack, assumes: Site.assumed(lock, stack, facts) };
};

Site.assumed = (lock, stack, facts) => [
  ...(facts.container_toolkit || stack.accelerator === "cpu" ? [] : ["the container toolkit is installed"]),
  ...(lock.digest === Site.data.about.digest ? [] : ["rows about packages are those of the matrix that the lock was made with, which is another than this page's; components and rules were compared with this page's"]),
];

/* Whether this page's matrix has the components of a lock, its framework with the targets that the lock records. */
Site.judgeRows = (stack, ask) => {
  for (const [name, value] of Object.entries(stack.stack)) {
    const component = Site.components.get(name);
    if (!component || !component.releases || name === "image" || value.includes(",")) continue;
    const release = Site.release(name, value);
    if (!release) { ask("lock", `${Site.title(name)} ${value} is not in this page's matrix`); continue; }
    if (name !== "pytorch" || !stack.stack.pytorch_build) continue;
    const build = (release.builds || []).find((one) => one.name === stack.stack.pytorch_build && (!one.platforms || one.platforms.includes(stack.platform)));
    const targets = build && [...(build.sass || []), ...(build.ptx || []), ...(build.gfx || [])].join(" ");
    if (stack.accelerator !== "cpu" && targets !== stack.archList.join(" ")) ask("lock", `the targets of PyTorch ${value}+${stack.stack.pytorch_build} are others in this page's matrix than in the lock`);
  }
};

Site.judgeGpus = (stack, facts, { no, ask }) => {
  const driver = Site.asTable(facts.driver);
  const kind = Site.asText(driver.kind) || "nvidia";
  const isCuda = stack.accelerator === "cuda";
  const gpus = Site.gpusOf(facts);
  if (!Array.isArray(facts.gpus)) ask("gpu", "the host does not state its GPUs");
  else if (!gpus.length) no("gpu", `the stack needs a GPU (${stack.accelerator}), the host has none`);
  const allowed = (stack.needs.gpu || "").split(", ").filter(Boolean);
  const reasons = stack.reasons.gpu || [];
  if (!allowed.length && !reasons.length) ask("gpu", "the lock records no GPUs, because it was made without any");
  for (const gpu of gpus) {
    const isOther = isCuda === gpu.target.startsWith("gfx");
    const refusing = gpu.target && !isOther ? reasons.filter((one) => Site.holdsFor(one, gpu.target) === "no") : [];
    if (!gpu.target) ask("gpu", `nothing says which target ${gpu.name} has; state its compute_capability`);
    else if (isOther) no("gpu", `${gpu.name} (${gpu.target}) is no GPU for ${stack.accelerator}`);
    else if (refusing.length) refusing.forEach((one) => no("gpu", `${gpu.name} is ${gpu.target}: ${Site.asText(one.text)}`));
    else if (allowed.length && !allowed.includes(gpu.target)) no("gpu", `${gpu.name} (${gpu.target}) is not among the GPUs that the lock allows: ${allowed.join(", ")}`);
    else if (reasons.some((one) => Site.holdsFor(one, gpu.target) === "maybe")) ask("gpu", `this page cannot compare every reason for the GPUs of the lock with ${gpu.target}`);
    if (gpu.kind === "jetson") ask("driver", `${gpu.name} is of a Jetson, whose driver is a part of Jetson Linux`);
  }
  if (!isCuda) ask("driver", `this page compares drivers of NVIDIA only, not those of ${stack.accelerator}`);
  if (stack.basis === "forward-compat") ask("driver", "the stack runs by forward compatibility, which depends on what the image holds");
  const version = Site.asText(driver.version);
  if (isCuda && !version && gpus.length) ask("driver", "the host states no driver: which one can be installed depends on its kernel, headers and Secure Boot");
  if (!isCuda || !version) return;
  if (kind !== "nvidia") { no("driver", `the stack needs a driver of NVIDIA, the host has ${kind}`); return; }
  if (!Site.release("driver", version)) ask("driver", `driver ${version} is not in the matrix`);
  for (const [fact, need] of Object.entries(stack.needs)) {
    if (fact === "gpu") continue;
    const value = fact === "driver" ? version : Site.asText(facts[fact]);
    const answer = value ? Site.allows(need, value) : "maybe";
    const refusing = (stack.reasons[fact] || []).find((one) => value && Site.holdsFor(one, value) === "no");
    if (answer === "no") no(fact, `the host has ${fact} ${value}: ${refusing ? Site.asText(refusing.text) : `the lock needs ${need}`}`);
    else if (answer === "maybe") ask(fact, `the lock needs ${fact} ${need}`);
  }
  Site.judgeKernel(version, Site.asText(facts.kernel), Site.asText(facts.virtualization), ask);
  for (const gpu of gpus.filter((one) => one.target && !one.target.startsWith("gfx"))) Site.judgeRules(stack, facts, { gpu, version, no, ask });
};

/* The loaded module that holds NVIDIA's GPUs in place of NVIDIA's own, else "free"; a table has them as one text. */
Site.holderOf = (modules) => {
  const loaded = (Array.isArray(modules) ? modules : Site.asText(modules).split(/[ ;]+/)).map((one) => Site.asText(one).replaceAll("_", "-"));
  return (!loaded.includes("nvidia") && Site.data.mine.holders.find((one) => loaded.includes(one))) || "free";
};

/* A driver that runs on a kernel that nobody documents it on is unverified, as the solver says it. */
Site.judgeKernel = (version, kernel, virtualization, ask) => {
  if (!kernel || virtualization.startsWith("wsl")) return;
  const release = Site.release("driver", version);
  const need = release && (release.needs || {}).kernel;
  if (!need || Site.allows(need, kernel) !== "yes") ask("kernel", `nobody documents driver ${version} on kernel ${kernel}`);
};

/* The rules of the matrix on one GPU of the host; a rule without an answer is told only where it could refuse. */
Site.judgeRules = (stack, facts, { gpu, version, no, ask }) => {
  const values = { ...Object.fromEntries(Object.entries(stack.stack).filter(([, value]) => !value.includes(","))), platform: stack.platform, accelerator: stack.accelerator, runs: stack.runs, driver: version, gpu: gpu.target, cuda_compat: "none", build: "none" };
  delete values.image;
  const own = Site.asTable(facts.driver);
  if (own.module) values.driver_module = Site.asText(own.module);
  if (gpu.kind) values.gpu_kind = gpu.kind;
  if (facts.loaded_modules) values.loaded_modules = Site.holderOf(facts.loaded_modules);
  for (const key of ["kernel", "container_toolkit", "userspace_driver", "fabric_manager", "nvswitch", "mig", "virtualization"]) if (facts[key]) values[key] = Site.asText(facts[key]);
  for (const rule of Site.data.rules) {
    const [subject] = Object.keys(rule.when);
    if (values[subject] === undefined || values[subject] === "none") continue;
    const holds = [Site.allows(rule.when[subject], values[subject]), ...Object.entries(rule.on || {}).map(([name, need]) => Site.guard(name, need, values))];
    if (holds.includes("no")) continue;
    for (const [name, need] of Object.entries(rule.require || {})) {
      const layer = name === "driver_module" ? "driver" : name;
      const value = values[name];
      const answer = need === "of the same version" ? (value === values[subject] ? "yes" : "no") : value === undefined ? (Site.shown.has(name) || Site.usuallyNone.has(name) ? "yes" : "maybe") : Site.allows(need, value);
      if (answer === "yes") continue;
      const text = `rule ${rule.name}: ${rule.because}`;
      if (answer === "no" && !holds.includes("maybe")) no(layer, text, rule.name);
      else ask(layer, text);
    }
  }
};
Site.guard = (name, need, values) => {
  const value = values[name];
  if (need === "none") return value === undefined || value === "none" ? "yes" : "no";
  if (value === undefined) return Site.usuallyNone.has(name) ? "no" : "maybe";
  return Site.allows(need, value);
};

/* Whether a recorded reason lets a value of its fact be: its list of GPUs has it, or one of its ranges does. */
Site.holdsFor = (reason, value) => {
  const gpus = Site.asList(reason.gpus).map(Site.asText);
  const answers = [...(gpus.length ? [gpus.includes(value) ? "yes" : "no"] : []), ...Site.asList(reason.ranges).map((range) => Site.allows(Site.asText(range), value))];
  if (answers.includes("yes")) return "yes";
  return !answers.length || answers.includes("maybe") ? "maybe" : "no";
};

/* Who in a lock sets the floor of a fact: the text of the recorded reason whose range is the one that the lock needs. */
Site.floorOf = (stack, fact) => {
  const reasons = stack.reasons[fact] || [];
  const found = reasons.find((one) => Site.asList(one.ranges).map(Site.asText).includes(stack.needs[fact])) || reasons[0];
  return found ? Site.asText(found.text) : "";
};
