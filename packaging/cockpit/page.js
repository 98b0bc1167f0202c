// The page: it connects to the daemon, and draws what changes.
import { openApp } from "./app.js";
import * as apps from "./apps.js";
import { acknowledge, drawDevice, renew, seal, showDevices, showHistory } from "./device.js";
import { announce, isOff, _ } from "./elements.js";
import * as events from "./events.js";
import { create, invite, join } from "./fleet.js";
import { Follower } from "./follower.js";
import { drawHealth, examine } from "./health.js";
import { menu } from "./menu.js";
import { Model } from "./model.js";
import { drawNotices, readStatus, SOCKET } from "./notices.js";
import { followTheme } from "./theme.js";

const { cockpit } = window;
/** The shortest time between two drawings, in milliseconds: a storm of events draws no faster. */
const DRAWING = 100;
/** The interval of `status`, whose rows cause no event, in milliseconds. */
const STATUS = 10_000;
/** The time without an answer after which the page says so, in milliseconds. */
const OVERDUE = 5_000;
/** The states of tokens are asked for with each so many statuses: their confirmation causes no event. */
const TOKENS = 30;

const page = {
  model: new Model(),
  follower: null,
  /** The last answer to `status`; null if the daemon cannot answer. */
  status: null,
  /** The report of the last check; undefined before its end, null if there is none. */
  report: undefined,
  isChecking: false,
  isFollowing: false,
  /** Whether the daemon has not answered for some seconds. */
  isOverdue: false,
  /** Whether the values are those of a daemon that was followed. */
  wasFollowing: false,
  askStatus,
  act,
};

let drawing = null;
let overdue = null;
let statuses = 0;
let checks = 0;
let lastState = "";

function draw() {
  drawing = null;
  drawNotices(page);
  drawDevice(page);
  drawHealth(page);
  apps.drawApps(page, (name) => act("app", name));
  events.drawEvents(page);
}

function drawSoon() {
  drawing ??= setTimeout(draw, DRAWING);
}

async function askStatus() {
  try {
    page.status = readStatus((await page.follower.ask(["status"])).rows);
  } catch {
    page.status = null;
  }
  drawSoon();
}

// Before the events that follow are told, so that an older state of a token never replaces a newer one.
function askTokens() {
  const attributes = page.follower.isAdmin ? { app: "*" } : {};
  const done = ({ rows }) => {
    for (const row of rows) page.model.tokenState(row.attributes);
    drawSoon();
  };
  page.follower.send(["token", "list"], attributes, done, () => {});
}

async function check() {
  checks += 1;
  const number = checks;
  page.isChecking = true;
  drawSoon();
  const report = await examine();
  // An older check may end after a newer one.
  if (number !== checks) return;
  Object.assign(page, { report, isChecking: false });
  drawSoon();
}

// Waits for the answer of a daemon. Without one, the check may know why.
function awaitAnswer() {
  clearTimeout(overdue);
  overdue = setTimeout(() => {
    page.isOverdue = true;
    check();
  }, OVERDUE);
}

const ACTIONS = {
  history: () => showHistory(page),
  devices: () => showDevices(page),
  invite: () => invite(page),
  join: () => join(page),
  create: () => create(page),
  renew: () => renew(page, "device", {}),
  seal: () => seal(page),
  acknowledge: () => acknowledge(page),
  app: (name) => openApp(page, name),
  check,
  previous: () => turn(-1),
  next: () => turn(1),
  pause: (button) => {
    const isPaused = events.togglePause(page.model);
    button.setAttribute("aria-pressed", String(isPaused));
    announce(isPaused ? _("The events are paused.") : _("The events go on."));
    drawSoon();
  },
  raw: (button) => {
    events.choice.isRaw = !events.choice.isRaw;
    button.setAttribute("aria-pressed", String(events.choice.isRaw));
    drawSoon();
  },
};

/** Does what a button says. Every fault is caught: Cockpit shows any other one as a failure of the whole page. */
async function act(action, argument) {
  try {
    await ACTIONS[action](argument);
  } catch (error) {
    console.warn(`identityd: ${action}: ${error}`);
  }
}

function turn(step) {
  apps.choice.page = Math.max(0, apps.choice.page + step);
  draw();
}

function onInput(id, change) {
  document.getElementById(id).addEventListener("input", (event) => {
    change(event.target);
    drawSoon();
  });
}

function listen() {
  for (const button of document.querySelectorAll("main button[data-action]")) {
    button.addEventListener("click", () => isOff(button) || act(button.dataset.action, button));
  }
  const rare = document.getElementById("device-menu");
  rare.replaceWith(menu(_("More actions"), "device", [...rare.children]));
  onInput("filter-text", (input) => Object.assign(apps.choice, { text: input.value, page: 0 }));
  onInput("filter-tokens", (input) => Object.assign(apps.choice, { onlyTokens: input.checked, page: 0 }));
  onInput("events-text", (input) => (events.choice.text = input.value));
  for (const form of document.querySelectorAll("form")) {
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  document.getElementById("resolve").addEventListener("submit", () => {
    apps.resolve(page, document.getElementById("resolve-value").value);
  });
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && askStatus());
}

function connect() {
  const open = (asAdmin) => {
    const rights = asAdmin ? { superuser: "try" } : {};
    return cockpit.channel({ payload: "stream", unix: SOCKET, binary: true, ...rights });
  };
  page.follower = new Follower(open, {
    state: ({ name, error }) => {
      drawSoon();
      // Each attempt tells the same again.
      const told = JSON.stringify([name, error?.code, error?.message]);
      if (told === lastState) return;
      lastState = told;
      page.isFollowing = name === "following";
      page.wasFollowing ||= page.isFollowing;
      // The values of a daemon that refuses to tell them are not known.
      if (name === "refused") {
        page.wasFollowing = false;
        page.model.forget();
      }
      // After a lag, the page connects anew, and asks then.
      if (name === "connecting") return awaitAnswer();
      clearTimeout(overdue);
      page.isOverdue = false;
      if (name === "lost") page.status = null;
      else askStatus();
      if (page.isFollowing) askTokens();
      check();
    },
    begin: () => page.model.begin(),
    row: (topic, attributes) => page.model.row(topic, attributes),
    event: (event) => {
      page.model.event(event);
      drawSoon();
    },
    missed: (number) => page.model.missed(number),
  });
  setInterval(() => {
    if (document.visibilityState !== "visible") return;
    askStatus();
    statuses += 1;
    if (statuses % TOKENS === 0 && page.isFollowing) askTokens();
  }, STATUS);
}

cockpit.translate();
document.documentElement.lang = (cockpit.language ?? "en").replace("_", "-");
followTheme();
listen();
awaitAnswer();
connect();
// Not only with an answer of the daemon, which may never come.
check();
drawSoon();
// Cockpit loads a page anew when administrative access goes on or off, if the page asks for the permission.
cockpit.permission({ admin: true });
