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
  return element("table", attributes,
    element("thead", {}, element("tr", {}, headings.map((text) => element("th", {}, text)))),
    element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell) => element("td", {}, cell))))));
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
  const more = element("button", { type: "button", onclick: add });
  function add() {
    shown.append(...entries.slice(next, next + first).map(show));
    next = Math.min(entries.length, next + first);
    more.textContent = "show " + Math.min(first, entries.length - next) + " more of " + count(entries.length, "entry", "entries");
    more.hidden = next === entries.length;
  }
  add();
  return [shown, more];
}

// time returns a moment as the commands print it.
function time(text) {
  return text ? text.replace("T", " ").replace(/(\.\d{3})\d*/, "$1").replace("Z", "") : "";
}

// shorten cuts a text in its middle, because names differ at both ends.
function shorten(text, limit) {
  const characters = Array.from(text);
  if (characters.length <= limit) return text;
  const half = Math.floor((limit - 1) / 2);
  return characters.slice(0, half).join("") + "\u2026" + characters.slice(characters.length - (limit - 1 - half)).join("");
}
