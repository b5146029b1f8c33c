// The translation as words that can be clicked, and the menu of other ways to say them.
// Several words are chosen by dragging over them, with Shift and a click, or with Shift and arrows.

import { post } from "./api.js";

const byId = (id) => document.getElementById(id);

export class Output {
  // `changed` is called with the number of a sentence whose text the user has replaced.
  constructor(changed, failed) {
    this.box = byId("output");
    this.menu = byId("menu");
    this.changed = changed;
    this.failed = failed;
    this.parts = []; // plain text, or { number, source, text, changed }, in text order
    this.places = new WeakMap(); // of each word: its sentence, and where it begins in it
    this.anchor = null; // the word where a choice of several begins
    this.box.addEventListener("pointerdown", (event) => {
      this.pressed = event.pointerType === "mouse" ? event.target.closest(".word") : null;
    });
    this.box.addEventListener("pointerover", (event) => {
      const word = event.target.closest(".word");
      if (this.pressed && word && event.buttons) this.choose(this.pressed, word);
    });
    this.box.addEventListener("pointerup", (event) => {
      const word = event.target.closest(".word");
      this.dragged = Boolean(this.pressed && word && word !== this.pressed);
      if (this.dragged) this.ask(word, this.pressed);
      this.pressed = null;
    });
    this.box.addEventListener("click", (event) => {
      const word = event.target.closest(".word");
      if (!word) return;
      const several = event.shiftKey || (event.detail === 0 && this.chosen.length > 1);
      this.ask(word, several && this.anchor ? this.anchor : word);
    });
    this.box.addEventListener("keydown", (event) => this.move(event));
    this.menu.addEventListener("keydown", (event) => this.moveInMenu(event));
    document.addEventListener("click", (event) => {
      const dragged = this.dragged; // the click that ends a drag is none
      this.dragged = false;
      if (!dragged && !this.menu.contains(event.target) && !event.target.closest(".word")) this.close();
    });
  }

  get chosen() {
    return [...this.box.querySelectorAll(".word.chosen")];
  }

  // The words from one to another of the same sentence; else the last alone.
  between(from, to) {
    const words = [...this.box.querySelectorAll(".word")];
    const [first, last] = [words.indexOf(from), words.indexOf(to)].sort((a, b) => a - b);
    const same = first >= 0 && this.places.get(from).part === this.places.get(to).part;
    return same ? words.slice(first, last + 1) : [to];
  }

  choose(from, to) {
    const words = from ? this.between(from, to) : [];
    for (const word of this.box.querySelectorAll(".word")) word.classList.toggle("chosen", words.includes(word));
    return words;
  }

  get text() {
    return this.parts.map((part) => (typeof part === "string" ? part : part.text)).join("");
  }

  // Find the sentences in the text; what lies between them is shown as it is.
  load(result, model) {
    this.close();
    this.model = model;
    this.parts = [];
    let rest = 0;
    result.sentences.forEach((sentence, number) => {
      const at = sentence.text ? result.text.indexOf(sentence.text, rest) : -1;
      if (at < 0) return;
      if (at > rest) this.parts.push(result.text.slice(rest, at));
      this.parts.push({ number, source: sentence.source, text: sentence.text, changed: null });
      rest = at + sentence.text.length;
    });
    if (rest < result.text.length) this.parts.push(result.text.slice(rest));
    this.render();
  }

  // Put another text in the place of a sentence.
  replace(number, text, changed = null) {
    const part = this.parts.find((each) => each.number === number);
    if (!part) return;
    part.text = text;
    part.changed = changed;
    this.render();
  }

  clear() {
    this.close();
    this.parts = [];
    this.render();
  }

  render() {
    const nodes = [];
    for (const part of this.parts) {
      if (typeof part === "string") {
        nodes.push(part);
        continue;
      }
      for (const match of part.text.matchAll(/(\s+)|([\p{L}\p{N}\p{M}’'-]+)|(.)/gsu)) {
        if (!match[2]) {
          nodes.push(match[0]);
          continue;
        }
        const word = document.createElement("button");
        word.type = "button";
        word.className = "word";
        word.tabIndex = -1;
        word.textContent = match[0];
        word.setAttribute("aria-haspopup", "menu");
        word.setAttribute("aria-expanded", "false");
        this.places.set(word, { part, start: match.index });
        const inside = part.changed && match.index >= part.changed[0] && match.index < part.changed[1];
        word.classList.toggle("changed", Boolean(inside));
        nodes.push(word);
      }
    }
    this.box.replaceChildren(...nodes);
    const first = this.box.querySelector(".word");
    if (first) first.tabIndex = 0; // one stop for Tab; arrows go from word to word
  }

  move(event) {
    const words = [...this.box.querySelectorAll(".word")];
    const at = words.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: words.length - 1 }[event.key];
    if (at < 0 || to === undefined || !words[to]) return;
    event.preventDefault();
    words[at].tabIndex = -1;
    words[to].tabIndex = 0;
    words[to].focus();
    if (!event.shiftKey) this.anchor = words[to];
    else if (!this.chosen.length) this.anchor = words[at]; // a new choice begins
    this.choose(event.shiftKey ? this.anchor : null, words[to]);
  }

  // Ask for other ways to say a word, or all from another one to it.
  async ask(word, from = word) {
    this.close();
    this.anchor = from;
    const words = this.choose(from, word);
    const ending = words.at(-1);
    this.word = word;
    word.setAttribute("aria-expanded", "true");
    const waiting = document.createElement("p");
    waiting.textContent = "Looking for others…";
    this.open(word, [waiting]);
    const { part, start } = this.places.get(words[0]);
    const end = this.places.get(ending).start + ending.textContent.length;
    const body = {
      source: part.source,
      translation: part.text,
      start: [...part.text.slice(0, start)].length, // the server counts characters, not UTF-16
      end: [...part.text.slice(0, end)].length,
      n_best: 6,
      model: this.model,
    };
    this.asking = new AbortController();
    try {
      const { alternatives } = await post("/v1/alternatives", body, this.asking.signal);
      const items = alternatives.map((each) => this.item(part, each));
      if (!items.length) waiting.textContent = "There is no other way to say it.";
      this.open(word, items.length ? items : [waiting]);
      items[0]?.focus();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.close();
      this.failed(error);
    }
  }

  item(part, alternative) {
    const { text, start, end } = alternative;
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("role", "menuitem");
    const characters = [...text];
    button.textContent = characters.slice(start, end).join("").trim();
    button.addEventListener("click", () => {
      const from = characters.slice(0, start).join("").length;
      const to = characters.slice(0, end).join("").length;
      this.close();
      this.replace(part.number, text, [from, to]);
      this.changed(part.number);
      this.box.querySelector(".word.changed")?.focus();
    });
    return button;
  }

  open(word, items) {
    this.menu.replaceChildren(...items);
    this.menu.hidden = false;
    const place = word.getBoundingClientRect();
    const width = this.menu.offsetWidth;
    const left = Math.min(place.left, document.documentElement.clientWidth - width - 12);
    this.menu.style.left = `${Math.max(8, left) + scrollX}px`;
    this.menu.style.top = `${place.bottom + scrollY + 6}px`;
  }

  moveInMenu(event) {
    const items = [...this.menu.querySelectorAll("button")];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
      const word = this.word;
      this.close();
      word?.focus();
      event.preventDefault();
    } else if (to !== undefined) {
      event.preventDefault();
      items[(to + items.length) % items.length]?.focus();
    }
  }

  close() {
    this.asking?.abort();
    this.menu.hidden = true;
    this.choose(null);
    this.word?.setAttribute("aria-expanded", "false");
    this.word = null;
  }
}
