// Passkeys of this browser: made, and asked to confirm an owner's act.

import { Fault, type Conn } from "./rpc";
import { home } from "./session";
import { t } from "./words";

/** By what an act may be confirmed, and exactly what that is; bytes are in base64. call is in the site's words. */
export interface Offer {
	challenge: string; host: string; passkeys: string[]; site: string; method: string; description: string;
	params: string; call?: { who: string; tool: string; arguments: string; via?: string[] };
	/** What a new text of the configuration changes; params are then without the text. */
	change?: { lines?: string[]; digest: string };
}

const bytes = (text: string) => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const text = (b: ArrayBuffer) => btoa(String.fromCharCode(...new Uint8Array(b)));
const keys = (ids: string[]) => ids.map(id => ({ type: "public-key" as const, id: bytes(id) }));
const none = () => { throw new Fault("unavailable", t("passkey.no")); };

/** Confirms an act by a passkey, which asks the person. */
export async function confirm(o: Offer, signal: AbortSignal): Promise<void> {
	const got = await navigator.credentials.get({ signal, publicKey: {
		challenge: bytes(o.challenge), rpId: o.host, allowCredentials: keys(o.passkeys), userVerification: "required",
		timeout: 120_000,
	} }).catch(() => signal.aborted ? null : none()) as PublicKeyCredential | null;
	if (!got) return; // it was confirmed in the terminal
	const r = got.response as AuthenticatorAssertionResponse;
	await home.value!.call("passkey/confirm", { challenge: o.challenge, id: text(got.rawId),
		client_data: text(r.clientDataJSON), authenticator_data: text(r.authenticatorData),
		signature: text(r.signature) });
}

/** Has the browser make a passkey. */
export async function create(conn: Conn): Promise<{ client_data: string; attestation: string }> {
	const o = await conn.call<any>("passkey/new");
	const made = await navigator.credentials.create({ publicKey: {
		challenge: bytes(o.challenge), rp: { id: o.host, name: "agentsite" },
		user: { id: bytes(o.user), name: o.name, displayName: "agentsite" },
		pubKeyCredParams: o.algorithms.map((alg: number) => ({ type: "public-key", alg })),
		excludeCredentials: keys(o.known), attestation: "none", timeout: 120_000,
		authenticatorSelection: { userVerification: "required", residentKey: "preferred" },
	} }).catch(none) as PublicKeyCredential;
	const r = made.response as AuthenticatorAttestationResponse;
	return { client_data: text(r.clientDataJSON), attestation: text(r.attestationObject) };
}
