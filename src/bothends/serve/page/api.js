// Requests to the server, and what went wrong with them in words.

let key = sessionStorage.getItem("bothends-key") || "";

export function useKey(value) {
  key = value.trim();
  sessionStorage.setItem("bothends-key", key);
}

export class Problem extends Error {
  constructor(message, status, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export async function get(path) {
  const response = await fetch(path);
  return answer(response);
}

export async function post(path, body, signal) {
  const headers = { "content-type": "application/json" };
  if (key) headers.authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer. Is it running?", 0, 3);
  }
  return answer(response);
}

async function answer(response) {
  if (response.ok) return response.json();
  let text = response.statusText;
  try {
    text = (await response.json()).error;
  } catch {
    // not ours: a proxy's page, perhaps
  }
  const wait = Number(response.headers.get("retry-after")) || 0;
  throw new Problem(`${text[0].toUpperCase()}${text.slice(1)}.`, response.status, wait);
}
