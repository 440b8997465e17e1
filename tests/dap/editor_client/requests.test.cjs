// Every request, sent by the client with which VS Code's own adapters are tested. Variables of the environment name the
// interpreter, a recording of fixtures/travel/ends_by_an_exception.py, and the fixtures.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { afterEach, beforeEach, test } = require("node:test");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const { PYTHON, RECORDING, FIXTURE, LANES, EXTENSION, WORK } = process.env;
const sent = new Set();
let client;

async function start() {
  client = new DebugClient(PYTHON, path.join(__dirname, "server.py"), "replaydbg", { cwd: WORK });
  client.defaultTimeout = 240000;
  const send = client.send.bind(client);
  client.send = (command, args) => {
    sent.add(command);
    return send(command, args);
  };
  await client.start();
}

// The server has gone when it has answered `disconnect`: a second one would wait for ever.
async function stop() {
  if (client) {
    const last = client;
    client = undefined;
    await last.stop();
  }
}

beforeEach(start);
afterEach(stop);

async function attach(recording = RECORDING, more = {}) {
  await client.initializeRequest();
  const configured = client.waitForEvent("initialized").then(() => client.configurationDoneRequest());
  const [, , stop] = await Promise.all([
    client.attachRequest({ recording, ...more }),
    configured,
    client.waitForEvent("stopped"),
  ]);
  return stop.body;
}

async function stoppedAfter(request) {
  const [stop] = await Promise.all([client.waitForEvent("stopped"), request]);
  return stop.body;
}

async function stack(threadId) {
  threadId = threadId || (await client.threadsRequest()).body.threads[0].id;
  return (await client.stackTraceRequest({ threadId })).body.stackFrames;
}

test("it introduces itself, and opens at the failure", async () => {
  const { body } = await client.initializeRequest();
  assert.equal(body.supportsStepBack, true);
});

test("motions in both directions", async () => {
  const stop = await attach();
  assert.equal(stop.reason, "exception");
  const { threadId } = stop;
  const seen = [];
  for (const name of ["stepBack", "stepBack", "next", "stepIn", "stepBack"]) {
    await stoppedAfter(client[`${name}Request`]({ threadId }));
    seen.push((await stack())[0].line);
  }
  assert.deepEqual(seen, [28, 27, 28, 30, 28]);
  assert.equal((await stoppedAfter(client.reverseContinueRequest({ threadId }))).reason, "start");
  assert.equal((await stoppedAfter(client.continueRequest({ threadId }))).reason, "end");
  await stoppedAfter(client.pauseRequest({ threadId }));
  for (const name of ["reverseStepIn", "stepOut", "reverseStepOut"]) {
    await stoppedAfter(client.customRequest(name, { threadId }));
  }
  await stoppedAfter(client.customRequest("seek", { moment: "@exc" }));
  const why = await client.customRequest("why", { expression: "account.balance" });
  assert.match(why.body.text, /was written/);
});

test("breakpoints of every kind", async () => {
  const { threadId } = await attach();
  const source = { path: FIXTURE };
  const locations = await client.send("breakpointLocations", { source, line: 10, endLine: 13 });
  assert.deepEqual(locations.body.breakpoints.map((each) => each.line), [10, 12, 13]);
  const lines = await client.setBreakpointsRequest({
    source,
    breakpoints: [{ line: 12, condition: "n == 3" }, { line: 13, logMessage: "{n} gives {doubled}" }],
  });
  assert.deepEqual(lines.body.breakpoints.map((each) => each.verified), [true, true]);
  assert.equal((await stoppedAfter(client.reverseContinueRequest({ threadId }))).reason, "breakpoint");
  await client.setBreakpointsRequest({ source, breakpoints: [] });
  await client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "hidden" }] });
  await stoppedAfter(client.continueRequest({ threadId }));
  assert.equal((await stack())[0].name, "hidden");
  await client.setFunctionBreakpointsRequest({ breakpoints: [] });
  await client.setExceptionBreakpointsRequest({ filters: ["uncaught"] });
  assert.equal((await stoppedAfter(client.continueRequest({ threadId }))).reason, "exception");
  const info = await client.send("exceptionInfo", { threadId });
  assert.equal(info.body.exceptionId, "RuntimeError");
  const frameId = (await stack())[0].id;
  const data = await client.send("dataBreakpointInfo", { name: "account.balance", frameId });
  await client.send("setDataBreakpoints", { breakpoints: [{ dataId: data.body.dataId }] });
  assert.equal((await stoppedAfter(client.reverseContinueRequest({ threadId }))).reason, "data breakpoint");
  assert.equal((await stack())[0].line, 27);
});

test("values, expressions and completions", async () => {
  await attach();
  const [frame] = await stack();
  const { scopes } = (await client.scopesRequest({ frameId: frame.id })).body;
  const { variables } = (await client.variablesRequest({ variablesReference: scopes[0].variablesReference })).body;
  const results = variables.find((each) => each.name === "results");
  const items = (await client.variablesRequest({ variablesReference: results.variablesReference })).body.variables;
  assert.equal(items.at(-1).value, "'hidden'");
  const sum = await client.evaluateRequest({ expression: "len(results) + 1", frameId: frame.id, context: "hover" });
  assert.equal(sum.body.result, "7");
  const word = await client.evaluateRequest({ expression: "why results", frameId: frame.id, context: "repl" });
  assert.match(word.body.result, /hidden/);
  const { targets } = (await client.completionsRequest({ text: "account.ba", column: 11, frameId: frame.id })).body;
  assert.deepEqual(targets.map((each) => each.label), ["balance"]);
});

test("moments of a line, and frames that are restarted", async () => {
  const { threadId } = await attach();
  const source = { path: FIXTURE };
  const { targets } = (await client.gotoTargetsRequest({ source, line: 13 })).body;
  assert.equal(targets.length, 5);
  assert.equal((await stoppedAfter(client.gotoRequest({ threadId, targetId: targets[1].id }))).reason, "goto");
  await stoppedAfter(client.restartFrameRequest({ frameId: (await stack())[0].id }));
  assert.equal((await stack())[0].line, 12);
});

test("sources, loaded and gone", async () => {
  await attach();
  const { sources } = (await client.send("loadedSources", {})).body;
  assert.ok(sources.some((each) => each.path === FIXTURE));
  await stop();
  await start();
  await attach(path.join(WORK, "gone.rdbg"));
  const { source } = (await stack())[0];
  const { content } = (await client.sourceRequest({ source, sourceReference: source.sourceReference })).body;
  assert.match(content, /gone/);
});

test("threads and tasks", async () => {
  const { threadId } = await attach(LANES);
  const source = (await stack())[0].source;
  await client.setBreakpointsRequest({ source, breakpoints: [{ line: 40 }] });
  await stoppedAfter(client.reverseContinueRequest({ threadId }));
  const { threads } = (await client.threadsRequest()).body;
  const task = threads.find((each) => each.name.includes("task waits"));
  assert.deepEqual((await stack(task.id)).map((each) => each.name), ["Event.wait", "inner", "outer"]);
});

test("what makes no sense is refused, and can be cancelled", async () => {
  await attach();
  await assert.rejects(client.send("sing", {}));
  sent.delete("sing");
  await client.send("cancel", { requestId: 100000 });
  await client.send("terminate", {});
  await client.disconnectRequest();
  client = undefined;
});

test("the configurations that the extension offers first do what they say", async () => {
  const manifest = JSON.parse(fs.readFileSync(path.join(EXTENSION, "package.json"), "utf-8"));
  const [launch] = manifest.contributes.debuggers[0].initialConfigurations;
  const known = { "${file}": FIXTURE, "${workspaceFolder}": WORK };
  const filled = JSON.parse(JSON.stringify(launch).replace(/\$\{\w+\}/g, (each) => known[each]));
  const [, stop] = await Promise.all([
    Promise.all([client.configurationSequence(), client.launch(filled)]),
    client.waitForEvent("stopped"),
  ]);
  assert.equal(stop.body.reason, "exception");
});

test("the extension starts the server, and sends the requests of its commands", async () => {
  const commands = {};
  const seen = [];
  let factory;
  const vscode = {
    DebugAdapterExecutable: class {
      constructor(...words) {
        this.words = words;
      }
    },
    commands: { registerCommand: (name, run) => (commands[name] = run) },
    debug: {
      activeDebugSession: { type: "replaydbg", customRequest: async (...request) => seen.push(request) },
      activeStackItem: { threadId: 7 },
      registerDebugAdapterDescriptorFactory: (type, made) => (factory = made),
    },
    window: { showInputBox: async () => "@exc" },
    workspace: {
      getConfiguration: () => ({ get: () => ["replaydbg", "dap"] }),
      workspaceFolders: [{ uri: { fsPath: "/project" } }],
    },
  };
  const load = Module._load;
  Module._load = (name, ...more) => (name === "vscode" ? vscode : load(name, ...more));
  const extension = require(path.join(EXTENSION, "extension.js"));
  Module._load = load;
  const context = { subscriptions: [] };

  extension.activate(context);
  for (const name of Object.keys(commands)) {
    await commands[name]();
  }

  const manifest = JSON.parse(fs.readFileSync(path.join(EXTENSION, "package.json"), "utf-8"));
  const declared = manifest.contributes.commands.map((each) => each.command);
  assert.deepEqual(Object.keys(commands), declared);
  assert.deepEqual(factory.createDebugAdapterDescriptor().words, ["replaydbg", ["dap"], { cwd: "/project" }]);
  assert.deepEqual(seen, [
    ["reverseStepIn", { threadId: 7 }],
    ["reverseStepOut", { threadId: 7 }],
    ["seek", { moment: "@exc" }],
  ]);
});

test("every request was sent", () => {
  const missing = process.env.REQUESTS.split(" ").filter((each) => !sent.has(each));
  assert.deepEqual(missing, []);
});
