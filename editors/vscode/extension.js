// Starts the server of the Debug Adapter Protocol, and adds the ways back that the protocol has no button for.
"use strict";

const vscode = require("vscode");

function send(request, ask) {
  return async () => {
    const session = vscode.debug.activeDebugSession;
    const item = vscode.debug.activeStackItem;
    const more = ask ? await ask() : { threadId: item && item.threadId };
    if (session && session.type === "replaydbg" && more) {
      await session.customRequest(request, more);
    }
  };
}

async function askMoment() {
  const moment = await vscode.window.showInputBox({ prompt: "Moment", placeHolder: "120:35, 71%, @exc, @end, @out:17" });
  return moment && { moment };
}

exports.activate = (context) => {
  const factory = {
    createDebugAdapterDescriptor() {
      const [command, ...args] = vscode.workspace.getConfiguration("replaydbg").get("command");
      const folder = vscode.workspace.workspaceFolders && vscode.workspace.workspaceFolders[0];
      return new vscode.DebugAdapterExecutable(command, args, folder && { cwd: folder.uri.fsPath });
    },
  };
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("replaydbg", factory),
    vscode.commands.registerCommand("replaydbg.reverseStepIn", send("reverseStepIn")),
    vscode.commands.registerCommand("replaydbg.reverseStepOut", send("reverseStepOut")),
    vscode.commands.registerCommand("replaydbg.seek", send("seek", askMoment)),
  );
};
