// Invitations into the account, and joining one. The fleet's service carries them out, at a socket of its own.
import { openDialog, refusal } from "./dialog.js";
import { _, draw, element, format, remedy, time, value, visible } from "./elements.js";
import { Connection } from "./wire.js";
import { Refusal } from "./words.js";

const { cockpit } = window;
const SOCKET = "/run/identity-fleet/identity-fleet.sock";
/** The app that the package of the service brings. */
const APP = "identity-fleet";
/** The interval of the questions while a dialog waits for the other device, in milliseconds. */
const INTERVAL = 1_000;

function connect() {
  const channel = cockpit.channel({ payload: "stream", unix: SOCKET, binary: true, superuser: "try" });
  return new Connection(channel, { event: () => {}, lag: () => {}, ended: () => {} });
}

/** Asks the service for its state. */
async function askState(connection) {
  const { rows } = await connection.ask(["fleet", "status"]);
  return new Map(rows.flatMap(({ attributes }) => [...attributes]));
}

/** Shows the state of the service until show() returns true, or the place is gone. lost() is for a service that ends. */
async function watch(place, show, lost = () => {}) {
  const connection = connect();
  try {
    while (place.isConnected && !show(await askState(connection))) {
      await new Promise((done) => setTimeout(done, INTERVAL));
    }
  } catch {
    lost();
    draw(place, "lost", () => _("The fleet's service does not answer any more."));
  }
  connection.close();
}

/** Opens a dialog if the service answers, and else explains why not. */
async function openWithService(page, title, open) {
  const connection = connect();
  try {
    open(await askState(connection));
  } catch (error) {
    if (error instanceof Refusal) {
      openDialog(title, [element("p", { class: "error" }, refusal(error))]);
    } else if (page.model.apps.has(APP)) {
      const broker = _("The fleet's service is not running. Name a broker in its configuration first:");
      const start = _("Then start the service, now and at each boot:");
      const commands = [remedy("sudoedit /etc/identityd/identity-fleet.conf"), element("p", {}, start)];
      commands.push(remedy("sudo systemctl enable --now identity-fleet"));
      openDialog(title, [element("p", {}, broker), ...commands]);
    } else {
      const text = _("The fleet's service is not installed on this machine. It is in the package “$0”.");
      openDialog(title, [element("p", {}, format(text, APP))]);
    }
  }
  connection.close();
}

/** Runs the client, which derives the keys of a code. Returns a promise of its document. */
function runClient(words, input = "") {
  // cockpit.spawn() returns no native promise, and loses what its callbacks throw.
  return new Promise((done, failed) => {
    const read = (output) => {
      try {
        return JSON.parse(output);
      } catch {
        return undefined;
      }
    };
    const command = cockpit.spawn(["identityctl", "--json", ...words], { superuser: "try", err: "message" });
    command.input(input);
    command.then(
      (output) => done(read(output) ?? {}),
      (fault, output) => {
        const told = read(output)?.error;
        failed(told ? new Refusal(told.code, told.message) : fault);
      },
    );
  });
}

/** Says that the broker is not reached; null if it is, or is not needed yet. */
function trouble(state) {
  const phase = state.get("state");
  // A reason stays until the device is live.
  if (["live", "reading", "joining"].includes(phase)) return null;
  if (phase === "unpublished") return visible(state.get("reason") ?? phase);
  const reason = state.get("reason") ?? (phase === "refused" ? phase : undefined);
  return reason === undefined ? null : format(_("The broker is not reached: $0"), visible(reason));
}

// MARK: Invitations

/** Invites a device with a code. */
export function invite(page) {
  const title = _("Invite a device");
  return openWithService(page, title, (state) => {
    const text = _("A person with the code can add one device to the account. The code is good for fifteen minutes.");
    const content = [element("p", {}, text), element("p", {}, trouble(state))];
    const run = async () => showCode(title, await runClient(["account", "invite"]));
    openDialog(title, content, { label: _("Show a code"), done: _("The code is shown."), run });
  });
}

/** Shows a code, and what becomes of the invitation. The code is gone from the page once it is used. */
function showCode(title, { code, expires }) {
  const progress = element("p", { role: "status" });
  const letters = element("code", { class: "join-code", dir: "ltr" }, visible(code));
  const until = element("p", {}, _("Good until:"), " ", time(expires));
  const where = element("p", {}, _("Enter the code on the other device: on its page, or here, with Enter and Ctrl+D:"));
  const secret = element("div", {}, element("p", {}, letters), until, where, remedy("sudo identityctl account join -"));
  openDialog(title, [secret, progress]);
  const show = (state) => {
    const [invitation, newcomer] = [state.get("invitation"), state.get("newcomer")];
    const isOpen = invitation === "open";
    if (!isOpen) secret.remove();
    draw(progress, [invitation, newcomer, isOpen && trouble(state)], () => {
      if (isOpen) return trouble(state) ?? _("Waiting for the other device …");
      if (invitation === "used") return [_("Joined:"), " ", value(newcomer)];
      if (invitation === "expired") return _("The code has ended, and nobody has used it.");
      return _("The invitation has ended, because the service has begun anew. Make another one.");
    });
    return !isOpen;
  };
  watch(progress, show, () => secret.remove());
}

// MARK: Accounts

/** Makes an account with this device as its first member. */
export function create(page) {
  const title = _("Create an account");
  return openWithService(page, title, () => {
    const attributes = { id: "account-name", type: "text", maxlength: "255", autocomplete: "off", spellcheck: "false" };
    const input = element("input", attributes);
    const text = _("This device becomes the first one of the account, and can invite others.");
    const label = element("label", { for: "account-name" }, _("Name of the account"));
    // After "--", a name that begins with a dash is no option.
    const run = () => runClient(["account", "create", "--", input.value]);
    const content = [element("p", {}, text), element("p", {}, label), input];
    openDialog(title, content, { label: _("Create"), done: _("The account is there."), field: input, run });
  });
}

// MARK: Joining

/** Joins an account with a code. */
export function join(page) {
  const title = _("Join an account");
  return openWithService(page, title, () => {
    const attributes = { id: "join-code", type: "text", maxlength: "40", autocomplete: "off", spellcheck: "false" };
    const input = element("input", attributes);
    const progress = element("p", { role: "status" });
    const run = async () => {
      let isOver = false;
      watch(progress, (state) => {
        const isTrying = !isOver && state.get("join") === "trying";
        const text = () => (isTrying ? (trouble(state) ?? _("Looking for the invitation …")) : "");
        draw(progress, text(), text);
        return isOver;
      });
      try {
        await runClient(["account", "join", "-"], `${input.value}\n`);
      } finally {
        isOver = true;
      }
    };
    const text = _("This device gets the list of the account's devices, and they get its name and identifier.");
    const label = element("label", { for: "join-code" }, _("Code, which a device of the account shows"));
    const content = [element("p", {}, text), element("p", {}, label), input, progress];
    openDialog(title, content, { label: _("Join"), done: _("This device has joined the account."), field: input, run });
  });
}
