// Builds the long tables and the plots from the blocks of data in this page.
//
// What comes from the web is only ever the text of a text node, or the address of a link when it begins with http: or
// https:. Nothing here makes markup of text.
"use strict";
(() => {
  const root = document.documentElement;
  const ROWS = 50; // of a table at once
  const INNER = 100; // rows below a row at once
  const PRINTED = 100;
  const PRINTED_INNER = 5;

  function el(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
      else made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  }

  const blocks = new Map();
  function block(name) {
    if (!blocks.has(name)) {
      const found = document.getElementById(`data-${name}`);
      blocks.set(name, found === null ? null : JSON.parse(found.textContent));
    }
    return blocks.get(name);
  }
  const address = (place) => block("urls")[place];
  const ORIGIN = document.body.dataset.origin;
  // the site's own addresses are shown without its name, which is the same everywhere
  const short = (url) => (url.startsWith(`${ORIGIN}/`) ? url.slice(ORIGIN.length) : url);

  // ---------------------------------------------------------------- cells

  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const real = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const NUMBERS = new Set(["whole", "real", "rate", "millis", "size", "seconds"]);

  function size(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let place = 0;
    while (bytes >= 1000 && place < units.length - 1) {
      bytes /= 1024;
      place += 1;
    }
    return `${new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(bytes)} ${units[place]}`;
  }

  const FORMS = {
    whole: (value) => whole.format(value),
    real: (value) => real.format(value),
    millis: (value) => (value < 1000 ? `${whole.format(value)} ms` : `${real.format(value / 1000)} s`),
    rate: (value) => `${real.format(value)}/s`,
    seconds: (value) => `${real.format(value)} s`,
    size,
    url: address,
    text: String,
    choice: String,
  };
  const shown = (kind, value) => (value === null ? "" : FORMS[kind](value));

  function content(kind, value) {
    if (value === null) return "";
    const text = shown(kind, value);
    if (kind === "url" && /^https?:\/\//.test(text)) {
      return el("a", { href: text, rel: "noopener noreferrer nofollow", target: "_blank" }, short(text));
    }
    return NUMBERS.has(kind) ? text : el("bdi", {}, text);
  }

  function cell(column, value) {
    const classes = NUMBERS.has(column.kind) ? "number" : column.kind;
    const nothing = value === null || value === "" ? " nothing" : "";
    return el("td", { role: "cell", class: classes + nothing, "data-name": column.name }, content(column.kind, value));
  }

  function compared(kind, a, b) {
    if (a === null || b === null) return (a === null) - (b === null); // what is not known comes last, whatever the order
    if (NUMBERS.has(kind)) return a - b;
    const left = shown(kind, a);
    const right = shown(kind, b);
    return left < right ? -1 : left > right ? 1 : 0;
  }

  // ---------------------------------------------------------------- tables

  class Table {
    constructor(place) {
      this.place = place;
      this.data = block(place.dataset.table);
      this.order = this.data.rows.map((_, index) => index);
      this.found = this.order;
      this.sortedBy = this.data.sortedBy;
      this.descending = true;
      this.first = 0;
      this.rows = ROWS;
      this.inner = INNER;
      this.opened = new Set();
      this.choice = this.data.columns.findIndex((column) => column.kind === "choice");
      this.build();
      this.show();
    }

    build() {
      const { columns } = this.data;
      const name = this.place.dataset.caption;
      this.words = el("input", { type: "search", on: { input: () => this.filter() } });
      this.status = el("p", { role: "status" });
      const controls = el("div", { class: "controls" }, el("label", {}, el("span", { class: "unseen" }, `Filter ${name} by text `), this.words));
      this.words.placeholder = "Filter by text";
      if (this.choice >= 0) {
        const counts = new Map();
        for (const row of this.data.rows) counts.set(row[this.choice], (counts.get(row[this.choice]) ?? 0) + 1);
        this.select = el("select", { on: { change: () => this.filter() } }, el("option", { value: "" }, "all"));
        for (const [value, count] of [...counts].sort((a, b) => b[1] - a[1])) {
          this.select.append(el("option", { value }, `${value} (${whole.format(count)})`));
        }
        controls.append(el("label", {}, `${columns[this.choice].name} `, this.select));
      }
      controls.append(this.status);
      this.heads = columns.map((column, index) =>
        el(
          "th",
          { scope: "col", role: "columnheader", class: NUMBERS.has(column.kind) ? "number" : null },
          el("button", { type: "button", class: "sort", on: { click: () => this.sort(index) } }, column.name),
        ),
      );
      this.body = el("tbody", { role: "rowgroup" });
      this.before = el("button", { type: "button", on: { click: () => this.turn(-1) } }, "Previous");
      this.after = el("button", { type: "button", on: { click: () => this.turn(1) } }, "Next");
      this.pager = el("nav", { class: "pager", "aria-label": `Pages of ${name}` }, this.before, this.after);
      this.place.append(
        controls,
        el(
          "table",
          { role: "table" },
          el("caption", { class: "unseen" }, name),
          el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...this.heads)),
          this.body,
        ),
        this.pager,
      );
    }

    sort(index) {
      const { kind } = this.data.columns[index];
      this.descending = this.sortedBy === index ? !this.descending : NUMBERS.has(kind);
      this.sortedBy = index;
      const { rows } = this.data;
      const sign = this.descending ? -1 : 1;
      this.order.sort((a, b) => {
        const [left, right] = [rows[a][index], rows[b][index]];
        const known = left !== null && right !== null;
        return compared(kind, left, right) * (known ? sign : 1) || a - b;
      });
      this.filter();
    }

    haystack(index) {
      this.texts ??= [];
      if (this.texts[index] === undefined) {
        const { columns, rows, details } = this.data;
        const parts = columns.map((column, place) => shown(column.kind, rows[index][place]));
        for (const inner of details === null ? [] : details.rows[index]) {
          details.columns.forEach((column, place) => parts.push(shown(column.kind, inner[place])));
        }
        this.texts[index] = parts.join("\n").toLowerCase();
      }
      return this.texts[index];
    }

    filter() {
      const wanted = this.words.value.trim().toLowerCase();
      const choice = this.select?.value ?? "";
      const { rows } = this.data;
      this.found = this.order.filter(
        (index) =>
          (choice === "" || rows[index][this.choice] === choice) && (wanted === "" || this.haystack(index).includes(wanted)),
      );
      this.first = 0;
      this.show();
    }

    turn(step) {
      this.first += step * this.rows;
      this.show();
      this.place.scrollIntoView();
    }

    show() {
      const { rows, total } = this.data;
      const last = Math.min(this.first + this.rows, this.found.length);
      this.heads.forEach((head, index) => {
        if (index === this.sortedBy) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      this.body.replaceChildren();
      for (const index of this.found.slice(this.first, last)) this.body.append(...this.row(index));
      const range = this.found.length > this.rows ? `${whole.format(this.first + 1)} to ${whole.format(last)} of ` : "";
      const filtered = this.found.length < rows.length ? `, filtered from ${whole.format(rows.length)}` : "";
      const cut = total > rows.length ? ` (${whole.format(total)} in all)` : "";
      this.status.textContent = `${range}${whole.format(this.found.length)}${this.found.length === 1 ? " row" : " rows"}${filtered}${cut}`;
      this.pager.hidden = this.found.length <= this.rows;
      this.before.disabled = this.first === 0;
      this.after.disabled = last >= this.found.length;
    }

    row(index) {
      const { columns, rows, details } = this.data;
      const made = el("tr", { role: "row" }, ...columns.map((column, place) => cell(column, rows[index][place])));
      if (details === null || details.totals[index] === 0) return [made];
      const opener = made.children[details.opens];
      const isOpen = this.opened.has(index);
      const button = el("button", { type: "button", class: "open", "aria-expanded": String(isOpen) }, ...opener.childNodes);
      button.addEventListener("click", () => {
        if (this.opened.delete(index)) {
          made.nextSibling.remove();
        } else {
          this.opened.add(index);
          made.after(this.innerRow(index));
        }
        button.setAttribute("aria-expanded", String(this.opened.has(index)));
      });
      opener.replaceChildren(button);
      return isOpen ? [made, this.innerRow(index)] : [made];
    }

    innerRow(index) {
      const { columns, rows, totals } = this.data.details;
      const kept = rows[index];
      const used = columns.map((_, place) => place).filter((place) => kept.some((row) => row[place] !== null));
      const body = el("tbody", { role: "rowgroup" });
      const note = el("p", { class: "none" });
      const more = el("button", { type: "button" });
      let count = 0;
      const add = (most) => {
        for (const row of kept.slice(count, count + most)) {
          body.append(el("tr", { role: "row" }, ...used.map((place) => cell(columns[place], row[place]))));
        }
        count = Math.min(kept.length, count + most);
        more.textContent = `Show ${whole.format(Math.min(INNER, kept.length - count))} more`;
        more.hidden = count >= kept.length;
        note.textContent = count < totals[index] ? `${whole.format(count)} of ${whole.format(totals[index])}` + (kept.length < totals[index] ? `; this page holds ${whole.format(kept.length)} of them` : "") : "";
      };
      more.addEventListener("click", () => add(INNER));
      add(this.inner);
      const heads = used.map((place) => el("th", { scope: "col", role: "columnheader" }, columns[place].name));
      return el(
        "tr",
        { role: "row", class: "inner" },
        el(
          "td",
          { role: "cell", colspan: this.data.columns.length },
          el("table", { role: "table" }, el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)), body),
          note,
          more,
        ),
      );
    }

    // On paper: the first rows, each with the first of what it opens.
    print() {
      this.kept = [this.first, this.rows, this.inner, this.opened];
      [this.first, this.rows, this.inner] = [0, PRINTED, PRINTED_INNER];
      const isLong = this.data.details !== null;
      this.opened = new Set(isLong ? this.found.slice(0, PRINTED) : []);
      this.show();
      if (this.found.length > PRINTED) {
        this.printed = el("p", { class: "none" }, `The first ${PRINTED} of ${whole.format(this.data.total)} rows.`);
        this.place.append(this.printed);
      }
    }

    unprint() {
      [this.first, this.rows, this.inner, this.opened] = this.kept;
      this.printed?.remove();
      this.show();
    }
  }

  const tables = new Map();
  function buildTables(place) {
    for (const each of place.querySelectorAll("[data-table]")) {
      if (!tables.has(each)) tables.set(each, new Table(each));
    }
  }

  // ---------------------------------------------------------------- plots

  // A colour of the style as it is now: custom properties are not resolved, a property that uses one is.
  function colour(name) {
    const probe = el("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  const clock = (seconds) => {
    const s = Math.round(seconds);
    return s < 60 ? `${Math.round(seconds * 10) / 10} s` : `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
  };
  const BINARY = Array.from({ length: 40 }, (_, power) => 2 ** power);
  const axis = (more) => ({ stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, ...more });
  const line = (label, name, value, more) => ({ label, stroke: colour(name), width: 2, value: (_, v) => (v === null ? "" : value(v)), points: { show: false }, ...more });
  const SECONDS = { time: false, range: (_, low, high) => [0, high || 1] };
  const time = () => ({ label: "Time", value: (_, v) => (v === null ? "" : clock(v)) });

  // Marks of an axis by powers of ten; between them, too, where there are few.
  function powers(low, high) {
    const marks = [];
    const steps = high / low < 100 ? [1, 2, 5] : [1];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      for (const step of steps) marks.push(step * 10 ** power);
    }
    return marks.filter((mark) => mark >= low && mark <= high);
  }

  // Both axes by powers where the times are all above nothing: few large pages would else press the others together.
  // A page without a byte has no place there: the plots would look for it without end.
  function dots(all, label, axisLabel) {
    if (all === null) return null;
    const data = all.map((values) => values.filter((_, place) => all[0][place] > 0));
    if (data[0].length === 0) return null;
    const isByPowers = data[1].every((value) => value > 0);
    const y = isByPowers ? { distr: 3, log: 10 } : { range: (_, low, high) => [0, Math.max(high, 1)] };
    return {
      data,
      options: {
        scales: { x: { time: false, distr: 3, log: 2 }, y },
        axes: [
          axis({ values: (_, values) => values.map((v) => (v === null ? "" : size(v))), label: "Size of the page" }),
          axis({ size: 60, label: axisLabel, ...(isByPowers ? { splits: (_, __, low, high) => powers(low, high) } : {}), values: (_, values) => values.map((v) => (v === null ? "" : real.format(v))) }),
        ],
        series: [
          { label: "Size", value: (_, v) => (v === null ? "" : size(v)) },
          { label, stroke: colour("first"), paths: () => null, points: { show: true, size: 5, fill: colour("first"), width: 0 }, value: (_, v) => (v === null ? "" : `${real.format(v)} ms`) },
        ],
        // the finger or pointer takes the nearest page
        cursor: { points: { size: 9 } },
      },
    };
  }

  const PLOTS = {
    rates() {
      const t = block("plots").timeline;
      const bytes = (v) => `${size(v)}/s`;
      return {
        data: [t.at, t.pages, t.bytes],
        options: {
          scales: { x: SECONDS, y: { range: (_, low, high) => [0, high || 1] }, bytes: { range: (_, low, high) => [0, high || 1] } },
          axes: [
            axis({ values: (_, values) => values.map(clock) }),
            axis({ size: 60, label: "Pages a second", stroke: colour("first") }),
            axis({ side: 1, scale: "bytes", size: 80, incrs: BINARY, grid: { show: false }, label: "Bytes a second", stroke: colour("second"), values: (_, values) => values.map((v) => size(v)) }),
          ],
          series: [time(), line("Pages a second", "first", (v) => real.format(v)), line("Bytes a second", "second", bytes, { scale: "bytes", dash: [6, 4] })],
        },
      };
    },
    busy() {
      const t = block("plots").timeline;
      const percent = (v) => `${whole.format(v)}%`;
      return {
        data: [t.at, t.fetch, t.parse, t.coordinator],
        options: {
          scales: { x: SECONDS, y: { range: [0, 100] } },
          axes: [axis({ values: (_, values) => values.map(clock) }), axis({ size: 60, label: "Busy, %" })],
          series: [
            time(),
            line("Fetchers", "second", percent),
            line("Parsers", "first", percent, { dash: [8, 4] }),
            line("Coordinator", "third", percent, { dash: [2, 3] }),
          ],
        },
      };
    },
    parse: () => dots(block("plots").parse, "Time to parse", "Milliseconds"),
    weight: () => dots(block("plots").weight, "Time to answer", "Milliseconds"),
  };

  const plots = new Map();
  function buildPlots(place, width) {
    for (const each of place.querySelectorAll("[data-plot]")) {
      plots.get(each)?.destroy();
      plots.delete(each);
      const made = PLOTS[each.dataset.plot]();
      if (made === null) continue;
      plots.set(each, new uPlot({ width: width ?? each.clientWidth, height: 260, ...made.options }, made.data, each));
    }
  }

  // ---------------------------------------------------------------- the picture

  function buildGraph() {
    const graph = document.getElementById("graph");
    if (graph === null) return;
    const named = document.getElementById("graph-named");
    const choose = (node) => {
      for (const each of graph.querySelectorAll(".chosen")) each.classList.remove("chosen");
      named.textContent = node === null ? "" : node.querySelector("title").textContent;
      if (node === null) return;
      const number = node.dataset.node;
      node.classList.add("chosen");
      for (const each of graph.querySelectorAll(`[data-a="${number}"], [data-b="${number}"]`)) each.classList.add("chosen");
    };
    graph.addEventListener("pointerover", (event) => choose(event.target.closest("[data-node]")));
    graph.addEventListener("click", (event) => choose(event.target.closest("[data-node]")));
    graph.addEventListener("pointerleave", () => choose(null));
  }

  // ---------------------------------------------------------------- tabs

  const panels = [...document.querySelectorAll(".panel")];

  function select(key) {
    const chosen = panels.find((panel) => panel.id === key) ?? panels[0];
    for (const panel of panels) {
      const link = document.getElementById(`tab-${panel.id}`);
      panel.hidden = panel !== chosen;
      if (panel === chosen) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone not all fit
      }
      else link.removeAttribute("aria-current");
    }
    buildTables(chosen);
    buildPlots(chosen);
  }

  const visible = () => panels.find((panel) => !panel.hidden);

  window.addEventListener("hashchange", () => {
    if (location.hash === "#main") return;
    select(location.hash.slice(1));
    window.scrollTo(0, 0);
  });

  let widthBefore = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === widthBefore) return;
    widthBefore = window.innerWidth;
    buildPlots(visible());
  });

  // ---------------------------------------------------------------- theme and paper

  const theme = document.getElementById("theme");
  const NEXT = { auto: "dark", dark: "light", light: "auto" };
  function setTheme(name) {
    if (name === "auto") delete root.dataset.theme;
    else root.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
    buildPlots(visible());
  }
  theme.hidden = false;
  theme.addEventListener("click", () => setTheme(NEXT[root.dataset.theme ?? "auto"]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => buildPlots(visible()));

  let themeBefore;
  window.addEventListener("beforeprint", () => {
    themeBefore = root.dataset.theme;
    root.dataset.theme = "light";
    buildTables(document);
    for (const table of tables.values()) table.print();
    buildPlots(document, 680);
  });
  window.addEventListener("afterprint", () => {
    if (themeBefore === undefined) delete root.dataset.theme;
    else root.dataset.theme = themeBefore;
    for (const table of tables.values()) table.unprint();
    buildPlots(visible());
  });

  buildGraph();
  select(location.hash.slice(1));
})();
