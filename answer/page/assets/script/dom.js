"use strict";

// element returns an element with attributes, listeners and children. A text becomes a text node, so no name can
// become markup.
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

// shape returns an element of a picture.
function shape(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter(Boolean));
  return made;
}

function table(headings, rows, attributes) {
  return element("table", attributes, headRow(headings),
    element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell) => element("td", {}, cell))))));
}

// headRow returns the head of a table.
function headRow(headings) {
  return element("thead", {}, element("tr", {}, headings.map((text) => element("th", {}, text))));
}

// cell returns a cell of a table whose text stays on one line. What is cut is in its title.
function cell(...content) {
  const made = element("td", { class: "short" }, element("span", {}, ...content));
  made.title = made.textContent;
  return made;
}

// facts returns a list of names and values; pairs without a value are left out.
function facts(pairs) {
  return element("dl", {}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value.length !== 0)
    .map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function count(number, one, many) {
  return number.toLocaleString("en") + " " + (number === 1 ? one : many || one + "s");
}

// listOf shows the first entries of a long list, and a button that shows more.
function listOf(entries, show, container, first = 200) {
  const shown = element(container, { class: "entries" });
  let next = 0;
  const more = element("button", { type: "button", class: "more", onclick: add });
  function add() {
    shown.append(...entries.slice(next, next + first).map(show));
    next = Math.min(entries.length, next + first);
    more.textContent = "show " + Math.min(first, entries.length - next) + " more of " + count(entries.length, "entry", "entries");
    more.hidden = next === entries.length;
  }
  add();
  return [shown, more];
}

// time returns a moment as the commands print it, in milliseconds.
function time(text) {
  if (!text) return "";
  const [seconds, fraction = ""] = text.replace("T", " ").replace("Z", "").split(".");
  return seconds + "." + fraction.slice(0, 3).padEnd(3, "0");
}

// shorten cuts a text in its middle, because names differ at both ends.
function shorten(text, limit) {
  const characters = Array.from(text);
  if (characters.length <= limit) return text;
  const half = Math.floor((limit - 1) / 2);
  return characters.slice(0, half).join("") + "\u2026" + characters.slice(characters.length - (limit - 1 - half)).join("");
}

const longest = 120; // characters of a name that is not cut

// label returns a name; a long one is cut, and has all of itself in its title.
function label(text, limit = longest) {
  const short = shorten(text, limit);
  return short === text ? text : element("span", { title: text }, short);
}

// filters returns fields that choose what a view shows. A field has a name and a label, and either options, pairs of a
// value and a text, or a placeholder. Each change calls draw, and is kept in the address, so that the way back finds it.
function filters(fields, state, draw) {
  const change = (name) => (event) => {
    state[name] = event.target.value;
    const [path, query] = location.hash.split("?");
    history.replaceState(history.state, "", withQuery(path, { ...Object.fromEntries(new URLSearchParams(query)), ...state }));
    draw();
  };
  return element("div", { class: "tools" }, fields.map(({ name, label: what, options, placeholder }) => (options
    ? element("select", { name, "aria-label": what, onchange: change(name) }, options.map(([value, text]) => element("option", { value, selected: String(value) === state[name] }, shorten(text, 60))))
    : element("input", { name, type: "search", value: state[name], placeholder, "aria-label": what, oninput: change(name) }))));
}

// chosenFrom returns the values that a query has for fields.
function chosenFrom(query, ...names) {
  return Object.fromEntries(names.map((name) => [name, query[name] || ""]));
}

// unfolding returns details whose content is made when they are opened first.
function unfolding(attributes, summary, content) {
  const details = element("details", attributes, summary);
  let filled = false;
  const fill = () => {
    if (!filled) details.append(...[content()].flat(Infinity).filter(Boolean));
    filled = true;
  };
  details.addEventListener("toggle", () => details.open && fill());
  if (details.open) fill();
  return details;
}
