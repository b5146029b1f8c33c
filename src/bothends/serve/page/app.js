// The page: text in, translation as you type, and everything that shows how it came about.

import { get, post, useKey } from "./api.js";
import { Files } from "./files.js";
import { Output } from "./output.js";
import { Race, rivals } from "./race.js";
import { Stage } from "./stage.js";

const SAMPLES = [
  "Where is the nearest station?",
  "My brother wants to learn how to play the guitar.",
  "I was so tired that I fell asleep in front of the television.",
];
const PAUSE = 250; // milliseconds without a key before a translation is asked for

const byId = (id) => document.getElementById(id);
const source = byId("source");
const stage = new Stage();
const output = new Output(edited, fail);

let models = [];
let settings = { charLimit: 20000 };
let race = null;
let answer = null; // the newest
let current = 0; // sentence on the stage
let asking = null; // an AbortController
let timer = null;
let retry = null;

function model() {
  return models.find((each) => each.name === byId("model").value) ?? models[0];
}

function fail(problem) {
  if (problem.name === "AbortError") return;
  const alert = byId("alert");
  byId("key-form").hidden = problem.status !== 401;
  const again = problem.status === 503 || problem.status === 0;
  const wait = Math.max(1, problem.retryAfter || 2);
  alert.textContent = again ? `${problem.message} Trying again in ${wait} s.` : problem.message;
  alert.hidden = false;
  byId("status").textContent = "";
  if (again) {
    clearTimeout(retry);
    retry = setTimeout(models.length ? translate : start, 1000 * wait);
  }
}

function succeed() {
  byId("alert").hidden = true;
  byId("key-form").hidden = true;
  clearTimeout(retry);
}

// Translation as you type

function typed() {
  const length = source.value.length;
  byId("count").textContent = `${length} / ${settings.charLimit}`;
  byId("output").classList.toggle("outdated", Boolean(length));
  clearTimeout(timer);
  asking?.abort(); // what it would bring is outdated; the server drops it
  timer = setTimeout(translate, PAUSE);
}

async function translate() {
  clearTimeout(timer);
  asking?.abort();
  const text = source.value;
  if (!text.trim()) {
    answer = null;
    output.clear();
    byId("status").textContent = "";
    show(0);
    return;
  }
  asking = new AbortController();
  const { signal } = asking;
  const many = Number(byId("n-best").value);
  const beam = Number(byId("beam").value);
  const chosen = model();
  const body = { text, format: "text", model: chosen.name, beam, n_best: Math.min(many, beam) };
  // Greedily, what there was is a draft of what will be: the answer is the same, in fewer steps.
  if (beam === 1 && answer?.model === chosen.name) body.draft = answer.result.sentences.map((each) => each.text);
  const begin = performance.now();
  try {
    const found = await post("/v1/translate", body, signal);
    const seconds = (performance.now() - begin) / 1000;
    succeed();
    answer = { ...found, result: found.results[0], beam };
    answer.choice = answer.result.sentences.map(() => 0);
    output.load(answer.result, chosen.name);
    byId("output").classList.remove("outdated");
    byId("status").textContent = told(answer, seconds);
    show(0);
  } catch (problem) {
    if (problem.name !== "AbortError") byId("output").classList.remove("outdated");
    fail(problem);
  }
}

function told({ result, order }, seconds) {
  const tokens = result.sentences.reduce((sum, each) => sum + each.tokens.length, 0);
  const steps = result.sentences.reduce((sum, each) => sum + each.steps, 0);
  const cut = result.sentences.some((each) => each.truncated || !each.finished);
  const saved = result.sentences.reduce((sum, each) => sum + Math.max(0, each.steps_saved), 0);
  const parts = [`${tokens} tokens in ${steps} steps of ${order}`];
  if (saved) parts.push(`${saved} ${saved === 1 ? "step" : "steps"} saved by what was there`);
  parts.push(`${Math.round(1000 * seconds)} ms`);
  if (cut) parts.push("a sentence was cut short");
  return parts.join(" · ");
}

// One sentence at a time on the stage, in the race and in the list of hypotheses

function show(number, { autoplay = true } = {}) {
  const sentences = answer?.result.sentences ?? [];
  current = Math.max(0, Math.min(sentences.length - 1, number));
  byId("sentence-picker").hidden = sentences.length < 2;
  byId("sentence-number").textContent = `Sentence ${current + 1} of ${sentences.length}`;
  byId("previous-sentence").disabled = current === 0;
  byId("next-sentence").disabled = current + 1 >= sentences.length;
  const sentence = sentences[current];
  if (race) race.text = sentence?.source ?? "";
  const chosen = sentence?.hypotheses[answer.choice[current]];
  stage.load(chosen ?? null, note(chosen), { autoplay });
  list(sentence);
}

function note(hypothesis) {
  if (!hypothesis) return "Write something above to see it.";
  if (!hypothesis.written_in.length) return "How this text was written is not known.";
  const steps = hypothesis.steps + hypothesis.steps_saved; // those of a search from nothing
  const end = `${hypothesis.tokens.length} tokens and the end symbol in ${steps} steps; one at a time, it takes ${hypothesis.tokens.length + 1}.`;
  const history = answer.beam > 1 ? " Replayed from its tokens and the order: other hypotheses of the beam are not shown." : " Replayed from its tokens and the order.";
  return end + history;
}

function list(sentence) {
  const hypotheses = sentence?.hypotheses ?? [];
  const likeliest = Math.max(...hypotheses.map((each) => each.logprob));
  byId("hypotheses").replaceChildren(
    ...hypotheses.map((each, rank) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(rank === answer.choice[current]));
      const text = document.createElement("span");
      text.className = "t";
      text.textContent = each.text;
      const score = document.createElement("span");
      score.className = "number";
      score.textContent = each.score.toFixed(2);
      score.title = "score: log probability, normalised by length";
      const bar = document.createElement("span");
      bar.className = "bar";
      bar.style.width = `${Math.max(1, 100 * Math.exp(each.logprob - likeliest))}%`;
      button.append(text, score, bar);
      button.addEventListener("click", () => {
        answer.choice[current] = rank;
        output.replace(current, each.text);
        show(current);
        byId("hypotheses").querySelectorAll("button")[rank].focus();
      });
      item.append(button);
      return item;
    }),
  );
  const wanted = Number(byId("n-best").value);
  const few = hypotheses.length > 0 && answer.beam < wanted;
  byId("best-note").hidden = !few;
  byId("best-note").textContent = few ? `A beam of ${answer.beam} keeps no more; widen it above.` : "";
  if (!hypotheses.length) {
    const item = document.createElement("li");
    item.className = "faint";
    item.textContent = "None yet.";
    byId("hypotheses").append(item);
  }
}

function edited(number) {
  byId("status").textContent = "Changed by you.";
  if (number !== current) show(number, { autoplay: false });
}

// Set-up

function chooseTheme(name) {
  const dark = name === "dark" || (name === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = { system: "◐", light: "○", dark: "●" }[name];
  const spoken = { system: "as the system", light: "light", dark: "dark" }[name];
  byId("theme").setAttribute("aria-label", `Theme: ${spoken}`);
  localStorage.setItem("bothends-theme", name);
}

function nameLanguages() {
  const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
  const chosen = model();
  byId("source-language").textContent = chosen.source ? names.of(chosen.source) : "Source";
  byId("target-language").textContent = chosen.target ? names.of(chosen.target) : "Output";
  if (chosen.source) source.lang = chosen.source;
  if (chosen.target) for (const id of ["output", "hypotheses", "stage", "menu"]) byId(id).lang = chosen.target;
}

// The stage is for models that write from both ends: one that does not is told from them, and points to one.
function nameStage() {
  const closing = (each) => Number.parseInt(each.order, 10) > 1;
  const other = closing(model()) ? undefined : models.find(closing);
  byId("stage-title").textContent = closing(model()) ? "Both ends closing" : "Written left to right";
  byId("both-ends").hidden = !other;
  if (other) byId("both-ends").textContent = `See both ends close: ${other.name}`;
  byId("both-ends").value = other?.name ?? "";
}

function choose(name) {
  byId("model").value = name;
  nameLanguages();
  nameStage();
  translate();
}

function listen() {
  source.addEventListener("input", typed);
  for (const id of ["beam", "n-best"]) byId(id).addEventListener("change", () => translate());
  byId("model").addEventListener("change", () => choose(byId("model").value));
  byId("both-ends").addEventListener("click", () => choose(byId("both-ends").value));
  byId("previous-sentence").addEventListener("click", () => show(current - 1));
  byId("next-sentence").addEventListener("click", () => show(current + 1));
  byId("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(output.text);
    byId("status").textContent = "Copied.";
  });
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(byId("key").value);
    translate();
  });
  byId("theme").addEventListener("click", () => {
    const now = localStorage.getItem("bothends-theme") ?? "system";
    chooseTheme({ system: "light", light: "dark", dark: "system" }[now]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    chooseTheme(localStorage.getItem("bothends-theme") ?? "system");
  });
}

async function start() {
  try {
    [models, settings] = await Promise.all([get("/v1/models"), get("/frontend/settings")]);
  } catch {
    fail({ message: "The server does not answer.", status: 0, retryAfter: 2 });
    return;
  }
  succeed();
  for (const option of [...byId("beam").options]) if (Number(option.value) > settings.beamLimit) option.remove();
  byId("model").replaceChildren(...models.map((each) => new Option(`${each.name}`, each.name)));
  nameLanguages();
  nameStage();
  const pair = rivals(models);
  if (pair) race = new Race(pair, fail);
  new Files(settings, model, fail);
  if (model().source === "en") {
    byId("samples").replaceChildren(
      ...SAMPLES.map((text) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = text.length > 34 ? `${text.slice(0, 32)}…` : text;
        button.setAttribute("aria-label", text);
        button.addEventListener("click", () => {
          source.value = text;
          typed();
          translate();
        });
        return button;
      }),
    );
    if (!source.value) source.value = SAMPLES[1];
  }
  typed();
}

chooseTheme(localStorage.getItem("bothends-theme") ?? "system");
listen();
start();
