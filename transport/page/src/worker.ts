// Shows what a site tells this phone, and leads to the page where that is about. It answers no request and keeps
// nothing.

interface Window { url: string; postMessage(of: unknown): void; focus(): Promise<unknown> }
interface Event { waitUntil(done: Promise<unknown>): void }
interface Worker {
	registration: { showNotification(title: string, options: object): Promise<void> };
	clients: { matchAll(of: object): Promise<Window[]>; openWindow(url: string): Promise<unknown> };
	skipWaiting(): void;
	oninstall: () => void;
	onpush: (e: Event & { data?: { json(): any } }) => void;
	onnotificationclick: (e: Event & { notification: { data: unknown; close(): void } }) => void;
}
const worker = globalThis as unknown as Worker;

worker.oninstall = () => worker.skipWaiting();

const text = (of: unknown, most: number) => typeof of === "string" ? of.slice(0, most) : "";

worker.onpush = e => {
	let told: any = {};
	try {
		told = e.data?.json() ?? {};
	} catch { /* shown without its words: a browser wants each message shown */ }
	const tag = text(told.tag, 64);
	e.waitUntil(worker.registration.showNotification(text(told.title, 300) || "agentsite", {
		body: text(told.text, 2000), icon: "/page/icon-192.png", badge: "/page/icon-192.png",
		data: text(told.link, 500), requireInteraction: told.urgent === true, ...tag && { tag, renotify: true },
	}));
};

worker.onnotificationclick = e => {
	e.notification.close();
	const link = text(e.notification.data, 500), at = link.startsWith("#") ? link : "";
	e.waitUntil((async () => {
		const all = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
		const page = all.find(w => new URL(w.url).pathname === "/");
		if (!page) return worker.clients.openWindow("/" + at);
		page.postMessage(at);
		return page.focus().catch(() => {}); // a browser may show another window
	})());
};
