// The stage: a translation's tokens, revealed step by step as the model wrote them.

const byId = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function show(piece) {
  const text = piece.replace("▁", "");
  return text === "" ? "␣" : text;
}

export class Stage {
  constructor() {
    this.stage = byId("stage");
    this.step = 0;
    this.last = 0;
    this.timer = null;
    byId("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    byId("back").addEventListener("click", () => this.jump(this.step - 1));
    byId("forward").addEventListener("click", () => this.jump(this.step + 1));
    byId("step").addEventListener("input", (event) => this.jump(Number(event.target.value)));
    byId("speed").addEventListener("input", () => this.changeSpeed());
    this.changeSpeed();
  }

  // Show a sentence, or nothing.
  load(sentence, note, { autoplay = true } = {}) {
    this.pause();
    this.sentence = sentence;
    const known = sentence && sentence.written_in.length > 0;
    const pieces = known ? sentence.pieces : [];
    const written = known ? sentence.written_in : [];
    const sides = known ? sentence.towards : [];
    this.stage.replaceChildren(
      ...pieces.map((piece, index) => {
        const token = document.createElement("span");
        token.className = `token ${sides[index]}`;
        token.classList.toggle("begins", piece.startsWith("▁") && index > 0);
        token.classList.toggle("closes", index + 1 === pieces.length || pieces[index + 1].startsWith("▁"));
        token.classList.toggle("seam", index > 0 && sides[index - 1] === "right" && sides[index] === "left");
        const text = document.createElement("b");
        text.textContent = show(piece);
        const number = document.createElement("i");
        number.textContent = written[index];
        token.append(text, number);
        return token;
      }),
    );
    this.stage.classList.toggle("both", sides.includes("left"));
    this.stage.classList.toggle("one", sides.length > 0 && !sides.includes("left"));
    this.written = written;
    // The end symbol may have a step of its own. A draft saves steps, but the order is the same.
    this.last = known ? sentence.steps + sentence.steps_saved : 0;
    byId("step").max = this.last;
    byId("stage-note").textContent = note;
    for (const id of ["play", "back", "forward", "step"]) byId(id).disabled = !this.last;
    if (autoplay && !calm.matches && this.last) {
      this.render(0);
      this.play();
    } else {
      this.render(this.last);
    }
  }

  play() {
    if (this.step >= this.last) this.render(0);
    byId("play").classList.add("playing");
    byId("play").setAttribute("aria-label", "Pause");
    const tick = () => {
      this.render(this.step + 1);
      if (this.step >= this.last) this.pause();
      else this.timer = setTimeout(tick, 1000 / this.speed);
    };
    this.timer = setTimeout(tick, 600 / this.speed);
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    byId("play").classList.remove("playing");
    byId("play").setAttribute("aria-label", "Play");
  }

  jump(step) {
    this.pause();
    this.render(step);
    const now = [...this.stage.children].filter((_, index) => this.written[index] === this.step);
    const words = now.map((token) => token.firstChild.textContent);
    if (this.step === this.last && this.sentence?.finished) words.push("the end symbol");
    byId("stage-text").textContent = `Step ${this.step} of ${this.last}${words.length ? `: ${words.join(" and ")}` : ""}`;
  }

  render(step) {
    this.step = Math.max(0, Math.min(this.last, step));
    [...this.stage.children].forEach((token, index) => {
      token.classList.toggle("written", this.written[index] <= this.step);
      token.classList.toggle("new", this.written[index] === this.step && this.step < this.last);
    });
    this.stage.classList.toggle("done", this.last > 0 && this.step === this.last);
    const slider = byId("step");
    slider.value = this.step;
    slider.setAttribute("aria-valuetext", `step ${this.step} of ${this.last}`);
    byId("step-number").textContent = `${this.step} / ${this.last}`;
  }

  changeSpeed() {
    this.speed = Number(byId("speed").value);
    byId("speed-number").textContent = `${this.speed} a second`;
  }
}
