// A host of MCP Apps: AppBridge around a frame of another origin, whose tools are called by the test.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

window.log = { sizes: [], calls: [] };

// show shows a result in a new frame, and ends once the view has it.
window.show = ({ html, args = {}, result, context, capabilities = { serverTools: {} }, sandbox, width = 640, most = 900, fake }) => new Promise((done, failed) => {
	document.querySelector("iframe")?.remove();
	window.log = { sizes: [], calls: [] };
	window.silent = false;
	window.fake = fake;
	document.body.style.cssText = "margin:8px;background:" + (context?.theme === "dark" ? "#101413" : "#f3f5f4");
	const frame = document.createElement("iframe");
	frame.setAttribute("sandbox", "allow-scripts allow-same-origin");
	frame.style.cssText = `width:${width}px;height:60px;border:1px solid #888`;
	const bridge = window.bridge = new AppBridge(null, { name: "host", version: "1" }, capabilities, { hostContext: context });
	bridge.oncalltool = async p => {
		window.log.calls.push(p);
		if (window.silent) return new Promise(() => {});
		if (window.fake) return { content: [], structuredContent: window.fake[p.name] };
		return (await fetch("/call", { method: "POST", body: JSON.stringify(p) })).json();
	};
	bridge.onsandboxready = () => bridge.sendSandboxResourceReady({ html, sandbox: "allow-scripts" });
	bridge.onsizechange = s => {
		window.log.sizes.push(s);
		if (s.height) frame.style.height = Math.min(most, s.height + 2) + "px";
	};
	bridge.oninitialized = async () => {
		await bridge.sendToolInput({ arguments: args });
		if (result) await bridge.sendToolResult(result);
		done(true);
	};
	document.body.append(frame);
	bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow)).then(() => { frame.src = sandbox; }, failed);
});
