/* Verdicts are looked up, never worked out: the solver decided every cell when this site was made. */
"use strict";
Site.grid = Site.data.grid;
Site.letters = {
  n: { mark: "N", word: "runs natively", say: "The driver knows this CUDA itself." },
  m: { mark: "M", word: "runs by minor-version compatibility", say: "The driver is older than this CUDA but of the same major family, at or above its floor." },
  f: { mark: "F", word: "runs by forward compatibility only", say: "Needs NVIDIA's cuda-compat package, on data-centre GPUs; a spec must allow forward-compat." },
  p: { mark: "P", word: "runs through PTX only", say: "No machine code for this GPU: the driver compiles it at first start; a spec must allow ptx-jit." },
  o: { mark: "O", word: "runs as another GPU through an override", say: "It has no code for this GPU: a variable has it run another target's, which AMD does not support, so the answer is unverified." },
  u: { mark: "?", word: "is unverified: its compiled targets were not measured", say: "Nobody measured which GPUs this build is compiled for." },
  x: { mark: "×", word: "refused", say: "" },
};

Site.frameworks = [...new Set(Site.grid.builds.map((build) => build.component))];

/* The code of one cell, or null where the build is not made for the platform. */
Site.cell = (platform, device, build, driver) => {
  const number = Site.grid.table[platform][device][build];
  if (number < 0) return null;
  const row = Site.grid.rows[number];
  const code = Site.grid.codes[row[row.length === 1 ? 0 : driver]];
  return code.letter === "n" && Site.isOverridden(device, build) ? Site.overridden : code;
};
Site.overridden = { letter: "o" };

/* Whether a build for ROCm has no code for a GPU: it runs there by an override of the matrix, where the solver found a stack. */
Site.isOverridden = (device, build) => {
  if (!Site.isAmd(device)) return false;
  const row = Site.rowOf(Site.grid.builds[build].component, build);
  const targets = (row && row.build && row.build.gfx) || [];
  return targets.length > 0 && !targets.includes(Site.grid.devices[device].target) && !targets.some((one) => one.endsWith("-generic"));
};

Site.isAmd = (device) => Site.grid.devices[device].target.startsWith("gfx");
Site.serves = (build, device) => (Site.grid.builds[build].accelerator === "rocm") === Site.isAmd(device);
/* Whether a spec that allows these ways gets this stack; one whose targets nobody measured only where the solver takes it. */
Site.isAllowed = (code, ways) => {
  if (code === null || code.letter === "x") return false;
  if (code.letter === "u" && !code.offered) return false;
  if (code.letter === "p") return Boolean(ways.ptx);
  const basis = code.letter === "u" ? code.basis : { n: "native", m: "minor-version", f: "forward-compat" }[code.letter];
  return basis === "forward-compat" ? Boolean(ways.forward) : true;
};

/* The best verdict of one build on a host: over all drivers that may be chosen where none is stated. */
Site.best = (host, build) => {
  const drivers = host.driver === null ? Site.choosable(host) : [host.driver];
  let best = null;
  for (const driver of Site.isAmd(host.device) ? [0] : drivers) {
    const code = Site.cell(host.platform, host.device, build, driver);
    if (code === null) return null;
    if (best === null || (Site.isAllowed(code, host) && !Site.isAllowed(best.code, host))) best = { code, driver };
  }
  return best;
};

/* Drivers a host without one may get: those documented on its kernel, newest first. */
Site.choosable = (host) => Site.grid.drivers.map((_, index) => index)
  .filter((index) => (Site.grid.documented[Site.grid.drivers[index]] || []).some((kernel) => !host.kernel || kernel === host.kernel));

/* What runs on a host: for each release of each framework its most wanted build that does, or why none does. */
Site.stacks = (host) => {
  const found = [];
  for (const component of Site.frameworks) {
    const releases = new Map();
    Site.grid.builds.forEach((build, index) => {
      if (build.component !== component || !Site.serves(index, host.device)) return;
      if (!releases.has(build.release)) releases.set(build.release, []);
      releases.get(build.release).push(index);
    });
    for (const [release, builds] of releases) {
      const tried = builds.map((build) => ({ component, release, build, ...(Site.best(host, build) || { code: null }) })).filter((one) => one.code !== null);
      const runs = tried.find((one) => Site.isAllowed(one.code, host));
      const unmeasured = tried.find((one) => one.code.letter === "u");
      if (runs) found.push({ ...runs, runs: true });
      else if (tried.length) found.push({ ...(unmeasured || tried[0]), runs: false });
    }
  }
  return found;
};

Site.buildName = (index) => { const one = Site.grid.builds[index]; return `${Site.title(one.component)} ${one.release}${one.build ? ` ${one.build}` : ""}`; };
Site.deviceName = (index) => { const one = Site.grid.devices[index]; return one.kind ? `${one.target} ${one.kind}` : one.target; };
Site.deviceOf = (gpu) => Site.grid.devices.findIndex((one) => one.target === (gpu.compute_capability || gpu.gfx) && one.kind === (gpu.kind || ""));
Site.mark = (letter) => Site.element("span", { class: `mark ${letter}`, "aria-hidden": "true" }, Site.letters[letter].mark);
