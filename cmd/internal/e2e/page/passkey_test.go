//go:build e2e

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// authenticator makes and asks passkeys for a tab, as the device of a person who agrees to everything.
type authenticator struct {
	b  *tab
	id webauthn.AuthenticatorID
}

func (b *tab) authenticator() *authenticator {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	made, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return &authenticator{b, made.AuthenticatorID}
}

// unverified has it answer without having verified its user, or as usual.
func (a *authenticator) unverified(bad bool) {
	a.b.t.Helper()
	_, err := chromedp.Call(a.b.ctx, webauthn.SetResponseOverrideBits, webauthn.SetResponseOverrideBitsParams{
		AuthenticatorID: a.id, IsBadUV: &bad,
	})
	if err != nil {
		a.b.t.Fatal(err)
	}
}

// addPasskey registers a passkey in the page of agentsite open, whose terminal asks for the nth time.
func (b *tab) addPasskey(o *opened, n int) {
	b.t.Helper()
	run[bool](b, "location.hash = '#access', true")
	b.press(`[data-act="passkey-add"]`)
	o.asked(n)
	o.typed("\n")
	b.is(10*time.Second, `document.querySelector('[data-act="passkey/remove"]')`)
}

// passkeyScript calls as a script in the page that asks the passkey itself: begin begins an owner's act, and
// sign has the passkey sign a challenge, and returns the parameters of passkey/confirm.
const passkeyScript = `
window.begin = async (url, method, params) => {
	window.offer = window.answer = undefined;
	const r = await fetch(url, {
		method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
		headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", Authorization: "Bearer " + sessionStorage.getItem("token"),
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method },
	});
	const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
	for (let text = "";;) {
		const { done, value } = await reader.read();
		if (done) return;
		text += value;
		for (const line of text.split("\n").filter(l => l.startsWith("data:") && l.endsWith("}"))) {
			const m = JSON.parse(line.slice(5));
			if (m.method) window.offer = m.params;
			else window.answer = m;
		}
	}
};
const bytes = t => Uint8Array.from(atob(t), c => c.charCodeAt(0)), text = b => btoa(String.fromCharCode(...new Uint8Array(b)));
window.sign = async offer => {
	const c = await navigator.credentials.get({ publicKey: { challenge: bytes(offer.challenge), rpId: offer.host, userVerification: "required",
		allowCredentials: offer.passkeys.map(id => ({ type: "public-key", id: bytes(id) })) } });
	return { challenge: offer.challenge, id: text(c.rawId), client_data: text(c.response.clientDataJSON),
		authenticator_data: text(c.response.authenticatorData), signature: text(c.response.signature) };
}; true`

// TestPasskey: a passkey that an owner registered by Enter confirms a call that waits, with nothing at the terminal.
// It confirms exactly what it signed, once, and only where it verified its user.
func TestPasskey(t *testing.T) {
	t.Parallel()
	site, invitation := harness.StartUnclaimed(t, harness.TempDir(t), "  pump: { driver: sim, model: relay, min_off: 0, confirm: owner }")
	ann := harness.NewPerson(t)
	ann.MustCLI(t, "claim", invitation.String())
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	device := b.authenticator()
	run[bool](b, script)
	run[bool](b, passkeyScript)
	const url = "/at/shed/mcp"
	call := func(method, params, name string) said {
		t.Helper()
		return run[said](b, fmt.Sprintf("call(%q, %q, %s, %q)", url, method, params, name))
	}
	confirm := func(params string) int {
		t.Helper()
		return run[said](b, fmt.Sprintf(`(async () => call("/home", "passkey/confirm", %s))()`, params)).Error.Code
	}
	const on = `{name: "switch_output", arguments: {output: "pump/relay", on: true, for_seconds: 60}}`
	// waits asks for a move that an owner has to confirm, and returns the handle of the approval.
	waits := func() string {
		t.Helper()
		if a := call("tools/call", on, "switch_output"); a.Result.Type != "input_required" {
			t.Fatalf("what an owner confirms is moved: %+v", a)
		}
		all := call("owner/requests", "{}", "").Result.Requests
		if len(all) != 1 {
			t.Fatalf("%+v wait", all)
		}
		return all[0].Handle
	}
	safe := func(when string) {
		t.Helper()
		if says, err := site.CLI(t, "read", "pump/relay"); err != nil || !strings.Contains(says, "off") {
			t.Errorf("%s: %s %v", when, says, err)
		}
	}

	// A person, with buttons.
	b.addPasskey(o, 1)
	waits()
	run[bool](b, "location.hash = '#waiting', true")
	b.press(`[data-act="owner/approve"]`)
	if screen := o.asked(2); !strings.Contains(screen, "pump/relay") {
		t.Errorf("the terminal does not show what is approved:\n%s", screen)
	}
	b.is(10*time.Second, `document.querySelector("main .note")?.textContent.includes("pump/relay")`)
	b.press(`[data-act=passkey]`)
	b.is(10*time.Second, `!document.querySelector("[data-approval]")`)
	harness.WaitFor(t, 10*time.Second, "the terminal says how it was confirmed", func() bool {
		return strings.Contains(o.screen.String(), "by the passkey")
	})
	if a := call("tools/call", on, "switch_output"); a.Result.Structured.Value != true {
		t.Errorf("what a passkey confirmed: %+v", a)
	}
	call("tools/call", `{name: "release_output", arguments: {output: "pump/relay"}}`, "release_output")

	// A script.
	handle := waits()
	asked := 2
	begin := func(params string) {
		t.Helper()
		run[bool](b, fmt.Sprintf(`begin(%q, "owner/approve", %s), true`, url, params))
		asked++
		o.asked(asked)
		b.is(10*time.Second, "window.offer")
	}
	refused := func() {
		t.Helper()
		o.typed("n\n")
		b.is(10*time.Second, "window.answer?.error.code === 403")
		safe("after a no")
	}
	approve := fmt.Sprintf("{name: %q}", handle)
	begin(approve)
	if answered := run[bool](b, "!!window.answer"); answered {
		t.Error("a script has an answer without a passkey")
	}
	device.unverified(true)
	if code := confirm("await sign(offer)"); code != 403 {
		t.Errorf("a passkey that did not verify its user: %d", code)
	}
	device.unverified(false)
	if code := confirm("await sign(offer)"); code != 410 {
		t.Errorf("a second answer to a challenge: %d", code)
	}
	refused()
	// Signed for other arguments: an answer to the challenge of another act, in place of this one.
	begin(`{name: "` + handle + `", }`)
	run[bool](b, "(async () => { window.other = await sign(offer); return true; })()")
	refused()
	begin(approve)
	if code := confirm("{...other, challenge: offer.challenge}"); code != 403 {
		t.Errorf("the answer for another act: %d", code)
	}
	refused()
	if code := confirm("other"); code != 410 {
		t.Errorf("the answer for an act that was refused: %d", code)
	}
	begin(approve)
	if code := confirm("window.used = await sign(offer)"); code != 0 {
		t.Errorf("a good answer: %d", code)
	}
	b.is(10*time.Second, "window.answer?.result")
	if code := confirm("used"); code != 410 {
		t.Errorf("a replay: %d", code)
	}
	if a := call("tools/call", on, "switch_output"); a.Result.Structured.Value != true {
		t.Errorf("what a passkey confirmed: %+v", a)
	}
}
